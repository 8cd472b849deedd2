"""Training and measuring."""

from smoothcde.training.grids import GRIDS, GridPoint, grid_points
from smoothcde.training.loop import train_classifier
from smoothcde.training.measure import Measurement, measure_classifier
from smoothcde.training.objectives import CrossEntropy, Objective, SquaredError
from smoothcde.training.recipes import RECIPES, Recipe, recipe_of
from smoothcde.training.record import TrainingRecord
from smoothcde.training.train import train

__all__ = [
    "GRIDS",
    "RECIPES",
    "CrossEntropy",
    "GridPoint",
    "Measurement",
    "Objective",
    "Recipe",
    "SquaredError",
    "TrainingRecord",
    "grid_points",
    "measure_classifier",
    "recipe_of",
    "train",
    "train_classifier",
]
