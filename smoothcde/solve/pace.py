"""The clock by which steps are measured: time itself, or how often a path turns in it."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from smoothcde.paths import Path

CELLS = 64
"""Equal parts of a window on which a path is looked at, each in its middle."""
_MIDDLES = tuple((cell + 0.5) / CELLS for cell in range(CELLS))
QUIET = 0.05
"""A path that stands still is taken to turn at this share of its mean rate: nothing is to be divided by zero."""


class _Turns(NamedTuple):
    """Steps of a method over a path = always + rate * tolerance^(-1/(order + 1)) * turns.

    Fitted by `benchmarks/predicted_cost.py` to generated series of many bandwidths and fields as models begin with.
    """

    always: float
    rate: float


TURNS = {
    "bosh3": _Turns(0.00, 0.2232),
    "bs5": _Turns(0.31, 0.1118),
    "dopri5": _Turns(0.35, 0.1421),
    "tsit5": _Turns(0.25, 0.1587),
    "dopri8": _Turns(0.08, 0.1927),
}
TURNS_BY_TIME = {
    "bosh3": _Turns(2.45, 0.2245),
    "bs5": _Turns(2.22, 0.1335),
    "dopri5": _Turns(2.16, 0.1496),
    "tsit5": _Turns(2.11, 0.1730),
    "dopri8": _Turns(1.66, 0.2286),
}
"""Of paths that do not have their derivatives at hand, and are stepped along by time."""


def turning(path: Path) -> np.ndarray:
    """How often per window the state that a path drives turns, `[rows, CELLS]`: in the first cell, the second, ...

    A method of order p errs by the (p+1)-th derivative of the state, which along z' = f(z) X' is a sum of products of
    the path's derivatives whose orders add up to p + 1, and a step's length goes with its (p+1)-th root. Theorem 1 of
    the paper keeps the highest derivative alone, which very smooth paths hardly have. The fourth-order products,
    whatever the method's order, tell the error of a step within a factor of 1.6 before it is taken (root mean square
    of the logarithm over the steps of UWaveGestureLibrary; third-order ones 2.1, the step's length alone 8.5).
    """
    if (known := turning_at_hand(path)) is not None:
        return known
    window = (path.end - path.start)[:, None]
    with torch.no_grad():
        times = path.times_at(_MIDDLES)
        found = [path.derivative(times, order).double().square().sum(dim=2) for order in (1, 2, 3, 4)]
        return _rate(torch.stack([squares * window ** (2 * order) for order, squares in enumerate(found, start=1)]))


def turning_at_hand(path: Path) -> np.ndarray | None:
    """The same where a path has its derivatives at hand; None where they would cost as much as a part of a solve."""
    with torch.no_grad():
        found = path.squared_derivatives_at(_MIDDLES, 4)
        return None if found is None else _rate(found)


def _rate(squares: Float64[Tensor, "4 rows cells"]) -> np.ndarray:
    a, b, c, d = squares.sqrt()
    return ((squares[0] + b) * squares[0] + squares[1] + a * c + d).sqrt().sqrt().cpu().numpy()


def turns_of_a_step(rate: float, order: int, tolerance: float) -> float:
    """Turns in a step that a method takes, at a tolerance, of fields as models begin with."""
    return tolerance ** (1 / (order + 1)) / rate


@runtime_checkable
class Pace(Protocol):
    """A clock for every unit; step sizes are in its ticks."""

    def length(self, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
        """The time that a step of this size takes from here."""
        ...

    def size(self, begin: np.ndarray, length: np.ndarray) -> np.ndarray:
        """The size of a step that takes this time from here."""
        ...


class Steady:
    """Time itself."""

    def length(self, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
        """The size."""
        return size

    def size(self, begin: np.ndarray, length: np.ndarray) -> np.ndarray:
        """The length."""
        return length


@dataclass(frozen=True, eq=False)
class Turning:
    """The turns of a path: steps of one size are about equally hard wherever they are, and end sooner where a bend lies
    ahead that cells are fine enough to show.

    Attributes:
        start: of each unit's window.
        window: its length.
        rate: turns per window in each of its equal cells.
        reached: turns from the start to each end of a cell.
    """

    start: np.ndarray
    window: np.ndarray
    rate: np.ndarray
    reached: np.ndarray

    @classmethod
    def of(cls, start: np.ndarray, end: np.ndarray, rate: np.ndarray) -> "Turning":
        """The clock of units that turn at a rate `[units, cells]` over their windows."""
        window = np.where(end > start, end - start, 1.0)
        rate = np.maximum(rate, np.maximum(QUIET * rate.mean(axis=1, keepdims=True), 1e-6))
        reached = np.cumsum(rate, axis=1) / rate.shape[1]
        return cls(start, window, rate, np.concatenate([np.zeros((len(rate), 1)), reached], axis=1))

    def length(self, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Until so many turns have been made; beyond the window at the rate of its last cell."""
        share = self._share(begin)
        aim = self._at(share) + size
        cell = (self._ends > aim[:, None]).argmax(axis=1)
        there = cell / self._cells + (aim - self._reached_at(cell)) / self._rate_in(cell)
        return (there - share) * self.window

    def size(self, begin: np.ndarray, length: np.ndarray) -> np.ndarray:
        """Turns on the way."""
        share = self._share(begin)
        return self._at(share + length / self.window) - self._at(share)

    @property
    def first(self) -> np.ndarray:
        """Turns per time at the start of the windows."""
        return self.rate[:, 0] / self.window

    @property
    def _cells(self) -> int:
        return self.rate.shape[1]

    @cached_property
    def _units(self) -> np.ndarray:
        return np.arange(len(self.rate))

    @cached_property
    def _ends(self) -> np.ndarray:
        """Turns until the end of each cell; the last one has none."""
        return np.concatenate([self.reached[:, 1:-1], np.full((len(self.rate), 1), np.inf)], axis=1)

    def _reached_at(self, cell: np.ndarray) -> np.ndarray:
        # By one flat index: half the time of an index per axis, and this is asked several times per step.
        return self.reached.take(self._units * (self._cells + 1) + cell)

    def _rate_in(self, cell: np.ndarray) -> np.ndarray:
        return self.rate.take(self._units * self._cells + cell)

    def _share(self, time: np.ndarray) -> np.ndarray:
        return (time - self.start) / self.window

    def _at(self, share: np.ndarray) -> np.ndarray:
        """Turns from the start."""
        cell = np.minimum(np.maximum((share * self._cells).astype(np.int64), 0), self._cells - 1)
        return self._reached_at(cell) + (share - cell / self._cells) * self._rate_in(cell)
