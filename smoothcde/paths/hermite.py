"""Cubic Hermite interpolation with backward differences."""

from dataclasses import dataclass

import torch

from smoothcde.paths.missing import fill_linear
from smoothcde.paths.piecewise import PiecewisePath, at_grid, constant_outside, stamp_grid
from smoothcde.series import SeriesBatch


@dataclass(frozen=True, eq=False, kw_only=True)
class HermitePath(PiecewisePath):
    """Cubic pieces whose slope at a stamp is that of the line *into* it, so that the past never learns of the future.

    X(t_k) = x_k and X'(t_k) = (x_k - x_{k-1}) / (t_k - t_{k-1}), with the first line's slope at the first stamp
    (Morrill et al., "On the choice of interpolation scheme for neural CDEs", 2022). Missing values are first filled
    linearly. X' is continuous; there is nothing to land on.
    """

    @classmethod
    def fit(cls, batch: SeriesBatch) -> "HermitePath":
        """Interpolate a batch of series."""
        grid, pieces, width = stamp_grid(batch)
        width = width[:, :, None]
        values = at_grid(fill_linear(batch))
        line = values.diff(dim=1) / width
        into = torch.cat([line[:, :1], line[:, :-1]], dim=1)
        # With both end values and both end slopes given, the cubic's bend comes from how the slope changes.
        change = line - into
        coefficients = torch.stack([values[:, :-1], into, 2 * change / width, -change / width**2], dim=2)
        coefficients = constant_outside(batch, coefficients).to(batch.dtype)
        return cls(start=batch.start, end=batch.end, grid=grid, pieces=pieces, coefficients=coefficients)
