"""Natural cubic splines, each channel over its own observations."""

from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from smoothcde.paths.missing import fill_linear, next_observed, previous_observed
from smoothcde.paths.piecewise import PiecewisePath, stamp_grid
from smoothcde.paths.tridiagonal import solve_tridiagonal
from smoothcde.series import SeriesBatch

AnySpline = TypeVar("AnySpline", bound="NaturalCubicPath")


@dataclass(frozen=True, eq=False, kw_only=True)
class NaturalCubicPath(PiecewisePath):
    """The C2 cubic spline through a channel's observations with X'' = 0 at both ends.

    A channel's stamps before its first and after its last observation take that observation's value, as torchcde's
    `natural_cubic_coeffs` does; missing stamps in between are no knots of that channel. Exact interpolation follows
    every wiggle of the noise, which is what smoothing paths avoid.
    """

    @classmethod
    def fit(cls, batch: SeriesBatch) -> "NaturalCubicPath":
        """Interpolate a batch of series."""
        return cls.through(batch, fill_linear(batch))

    @classmethod
    def through(cls: type[AnySpline], batch: SeriesBatch, values: Float64[Tensor, "n length channels"]) -> AnySpline:
        """The spline through `values` at the batch's observed stamps (and the stamps filled at both ends)."""
        grid, pieces, _ = stamp_grid(batch)
        coefficients = spline_pieces(batch.times, values, _spline_knots(batch), batch.lengths)
        return cls(
            start=batch.start, end=batch.end, grid=grid, pieces=pieces, coefficients=coefficients.to(batch.dtype)
        )


def _spline_knots(batch: SeriesBatch) -> Bool[Tensor, "n length channels"]:
    """Observed stamps, and all stamps before a channel's first and after its last observation."""
    open_ended = (previous_observed(batch.mask) < 0) | (next_observed(batch.mask) >= batch.values.shape[1])
    return (batch.mask | open_ended) & batch.stamped[:, :, None]


def spline_pieces(
    times: Float64[Tensor, "n length"],
    values: Float64[Tensor, "n length channels"],
    knots: Bool[Tensor, "n length channels"],
    lengths: Tensor,
) -> Float64[Tensor, "n pieces 4 channels"]:
    """Cubic coefficients on every interval between neighbouring stamps, knot of the channel or not."""
    length = times.shape[1]
    if length < 2:
        still = torch.zeros_like(values)
        return torch.stack([values, still, still, still], dim=2)
    # Knots of each channel moved to the front, so that all channels of all series are solved as one system.
    order = (~knots).to(torch.uint8).argsort(dim=1, stable=True)
    count = knots.sum(dim=1, keepdim=True)
    t = times[:, :, None].expand_as(values).gather(1, order)
    x = values.gather(1, order)
    step = t.diff(dim=1)
    real = torch.arange(length - 1, device=times.device)[None, :, None] < count - 1
    inverse = torch.where(real, 1 / torch.where(real, step, 1.0), 0.0)
    slope = _knot_slopes(x, inverse)

    line = x.diff(dim=1) * inverse
    bend = (3 * line - 2 * slope[:, :-1] - slope[:, 1:]) * inverse
    twist = (slope[:, :-1] + slope[:, 1:] - 2 * line) * inverse**2
    # Back to the stamps: each interval takes the piece that covers it, moved to begin at the interval's stamp.
    piece = (knots.cumsum(dim=1)[:, :-1] - 1).clamp(min=0).minimum((count - 2).clamp(min=0))
    a, b, c, d = (p.gather(1, piece) for p in (x, slope, bend, twist))
    shift = times[:, :-1, None] - t.gather(1, piece)
    moved = torch.stack(
        [a + shift * (b + shift * (c + shift * d)), b + shift * (2 * c + 3 * shift * d), c + 3 * shift * d, d], dim=2
    )
    within = (torch.arange(length - 1, device=times.device) < lengths[:, None] - 1)[:, :, None, None]
    still = torch.cat([values[:, :-1, None], torch.zeros_like(moved[:, :, 1:])], dim=2)
    return torch.where(within, moved, still)


def _knot_slopes(x: Tensor, inverse: Tensor) -> Tensor:
    """Slopes at the knots that make the spline C2 and straight at its ends; zero where there is no second knot."""
    diagonal = torch.zeros_like(x)
    right = torch.zeros_like(x)
    diagonal[:, :-1] += 2 * inverse
    diagonal[:, 1:] += 2 * inverse
    pull = 3 * x.diff(dim=1) * inverse**2
    right = torch.cat([pull, torch.zeros_like(pull[:, :1])], dim=1) + torch.cat(
        [torch.zeros_like(pull[:, :1]), pull], dim=1
    )
    diagonal = torch.where(diagonal > 0, diagonal, 1.0)
    return solve_tridiagonal(diagonal, inverse, right)
