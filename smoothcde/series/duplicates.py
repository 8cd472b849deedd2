"""Equal stamps in one series: refuse them, or merge them by a stated rule."""

from typing import Literal

import numpy as np

from smoothcde.checks import check_choice

Duplicates = Literal["error", "mean", "last", "first"]
POLICIES = ("error", "mean", "last", "first")


def check_policy(duplicates: str) -> None:
    """Refuse a rule that does not exist, by name."""
    check_choice("duplicates", duplicates, POLICIES)


def merge(values: np.ndarray, first: np.ndarray, policy: str) -> np.ndarray:
    """Merge runs of rows into one row each.

    Args:
        values: `[rows, channels]`, NaN where not observed; rows of one run are neighbours, in the user's order.
        first: index of each run's first row.
        policy: "mean" of what was observed, or the "last" / "first" observed value, channel by channel.
    """
    observed = np.isfinite(values)
    if policy == "mean":
        total = np.add.reduceat(np.where(observed, values, 0.0), first, axis=0)
        count = np.add.reduceat(observed.astype(np.float64), first, axis=0)
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    row = np.arange(len(values))[:, None]
    if policy == "last":
        pick = np.maximum.reduceat(np.where(observed, row, -1), first, axis=0)
        found = pick >= 0
    else:
        pick = np.minimum.reduceat(np.where(observed, row, len(values)), first, axis=0)
        found = pick < len(values)
    return np.where(found, np.take_along_axis(values, np.where(found, pick, 0), axis=0), np.nan)
