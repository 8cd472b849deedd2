"""Rows that share their steps but not their windows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from smoothcde.solve.rows import Rows
from smoothcde.solve.terms import Term


class _WindowedControls(NamedTuple):
    inner: Tensor
    inside: Bool[Tensor, "rows stages"]


@dataclass(frozen=True, eq=False)
class WindowedTerm(Term):
    """A term inside each row's own window; outside it the row stands still.

    A unit's steps cover the union of its rows' windows. A path is constant outside its own window, but the window to
    integrate over may be narrower than the path's, and other terms know of no window at all.
    """

    term: Term
    start: Float64[Tensor, "rows"]
    end: Float64[Tensor, "rows"]

    @classmethod
    def where_needed(cls, term: Term, start: np.ndarray, end: np.ndarray, unit_of_row: np.ndarray, device) -> Term:
        """The term itself where all rows of a unit have the same window."""
        _, first = np.unique(unit_of_row, return_index=True)
        if (start == start[first][unit_of_row]).all() and (end == end[first][unit_of_row]).all():
            return term
        return cls(term, torch.as_tensor(start, device=device), torch.as_tensor(end, device=device))

    def controls(self, times: Float64[Tensor, "rows stages"]) -> _WindowedControls:
        """The inner term's, and which times are inside."""
        inside = (times >= self.start[:, None]) & (times <= self.end[:, None])
        return _WindowedControls(self.term.controls(times), inside)

    def slope(
        self, z: Float[Tensor, "rows hidden"], controls: _WindowedControls, stage: int, rows: Rows
    ) -> Float[Tensor, "rows hidden"]:
        """The inner term's slope, or zero."""
        slope = self.term.slope(z, controls.inner, stage, rows)
        return torch.where(controls.inside[:, stage, None], slope, 0.0)

    def select(self, positions: Tensor) -> "WindowedTerm":
        """The given rows with their windows."""
        return replace(self, term=self.term.select(positions), start=self.start[positions], end=self.end[positions])

    @property
    def knots(self) -> Float64[Tensor, "rows knots"]:
        """The inner term's, and the ends of the windows: a row stops there while its unit goes on."""
        ends = torch.stack([self.start, self.end], dim=1)
        return ends if self.term.knots is None else torch.cat([self.term.knots, ends], dim=1)

    @property
    def longest_step(self) -> Float64[Tensor, "rows"] | None:
        """The inner term's."""
        return self.term.longest_step

    def tensors(self) -> tuple[Tensor, ...]:
        """The inner term's."""
        return self.term.tensors()

    def with_tensors(self, tensors: Sequence[Tensor]) -> "WindowedTerm":
        """The same windows on other tensors."""
        return replace(self, term=self.term.with_tensors(tensors))

    def parameters(self) -> tuple[Tensor, ...]:
        """The inner term's."""
        return self.term.parameters()

    def prepared(self) -> "WindowedTerm":
        """The inner term, prepared."""
        return replace(self, term=self.term.prepared())
