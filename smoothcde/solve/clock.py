"""Time, step sizes and verdicts of all units, on the host.

A *unit* is what shares a step size: a row, the views of a sample, or the whole batch. Its bookkeeping is a handful of
numbers, kept in NumPy and float64; the device only ever sends back an error or two per row and step, which is the one
synchronisation a step needs.
"""

from dataclasses import dataclass

import numpy as np

from smoothcde.solve.controller import Controller
from smoothcde.solve.estimate import Estimate
from smoothcde.solve.pace import Pace
from smoothcde.solve.result import CODES, Status

RUNNING = -1
_CODE = {status: code for code, status in enumerate(CODES)}
STRETCH = 1.01
"""A step that would leave less than 1% of itself before a landing point goes all the way."""


def smallest_steps(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Steps over a window that are too short to go on with."""
    return 1e-13 * np.maximum(end - start, np.abs(start) * 1e-2)


@dataclass(frozen=True)
class Proposal:
    """The step every unit is about to try; finished units have zero steps."""

    begin: np.ndarray
    end: np.ndarray
    size: np.ndarray


class Clock:
    """Where each unit is, how far it wants to step, and how it fared."""

    def __init__(
        self,
        start: np.ndarray,
        end: np.ndarray,
        knots: np.ndarray,
        limits: np.ndarray,
        controller: Controller,
        max_steps: int,
        pace: Pace,
    ):
        self.time = start.astype(np.float64).copy()
        self.size = np.zeros(len(start))
        self.nfe = np.zeros(len(start), dtype=np.int64)
        self.accepted = np.zeros(len(start), dtype=np.int64)
        self.rejected = np.zeros(len(start), dtype=np.int64)
        self.code = np.where(end > start, RUNNING, _CODE[Status.FINISHED])
        self._end, self._limits = end, limits
        self._controller, self._max_steps, self._pace = controller, max_steps, pace
        self._previous = np.ones(len(start))
        self.landed = np.zeros(len(start), dtype=bool)
        # Points to land on: knots strictly inside the window, then its end.
        inside = (knots > start[:, None]) & (knots < end[:, None])
        landings = np.sort(np.where(inside, knots, np.inf), axis=1)
        self._landings = np.concatenate([np.minimum(landings, end[:, None]), end[:, None]], axis=1)
        self._next = np.zeros(len(start), dtype=np.int64)
        self._smallest = smallest_steps(start, end)

    @property
    def running(self) -> np.ndarray:
        """Which units have not ended yet."""
        return self.code == RUNNING

    def begin(self, size: np.ndarray) -> None:
        """Set the first step sizes, in ticks of the pace; units whose first slope was not finite end here."""
        self.code[self.running & ~np.isfinite(size)] = _CODE[Status.NON_FINITE]
        self.size = np.where(self.running, size, 0.0)

    def propose(self) -> Proposal:
        """The next step of every unit, ending exactly on the next landing point if it gets there."""
        running = self.running
        target = self._target()
        room = target - self.time
        wanted = np.minimum(self._pace.length(self.time, self.size), self._limits)
        lands = wanted * STRETCH >= room
        size = np.where(lands, room, wanted)
        if (nearly := ~lands & (2 * wanted > room)).any():
            # Two equal steps to the landing point instead of a long one and a sliver.
            half = self._pace.length(self.time, self._pace.size(self.time, room) / 2)
            size = np.where(nearly, np.minimum(half, wanted), size)
        size = np.where(running, size, 0.0)
        end = np.where(running & lands, target, self.time + size)
        return Proposal(self.time, end, size)

    def count(self, evaluations: int, of: np.ndarray | None = None) -> None:
        """Every running unit (or those of `of`) was evaluated this often."""
        self.nfe[self.running if of is None else self.running & of] += evaluations

    def settle(self, step: Proposal, error: Estimate) -> np.ndarray:
        """Accept or reject each unit's step by its error; return which were accepted."""
        running = self.running
        finite = np.isfinite(error.ratio)
        ratio = np.where(finite, error.ratio, np.inf)
        accepted = running & (ratio <= 1)
        rejected = running & ~accepted
        self.accepted[accepted] += 1
        self.rejected[rejected] += 1

        taken = self._pace.size(step.begin, step.size)
        size = taken * self._controller.factor(ratio, self._previous, error.order)
        # A step cut short by a landing point says nothing against the size that was wanted before it. (Not by rounding
        # on the way from ticks to time and back.)
        size = np.where(accepted & (taken < (1 - 1e-9) * self.size), np.maximum(size, self.size), size)
        self.size = np.where(running, size, self.size)
        self._previous = np.where(accepted, np.maximum(ratio, 1e-4), self._previous)
        self.time = np.where(accepted, step.end, self.time)
        # Whose last accepted step ended on a landing point, and who has not tried a step since.
        self.landed = accepted & (self.time >= self._target())
        self._next[self.landed] += 1
        self._next = np.minimum(self._next, self._landings.shape[1] - 1)
        # Landing points that fell together are passed together.
        while (behind := running & (self._target() <= self.time) & (self.time < self._end)).any():
            self._next[behind] += 1

        self.code[accepted & (self.time >= self._end)] = _CODE[Status.FINISHED]
        if rejected.any():
            stuck = rejected & (self._pace.length(self.time, self.size) < self._smallest)
            self.code[stuck] = _CODE[Status.STEP_UNDERFLOW]
            self.code[stuck & ~finite] = _CODE[Status.NON_FINITE]
        self.code[self.running & (self.accepted + self.rejected >= self._max_steps)] = _CODE[Status.STEP_LIMIT]
        return accepted

    def _target(self) -> np.ndarray:
        """The next landing point of each unit."""
        return self._landings[np.arange(len(self.time)), self._next]
