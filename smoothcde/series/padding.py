"""Rectilinear padding: series continued with their last observation, as the paper does it."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from smoothcde.series.set import SeriesSet


def pad_with_last(series: "SeriesSet", length: int, step: float) -> "SeriesSet":
    """Every series continued to `length` stamps, `step` apart, holding each channel's last observation.

    A path fitted to the result has zero derivative in the padded region (exactly for interpolants, nearly for
    smoothers), and all windows of a regular set end together. A series without stamps stays as it is.
    """
    missing = np.where(series.lengths > 0, length - series.lengths, 0)
    last = last_observed(series)
    owner = np.repeat(np.arange(len(series)), missing)
    beyond = np.arange(len(owner)) - np.repeat(np.cumsum(missing) - missing, missing) + 1
    final_stamp = series.times[np.maximum(series.offsets[1:] - 1, 0)] if len(series.times) else np.zeros(len(series))
    end = np.where(missing > 0, np.maximum(series.end, final_stamp + missing * step), series.end)
    # Insert each series' continuation right behind its own last stamp.
    where = np.repeat(series.offsets[1:], missing)
    return replace(
        series,
        values=np.insert(series.values, where, last[owner], axis=0),
        times=np.insert(series.times, where, final_stamp[owner] + beyond * step),
        offsets=np.concatenate([[0], np.cumsum(series.lengths + missing)]),
        end=end,
    )


def last_observed(series: "SeriesSet") -> np.ndarray:
    """`[n, channels]`: each channel's last observation in each series, NaN where there is none."""
    latest = np.full((len(series), series.channels), -1)
    owner = series.owner
    stamp, channel = np.nonzero(np.isfinite(series.values))
    np.maximum.at(latest, (owner[stamp], channel), stamp)
    if not len(series.times):
        return np.full(latest.shape, np.nan)
    return np.where(latest >= 0, np.take_along_axis(series.values, np.maximum(latest, 0), axis=0), np.nan)
