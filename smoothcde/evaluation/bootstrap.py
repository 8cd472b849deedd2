"""Percentile intervals from resampled series.

A resample is drawn as counts: how often each series is in it. A metric that takes counts as weights needs no copy of
the data, and one that ranks needs to sort only once for all resamples.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Metric = Callable[[np.ndarray], np.ndarray]
"""Takes weights `[resamples, series]`, gives one value per resample, NaN where it is not defined."""

_CHUNK = 2_000_000
"""Weights held at once: 16 MB."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; NaN bounds where no interval was asked for or the metric is not defined."""

    value: float
    low: float = np.nan
    high: float = np.nan

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return "not defined"
        interval = f" ({self.low:.4f} to {self.high:.4f})" if np.isfinite(self.low) else ""
        return f"{self.value:.4f}{interval}"

    def as_dict(self) -> dict[str, float | None]:
        """For JSON, which has no NaN: None instead."""
        return {key: float(x) if np.isfinite(x) else None for key, x in vars(self).items()}


def estimates(
    metrics: dict[str, Metric], count: int, *, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> dict[str, Estimate]:
    """Each metric on the data as they are, and its percentile interval over resamples with replacement.

    Resamples in which a metric is not defined (an AUROC when one class was not drawn) do not count.

    Args:
        metrics: by name.
        count: of series.
        resamples: how many; 0 for no interval.
        confidence: share of resamples inside the interval.
        seed: of the resampling.
    """
    if resamples < 0:
        raise ValueError(f"resamples is {resamples}; give 0 for no interval, or some hundreds")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; give a number between 0 and 1, such as 0.95")
    whole = {name: float(metric(np.ones((1, count)))[0]) for name, metric in metrics.items()}
    rng = np.random.default_rng(seed)
    drawn: dict[str, list[np.ndarray]] = {name: [] for name in metrics}
    size = max(_CHUNK // max(count, 1), 1)
    for first in range(0, resamples, size):
        weights = rng.multinomial(count, np.full(count, 1 / count), size=min(size, resamples - first)).astype(float)
        for name, metric in metrics.items():
            drawn[name].append(metric(weights))
    tails = [50 * (1 - confidence), 50 * (1 + confidence)]
    result = {}
    for name, value in whole.items():
        values = np.concatenate(drawn[name]) if drawn[name] else np.zeros(0)
        values = values[np.isfinite(values)]
        defined = np.isfinite(value) and len(values)
        result[name] = (
            Estimate(value, *(float(q) for q in np.percentile(values, tails))) if defined else Estimate(value)
        )
    return result
