"""Windows of recordings as examples: a history to learn from, a future to learn."""

import numpy as np

from smoothcde.data import ChannelScaler
from smoothcde.series import Rolling, SeriesSet

MOST_VALIDATION = 2048
"""Windows that pick the best epoch, spread evenly over all there are: neighbours hardly differ."""

Windows = tuple[SeriesSet, np.ndarray]
"""Histories, and `[n, horizon, channels]` what followed them."""


def windows_of(series: SeriesSet, rolling: Rolling, every: int) -> Windows | None:
    """Histories and targets, where there is something in both; None if there is no such window."""
    owner, moments = rolling.origins(series, every)
    histories, futures = rolling.histories(series, owner, moments), rolling.futures(series, owner, moments)
    usable = observed(histories) & np.isfinite(futures).any(axis=(1, 2))
    return (histories[usable], futures[usable]) if usable.any() else None


def observed(histories: SeriesSet) -> np.ndarray:
    """Which histories hold any observation."""
    owner = histories.owner
    seen = np.isfinite(histories.values).any(axis=1)
    return np.bincount(owner[seen], minlength=len(histories)) > 0


def thinned(windows: Windows, most: int = MOST_VALIDATION) -> Windows:
    """At most so many windows, evenly spread."""
    count = len(windows[0])
    kept = np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))
    return windows[0][kept], windows[1][kept]


def examples_of(windows: Windows, scaler: ChannelScaler) -> tuple[SeriesSet, np.ndarray, np.ndarray]:
    """Standardised histories and targets, each window counting by how many targets it has."""
    histories, futures = windows
    return (
        scaler.transform(histories),
        (futures - scaler.mean) / scaler.scale,
        np.isfinite(futures).mean(axis=(1, 2)),
    )


def naive_error(series: SeriesSet, step: float) -> np.ndarray:
    """Mean absolute difference of values one step apart, per channel; 0 where there are none."""
    rolling = Rolling(context=1, horizon=2, step=step)
    # Two steps of a future, rather than a history and a future: both are then read in the same way.
    owner, moments = rolling.origins(series.with_window(start=series.start - step))
    pairs = rolling.futures(series, owner, moments)
    change = np.abs(pairs[:, 1] - pairs[:, 0])
    seen = np.isfinite(change)
    return np.where(seen, change, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
