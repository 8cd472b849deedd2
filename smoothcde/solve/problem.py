"""An initial value problem, checked, with its host-side bookkeeping laid out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from smoothcde.solve.options import SolverOptions
from smoothcde.solve.pace import Pace, Steady, Turning, turning_at_hand
from smoothcde.solve.rows import Rows
from smoothcde.solve.tableaus import TABLEAUS, Tableau
from smoothcde.solve.terms import AlongPath, Term


@dataclass(frozen=True, eq=False)
class Problem:
    """What to integrate, from where to where.

    Attributes:
        term: the right-hand side.
        z0: states at each row's start.
        start: of each row's window, on the host.
        end: of each row's window.
        times: moments per row at which states are wanted, inside the window, or None.
        rows: all rows.
        options: how to go about it.
    """

    term: Term
    z0: Float[Tensor, "rows hidden"]
    start: np.ndarray
    end: np.ndarray
    times: np.ndarray | None
    rows: Rows
    options: SolverOptions

    @classmethod
    def of(
        cls, term: Term, z0: Tensor, start: Any, end: Any, times: Any, views: int, options: SolverOptions
    ) -> "Problem":
        """Check shapes and bring windows and times to the host."""
        if z0.ndim != 2:
            raise ValueError(f"z0 has shape {tuple(z0.shape)}; expected [rows, hidden]")
        count = z0.shape[0]
        if isinstance(term, AlongPath) and term.path.rows != count:
            raise ValueError(f"z0 has {count} rows and the path {term.path.rows}; give one state per row of the path")
        smallest = torch.finfo(z0.dtype).eps
        if options.rtol < smallest:
            raise ValueError(f"rtol is {options.rtol:g}, finer than {z0.dtype} resolves ({smallest:.1e}); use float64")
        begin, finish = _per_row(start, "start", count), _per_row(end, "end", count)
        if (wrong := np.flatnonzero(~(begin <= finish))).size:
            raise ValueError(f"row {wrong[0]} ends at {finish[wrong[0]]:g}, before its start {begin[wrong[0]]:g}")
        wanted = None if times is None else _wanted(times, begin, finish)
        return cls(term, z0, begin, finish, wanted, Rows.all(count, views), options)

    @property
    def tableau(self) -> Tableau:
        """The method."""
        return TABLEAUS[self.options.solver]

    @property
    def unit_of_row(self) -> np.ndarray:
        """Which unit, that is, which step size, each row follows."""
        count = len(self.start)
        if self.options.step_control == "row":
            return np.arange(count)
        if self.options.step_control == "sample":
            return np.arange(count) % self.rows.samples
        return np.zeros(count, dtype=np.int64)

    def unit_windows(self, unit_of_row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The interval each unit covers: the union of its rows' windows."""
        units = int(unit_of_row.max(initial=-1)) + 1
        start, end = np.full(units, np.inf), np.full(units, -np.inf)
        np.minimum.at(start, unit_of_row, self.start)
        np.maximum.at(end, unit_of_row, self.end)
        return start, end

    def unit_knots(self, knots: Tensor | None, units: int) -> np.ndarray:
        """The points each unit lands on: all knots of its rows."""
        if knots is None or self.options.knots == "step_over":
            return np.zeros((units, 0))
        host = knots.double().cpu().numpy()
        if self.options.step_control == "row":
            return host
        if self.options.step_control == "sample":
            per_view = host.reshape(self.rows.views, self.rows.samples, -1)
            return np.swapaxes(per_view, 0, 1).reshape(self.rows.samples, -1)
        return np.unique(host[np.isfinite(host)])[None]

    def unit_pace(self, unit_of_row: np.ndarray, start: np.ndarray, end: np.ndarray) -> Pace:
        """The clock of steps over the units' windows: a path's turns where it tells them, the largest of a unit's rows;
        time elsewhere.
        """
        if not isinstance(self.term, AlongPath) or self.options.classical:
            return Steady()
        path = self.term.path
        own = torch.stack([path.start, path.end]).detach().cpu().numpy()
        if not np.array_equal(own, np.stack([start, end])[:, unit_of_row]):
            return Steady()
        if (rate := turning_at_hand(path)) is None:
            return Steady()
        # A path with a derivative that is no number ends its own row, and changes nothing for the others.
        rate = np.where(np.isfinite(rate).all(axis=1, keepdims=True), rate, 1.0)
        if self.options.step_control == "sample":
            rate = rate.reshape(self.rows.views, self.rows.samples, -1).max(axis=0)
        return Turning.of(start, end, rate)

    def unit_limits(self, longest: Tensor | None, unit_of_row: np.ndarray, units: int) -> np.ndarray:
        """The longest step of each unit: that of its row with the shortest."""
        limits = np.full(units, np.inf)
        if longest is not None and self.options.knots == "land":
            np.minimum.at(limits, unit_of_row, longest.double().cpu().numpy())
        return limits


def _per_row(bound: Any, name: str, count: int) -> np.ndarray:
    array = bound.detach().double().cpu().numpy() if isinstance(bound, Tensor) else np.asarray(bound, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != count):
        raise ValueError(f"{name} has shape {array.shape}; give one number, or one per row ({count})")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has NaN or infinite entries; windows must be finite")
    return np.broadcast_to(array, (count,)).copy()


def _wanted(times: Any, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    array = times.detach().double().cpu().numpy() if isinstance(times, Tensor) else np.asarray(times, dtype=np.float64)
    if array.ndim == 1:
        array = np.broadcast_to(array, (len(start), len(array)))
    if array.ndim != 2 or len(array) != len(start):
        raise ValueError(f"times have shape {array.shape}; give [moments] for all rows, or [rows, moments]")
    if np.isnan(array).any():
        raise ValueError("times hold NaN; give every requested moment a number")
    # Before its window a row is at z0, after it at its final state.
    return np.clip(array, start[:, None], end[:, None])
