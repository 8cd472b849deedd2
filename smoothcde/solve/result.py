"""What a solve has to say: states, counts, steps, and per row whether and how it ended."""

import enum
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

import numpy as np
from jaxtyping import Float
from torch import Tensor


class Status(enum.Enum):
    """How a row's integration ended; the value is a sentence, with the remedy where one is needed."""

    FINISHED = "The row was integrated to the end of its window."
    STEP_LIMIT = (
        "The step limit was reached: raise `max_steps`, loosen `rtol` and `atol`, or smooth the path more "
        "(a larger bandwidth takes fewer steps)."
    )
    STEP_UNDERFLOW = (
        "The step size underflowed: the tolerance cannot be met. Loosen `rtol` and `atol`, solve in float64, land on "
        'the path\'s knots (knots="land"), or smooth the path more.'
    )
    NON_FINITE = (
        "The state or its derivative became NaN or infinite: check the input for extreme values, bound the field "
        "(a tanh output does), or lower the learning rate."
    )


CODES = tuple(Status)


class SolveError(RuntimeError):
    """A solve that could not finish; says which rows and what to change. `solution` holds what there is."""

    def __init__(self, message: str, solution: "Solution | None" = None):
        super().__init__(message)
        # Without one only while it is unpickled, before its state is restored.
        self.solution: Solution = cast(Solution, solution)


@dataclass(frozen=True, eq=False)
class Stats:
    """Counts per row.

    Attributes:
        nfe: evaluations of the right-hand side, rejected steps and the choice of the first step included.
        accepted: steps kept.
        rejected: steps tried and thrown away.
        backward_nfe: evaluations made by a backward pass (checkpoint, adjoint); zero until one has run.
    """

    nfe: np.ndarray
    accepted: np.ndarray
    rejected: np.ndarray
    backward_nfe: np.ndarray


@dataclass(frozen=True, eq=False)
class Solution:
    """The outcome of `integrate`.

    Attributes:
        state: at the end of each row's window.
        states: at the requested times, if any were.
        stats: counts per row.
        codes: index of each row's `Status`.
    """

    state: Float[Tensor, "rows hidden"]
    states: Float[Tensor, "rows moments hidden"] | None
    stats: Stats
    codes: np.ndarray
    _trace: "Trace" = field(repr=False)

    @property
    def status(self) -> list[Status]:
        """How each row ended."""
        return [CODES[code] for code in self.codes]

    @property
    def finished(self) -> bool:
        """Whether every row reached the end of its window."""
        return not self.codes.any()

    @property
    def steps(self) -> list[np.ndarray]:
        """Per row, the times at which its accepted steps ended, its start first."""
        return self._trace.steps()

    def raise_if_failed(self) -> None:
        """Raise `SolveError` if any row did not finish."""
        if self.finished:
            return
        lines = []
        for code, status in enumerate(CODES):
            rows = np.flatnonzero(self.codes == code)
            if status is not Status.FINISHED and len(rows):
                shown = ", ".join(map(str, rows[:8])) + (f" and {len(rows) - 8} more" if len(rows) > 8 else "")
                lines.append(f"  rows {shown}: {status.value}")
        count = int((self.codes != 0).sum())
        raise SolveError("\n".join([f"{count} of {len(self.codes)} rows did not finish.", *lines]), self)


class Trace:
    """The accepted steps of all rows, written down as they happen and sorted out only when asked for."""

    def __init__(self, start: np.ndarray, unit_of_row: np.ndarray):
        self._unit_of_row = unit_of_row
        self._units = [np.arange(len(start))]
        self._times = [start.copy()]

    @classmethod
    def of(cls, steps: list[np.ndarray]) -> "Trace":
        """The trace of rows whose steps are known, each from its start."""
        trace = cls(np.array([ends[0] for ends in steps]), np.arange(len(steps)))
        for row, ends in enumerate(steps):
            trace.note(np.full(len(ends) - 1, row), ends[1:])
        return trace

    def note(self, units: np.ndarray, times: np.ndarray) -> None:
        """These units' steps ended at these times."""
        self._units.append(units)
        self._times.append(times)

    def steps(self) -> list[np.ndarray]:
        """Step ends per row."""
        units, times = np.concatenate(self._units), np.concatenate(self._times)
        order = np.argsort(units, kind="stable")
        edges = np.searchsorted(units[order], np.arange(units.max(initial=-1) + 2))
        per_unit = [times[order[a:b]] for a, b in pairwise(edges)]
        return [per_unit[unit] for unit in self._unit_of_row]
