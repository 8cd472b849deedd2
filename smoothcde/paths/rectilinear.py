"""Rectilinear interpolation: causal, on a clock of its own."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from smoothcde.paths.missing import next_observed, previous_observed
from smoothcde.paths.piecewise import PiecewisePath, inner_knots
from smoothcde.series import SeriesBatch


@dataclass(frozen=True, eq=False, kw_only=True)
class RectilinearPath(PiecewisePath):
    """First time moves on with the values held, then the values move with time held.

    Between two stamps the path goes (t_k, x_k) -> (t_{k+1}, x_k) -> (t_{k+1}, x_{k+1}). That is not a function of time:
    it lives on 2N - 1 pseudo-times 0, 1, ..., 2N - 2, and **needs its time channel**, which is therefore always its
    last channel, in units of `time_scale`. In return nothing before t_k depends on anything after it, which makes it
    the interpolant for online use. `clock` turns real times into pseudo-times, landing after the jump of a stamp.

    A value stays until the channel's next observation. Before a channel's first observation it takes that observation
    (as torchcde does), which is the one place where it is not causal; fill in a value of your own to avoid it.
    """

    stamps: Float64[Tensor, "rows stamps"]

    @classmethod
    def fit(cls, batch: SeriesBatch, time_scale: float = 1.0) -> "RectilinearPath":
        """Interpolate a batch of series; the time channel is (t - start) / time_scale."""
        length = batch.values.shape[1]
        previous, following = previous_observed(batch.mask), next_observed(batch.mask)
        held = torch.where(previous >= 0, previous, following.clamp(max=length - 1))
        values = batch.values.double().gather(1, held) * batch.mask.any(dim=1, keepdim=True)
        moments = batch.times[:, :, None] / time_scale
        # Corner 2k is stamp k; corner 2k - 1 has stamp k's time and stamp k - 1's values.
        values = values.repeat_interleave(2, dim=1)[:, : max(2 * length - 1, 2)]
        moments = moments.repeat_interleave(2, dim=1)
        moments = torch.cat([moments[:, :1], moments[:, 2:], moments[:, -1:]], dim=1)[:, : values.shape[1]]
        corners = torch.cat([values, moments], dim=2)
        last = (2 * batch.lengths - 2).clamp(min=0)
        grid = torch.arange(corners.shape[1], device=batch.device, dtype=torch.float64).expand(len(batch), -1)
        within = (grid[:, :-1] < last[:, None])[:, :, None]
        coefficients = torch.stack([corners[:, :-1], corners.diff(dim=1) * within], dim=2).to(batch.dtype)
        return cls(
            start=batch.start,
            end=last.double(),
            grid=grid.contiguous(),
            pieces=last.clamp(min=1),
            coefficients=coefficients,
            stamps=torch.where(batch.stamped, batch.times, torch.inf),
        )

    def clock(self, t: Float64[Tensor, "rows moments"]) -> Float64[Tensor, "rows moments"]:
        """Pseudo-time at real time t: 2k at stamp k, and part of the way to 2k + 1 between stamps."""
        last = (self.end / 2).long()[:, None]
        stamp = (torch.searchsorted(self.stamps, t.contiguous(), right=True) - 1).clamp(min=0).minimum(last)
        here, there = self.stamps.gather(1, stamp), self.stamps.gather(1, (stamp + 1).minimum(last))
        gap = there - here
        share = torch.where(gap > 0, (t - here) / torch.where(gap > 0, gap, 1.0), 0.0)
        return (2.0 * stamp + share.clamp(0.0, 1.0)).minimum(self.end[:, None])

    @property
    def knots(self) -> Float64[Tensor, "rows knots"]:
        """Every corner."""
        return inner_knots(self.grid, self.start, self.end)

    def _smooth_fields(self) -> list[str]:
        return [name for name in super()._smooth_fields() if name != "stamps"]
