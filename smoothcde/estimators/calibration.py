"""Temperature scaling: one number that makes probabilities as sure as they should be."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

RANGE = (0.05, 20.0)
"""Temperatures looked at: a validation split without any error would ask for zero."""


def temperature_of(logits: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The temperature T with the least log loss of softmax(logits / T) (Guo et al., 2017).

    Which class is likeliest never changes.

    Args:
        logits: `[n, classes]`, of series that were not trained on.
        targets: class index of each.
        weights: of each.
    """
    mass = np.ones(len(targets)) if weights is None else weights

    def log_loss(log_temperature: float) -> float:
        chances = log_softmax(logits / np.exp(log_temperature), axis=1)
        return -float(np.average(chances[np.arange(len(targets)), targets], weights=mass))

    found = minimize_scalar(log_loss, bounds=tuple(np.log(RANGE)), method="bounded")
    return float(np.exp(found.x))
