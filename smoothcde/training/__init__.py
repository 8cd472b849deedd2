"""Training and measuring."""

from smoothcde.training.errors import CheckpointError, TrainingError
from smoothcde.training.grids import GRIDS, GridPoint, grid_points
from smoothcde.training.measure import Measurement, measure_classifier
from smoothcde.training.objectives import CrossEntropy, ForecastError, Objective, SquaredError
from smoothcde.training.processes import make_fabric
from smoothcde.training.recipes import RECIPES, Recipe, recipe_of
from smoothcde.training.record import TrainingRecord
from smoothcde.training.train import train

__all__ = [
    "GRIDS",
    "RECIPES",
    "CheckpointError",
    "CrossEntropy",
    "ForecastError",
    "GridPoint",
    "Measurement",
    "Objective",
    "Recipe",
    "SquaredError",
    "TrainingError",
    "TrainingRecord",
    "grid_points",
    "make_fabric",
    "measure_classifier",
    "recipe_of",
    "train",
]
