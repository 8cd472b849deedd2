"""Estimators: from raw series to a trained, saved, reusable model."""

from smoothcde.estimators.classifier import CDEClassifier
from smoothcde.estimators.forecast import Forecast
from smoothcde.estimators.forecast_predictor import ForecastPredictor
from smoothcde.estimators.forecaster import CDEForecaster
from smoothcde.estimators.predictor import Predictor
from smoothcde.estimators.regressor import CDERegressor

__all__ = ["CDEClassifier", "CDEForecaster", "CDERegressor", "Forecast", "ForecastPredictor", "Predictor"]
