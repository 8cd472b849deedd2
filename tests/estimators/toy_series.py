"""Series that a small model can tell apart after a few steps, and estimators that are quick."""

from typing import Any

import numpy as np

from smoothcde.estimators import CDEClassifier, CDERegressor
from smoothcde.series import SeriesSet

QUICK: dict[str, Any] = {"hidden": 6, "epochs": 3, "batch_size": 16, "learning_rate": 0.02, "random_state": 0}


def slopes(n: int = 30, channels: int = 2, length: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`(n, channels, length)` noisy lines, and their slopes: -1, 0 or 1 in turn."""
    generator = np.random.default_rng(seed)
    slope = np.arange(n) % 3 - 1
    lines = slope[:, None, None] * np.linspace(0, 2, length) + 0.2 * generator.normal(size=(n, channels, length))
    return lines, slope


def irregular(n: int = 30, seed: int = 0, **settings: Any) -> tuple[SeriesSet, np.ndarray]:
    """The same with own stamps, unequal lengths and a quarter of the values missing."""
    values, slope = slopes(n, seed=seed)
    generator = np.random.default_rng([seed, 1])
    values[generator.random(values.shape) < 0.25] = np.nan
    lengths = generator.integers(5, 9, size=n)
    times = [np.sort(generator.uniform(0, 10, size=k)) for k in lengths]
    return SeriesSet.from_arrays([v[:, :k] for v, k in zip(values, lengths, strict=True)], times, **settings), slope


def quick_classifier(model: str = "gru", **settings: Any) -> CDEClassifier:
    """A small recurrent network, where it does not matter which model it is."""
    return CDEClassifier(model, **(QUICK | settings))


def quick_regressor(model: str = "gru", **settings: Any) -> CDERegressor:
    """Likewise."""
    return CDERegressor(model, **(QUICK | settings))
