"""Paths that are a polynomial between neighbouring stamps: the room that exact interpolants share."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from smoothcde.paths.base import Path
from smoothcde.series import SeriesBatch


@dataclass(frozen=True, eq=False, kw_only=True)
class PiecewisePath(Path):
    """X(t) = sum_j coefficients[piece, j] (t - grid[piece])^j on each piece of a row's own grid.

    Attributes:
        grid: where pieces begin and end; padding repeats the last time.
        pieces: how many pieces of each row count.
        coefficients: lowest power first.
    """

    grid: Float64[Tensor, "rows corners"]
    pieces: Int[Tensor, "rows"]
    coefficients: Float[Tensor, "rows pieces powers channels"]

    @property
    def template(self) -> Tensor:
        """The coefficients."""
        return self.coefficients

    @property
    def knots(self) -> Float64[Tensor, "rows knots"]:
        """The first and last stamp where the window is wider: the path stands still outside them."""
        return inner_knots(self.grid[:, [0, -1]], self.start, self.end)

    def _evaluate(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        return self._polynomial(t, order=0)

    def _derivative(self, t: Float64[Tensor, "rows moments"], order: int) -> Float[Tensor, "rows moments channels"]:
        return self._polynomial(t, order)

    def _polynomial(self, t: Tensor, order: int) -> Tensor:
        rows, _, powers, channels = self.coefficients.shape
        if order >= powers:
            return self.coefficients.new_zeros(*t.shape, channels)
        first, last = self.grid[:, :1], self.grid[:, -1:]
        between = (t >= first) & (t <= last)
        t = torch.clamp(t, first, last)
        # At a knot the piece that begins there speaks; a solver that wants the other side asks just before it.
        piece = torch.searchsorted(self.grid, t.contiguous(), right=True) - 1
        piece = piece.clamp(min=0).minimum(self.pieces[:, None] - 1)
        local = (t - self.grid.gather(1, piece)).to(self.dtype)[:, :, None]
        row = torch.arange(rows, device=self.device)[:, None]
        terms = self.coefficients[row, piece]
        value = torch.zeros_like(terms[:, :, 0])
        for power in range(powers - 1, order - 1, -1):
            factor = float(torch.arange(power - order + 1, power + 1).prod()) if order else 1.0
            value = value * local + factor * terms[:, :, power]
        # A window wider than the stamps: the path is constant before the first and after the last of them.
        return value if order == 0 else value * between[:, :, None].to(self.dtype)


def stamp_grid(
    batch: SeriesBatch,
) -> tuple[Float64[Tensor, "n corners"], Int[Tensor, "n"], Float64[Tensor, "n pieces"]]:
    """The batch's stamps as a grid of at least one piece, how many pieces count, and their widths (1 for padding)."""
    grid = batch.times if batch.times.shape[1] > 1 else batch.times.repeat(1, 2)
    width = grid.diff(dim=1)
    return grid, (batch.lengths - 1).clamp(min=1), torch.where(width > 0, width, 1.0)


def at_grid(values: Float64[Tensor, "n length channels"]) -> Float64[Tensor, "n length2 channels"]:
    """Values at every grid time of `stamp_grid`."""
    return values if values.shape[1] > 1 else values.repeat(1, 2, 1)


def constant_outside(batch: SeriesBatch, coefficients: Tensor) -> Tensor:
    """Zero slope on pieces of no width, which padding and single stamps make."""
    grid, _, _ = stamp_grid(batch)
    empty = (grid.diff(dim=1) <= 0)[:, :, None]
    powers = [coefficients[:, :, 0], *(c.masked_fill(empty, 0.0) for c in coefficients.unbind(2)[1:])]
    return torch.stack(powers, dim=2)


def inner_knots(
    times: Float64[Tensor, "rows moments"], start: Float64[Tensor, "rows"], end: Float64[Tensor, "rows"]
) -> Float64[Tensor, "rows knots"]:
    """The distinct times strictly inside each row's window, increasing, padded with infinity."""
    inside = (times > start[:, None]) & (times < end[:, None])
    times = torch.where(inside, times, torch.inf).sort(dim=1).values
    repeated = torch.zeros_like(times, dtype=torch.bool)
    repeated[:, 1:] = times[:, 1:] == times[:, :-1]
    times = torch.where(repeated, torch.inf, times).sort(dim=1).values
    return times[:, : int(times.isfinite().sum(dim=1).max()) if times.numel() else 0]
