"""Estimators: from raw series to a trained, saved, reusable model."""

from smoothcde.estimators.classifier import CDEClassifier
from smoothcde.estimators.predictor import Predictor
from smoothcde.estimators.regressor import CDERegressor

__all__ = ["CDEClassifier", "CDERegressor", "Predictor"]
