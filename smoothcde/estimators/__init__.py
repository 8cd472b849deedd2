"""Estimators: from raw series to a trained, saved, reusable model."""

from smoothcde.estimators.predictor import Predictor

__all__ = ["Predictor"]
