"""Training a classifier, as a function of its own until its callers have moved to `train`."""

from collections.abc import Callable

import numpy as np

from smoothcde.models import SeriesModel
from smoothcde.series import SeriesSet
from smoothcde.training.objectives import CrossEntropy
from smoothcde.training.recipes import Recipe
from smoothcde.training.record import TrainingRecord
from smoothcde.training.train import train


def train_classifier(
    model: SeriesModel,
    series: SeriesSet,
    labels: np.ndarray,
    recipe: Recipe,
    on_step: Callable[[int, float, float], None] | None = None,
) -> TrainingRecord:
    """Fit logits to labels 0, 1, 2, ... by cross-entropy."""
    if len(series) != len(labels):
        raise ValueError(f"there are {len(series)} series and {len(labels)} labels; give one label per series")
    return train(model, series, labels, CrossEntropy(), recipe, on_step=on_step)
