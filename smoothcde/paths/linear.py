"""Linear interpolation."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from smoothcde.paths.missing import fill_linear
from smoothcde.paths.piecewise import PiecewisePath, at_grid, inner_knots, stamp_grid
from smoothcde.series import SeriesBatch


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearPath(PiecewisePath):
    """Straight lines between a channel's neighbouring observations.

    X(t) = x_k + (t - t_k) / (t_{k+1} - t_k) (x_{k+1} - x_k), channel by channel over what that channel observed;
    constant before its first and after its last observation, zero if it has none. The derivative jumps at every stamp:
    the stamps are `knots`, and a solver keeps its order only by ending steps there (`knots="land"`).
    """

    @classmethod
    def fit(cls, batch: SeriesBatch) -> "LinearPath":
        """Interpolate a batch of series."""
        grid, pieces, width = stamp_grid(batch)
        values = at_grid(fill_linear(batch))
        # Padding repeats the last stamp with unrelated values: no piece, no slope.
        slope = values.diff(dim=1) / width[:, :, None]
        slope = slope * (grid.diff(dim=1) > 0)[:, :, None]
        coefficients = torch.stack([values[:, :-1], slope], dim=2).to(batch.dtype)
        return cls(start=batch.start, end=batch.end, grid=grid, pieces=pieces, coefficients=coefficients)

    @property
    def knots(self) -> Float64[Tensor, "rows knots"]:
        """Every stamp strictly inside the window, and the first and last one where the window is wider."""
        return inner_knots(self.grid, self.start, self.end)
