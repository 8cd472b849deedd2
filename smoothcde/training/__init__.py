"""Training and measuring."""

from smoothcde.training.grids import GRIDS, GridPoint, grid_points
from smoothcde.training.loop import Recipe, TrainingRecord, train_classifier
from smoothcde.training.measure import Measurement, measure_classifier

__all__ = [
    "GRIDS",
    "GridPoint",
    "Measurement",
    "Recipe",
    "TrainingRecord",
    "grid_points",
    "measure_classifier",
    "train_classifier",
]
