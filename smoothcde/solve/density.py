"""How many steps per share of a window, and how to move them to where the errors are."""

from collections.abc import Sequence

import numpy as np

CELLS = 512
"""Equal parts of the window on which a density of steps is kept."""
AIM = 0.8
"""The error, in tolerances, that a moved step is to have."""


class Densities:
    """Steps per window at each place of it, for one view.

    Args:
        steps: the adaptive solver's step ends of each row as shares of its window, 0 first.
        coverage: the quantile over rows that is kept: as many steps as that share of the rows needs.
        order: of the method; an error estimate goes with this power of a step's length.
    """

    def __init__(self, steps: Sequence[np.ndarray], coverage: float, order: int):
        self.coverage, self.order, self.aim = coverage, order, AIM
        middle = (np.arange(CELLS) + 0.5) / CELLS
        rows = [1 / np.diff(ends)[np.clip(np.searchsorted(ends, middle) - 1, 0, len(ends) - 2)] for ends in steps]
        self.density = np.quantile(rows, coverage, axis=0) if rows else np.ones(CELLS)

    def ends(self) -> tuple[float, ...]:
        """Step ends that share the density equally."""
        reached = np.concatenate([[0.0], np.cumsum(self.density) / CELLS])
        count = max(1, int(np.ceil(reached[-1] - 1e-9)))
        edges = np.linspace(0.0, 1.0, CELLS + 1)
        inner = np.interp(np.arange(1, count) * (reached[-1] / count), reached, edges)
        return (*map(float, inner), 1.0)

    def move(self, ends: tuple[float, ...], errors: np.ndarray, enough: bool) -> None:
        """More steps where errors are large, fewer where they are small.

        Args:
            ends: the steps that were tried.
            errors: `[rows, steps]` of these.
            enough: whether they held for enough rows; then fewer steps are tried, more otherwise.
        """
        if not len(errors):
            return
        self.aim = min(self.aim * (1.15 if enough else 0.75), 1.0)
        worst = np.quantile(errors, self.coverage, axis=0)
        factor = np.clip((worst / self.aim) ** (1 / self.order), 0.6, 2.0)
        edges, middle = np.concatenate([[0.0], ends]), (np.arange(CELLS) + 0.5) / CELLS
        step = np.clip(np.searchsorted(edges, middle) - 1, 0, len(ends) - 1)
        tried = 1 / np.diff(edges)
        # Not the whole way in the exponent, which would swing to and fro.
        self.density = tried[step] * factor[step] ** 0.7
