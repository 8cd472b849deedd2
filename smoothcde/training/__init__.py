"""Training and measuring."""

from smoothcde.training.loop import Recipe, TrainingRecord, train_classifier
from smoothcde.training.measure import Measurement, measure_classifier

__all__ = ["Measurement", "Recipe", "TrainingRecord", "measure_classifier", "train_classifier"]
