"""How good predictions are, with how much of it may be luck."""

from smoothcde.evaluation.bootstrap import Estimate
from smoothcde.evaluation.classification import ClassificationReport, evaluate_classification
from smoothcde.evaluation.forecasting import Backtest, ForecastTally
from smoothcde.evaluation.regression import RegressionReport, evaluate_regression

__all__ = [
    "Backtest",
    "ClassificationReport",
    "Estimate",
    "ForecastTally",
    "RegressionReport",
    "evaluate_classification",
    "evaluate_regression",
]
