"""Nadaraya-Watson kernel smoothing."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from smoothcde.paths.base import LONGEST_STEP, Path, positive_per_view, repeat_views, view_weights
from smoothcde.paths.kernel_reach import near_stamps
from smoothcde.paths.kernels import kernel_named
from smoothcde.paths.missing import previous_observed
from smoothcde.paths.piecewise import inner_knots
from smoothcde.series import SeriesBatch

WIDE_GAP = 3.0
"""A gap of more bandwidths than this makes the Gaussian path a sharp step, which a solver could jump over."""
STEP_REACH = 8.0
"""Half-width of such a step, in units of bandwidth^2 / gap, that steps should end at."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelPath(Path):
    """X(t) = sum_k alpha_k k_h(t - t_k) x_k / sum_j alpha_j k_h(t - t_j) (the paper's eq. 4), channel by channel.

    It is a softmax over log alpha_k + log k_h(t - t_k), which stays finite at any distance from the observations. For
    the Gaussian, X'(t) is the weighted covariance of (t_k, x_k) divided by h^2. Across a gap D wider than a few h the
    path is a step of width h^2 / D: its foot, middle and head are `knots`, lest a solver step over it.

    A channel without observations is zero. Compact kernels (Epanechnikov, tricube) are 0/0 in gaps wider than 2 h:
    there the path takes the nearest observation, and jumps half-way, a jump no CDE sees (its derivative is zero on both
    sides).

    In long series, a moment looks at the observations only that are not too far from it to count (`kernel_reach.py`);
    the Cauchy kernel, which forgets none, at all of them.

    Attributes:
        stamps: times of the observations.
        values: the observations, 0 where there is none.
        seen: where there is one, and its weight is not zero.
        log_weights: log alpha, 0 without weights.
        bandwidth: h of each row.
        landings: see `knots`.
        kernel: name of k.
        shared: all channels were observed at the same stamps, so that one softmax serves all.
        near: where the stamps begin that count in each gap between stamps; None if all do.
        near_count: how many of them to take.
    """

    stamps: Float64[Tensor, "rows length"]
    values: Float[Tensor, "rows length channels"]
    seen: Bool[Tensor, "rows length channels"]
    log_weights: Float64[Tensor, "rows length"]
    bandwidth: Float64[Tensor, "rows"]
    landings: Float64[Tensor, "rows knots"]
    kernel: str = "gaussian"
    shared: bool = True
    near: Int[Tensor, "rows gaps"] | None = None
    near_count: int = 0

    @classmethod
    def fit(
        cls,
        batch: SeriesBatch,
        bandwidth: Any,
        weights: Float[Tensor, "n views length"] | None = None,
        kernel: str = "gaussian",
    ) -> "KernelPath":
        """Smooth a batch of series.

        Args:
            batch: the observations.
            bandwidth: h in time units, a number or one per view.
            weights: attention per view and stamp; stamps without observation are ignored whatever their weight.
            kernel: "gaussian", "laplacian", "cauchy", "epanechnikov" or "tricube".
        """
        kernel_named(kernel)
        views = view_weights(weights, batch)
        if weights is None:
            views = max(views, torch.as_tensor(bandwidth).numel())
        h = positive_per_view(bandwidth, "bandwidth", views, batch)
        shared = batch.together
        path = cls.of(batch, h, weights, kernel, shared=shared)
        seen = path.seen[:, :, :1] if shared else path.seen
        with torch.no_grad():
            landings = _landings(kernel, path.stamps, seen, path.log_weights, path.bandwidth, path.start, path.end)
            near, count = near_stamps(kernel, path.stamps, seen, path.log_weights, path.bandwidth) or (None, 0)
        return replace(path, landings=landings, near=near, near_count=count)

    @classmethod
    def of(
        cls,
        batch: SeriesBatch,
        bandwidth: Float64[Tensor, "views"],
        weights: Float[Tensor, "n views length"] | None = None,
        kernel: str = "gaussian",
        *,
        shared: bool = False,
    ) -> "KernelPath":
        """The path without its knots, for graphs: no step looks at the data to decide what to do next."""
        views = bandwidth.shape[0]
        h = bandwidth[:, None].expand(-1, batch.values.shape[0]).flatten()
        stamps, seen = repeat_views(batch.times, views), repeat_views(batch.mask, views)
        if weights is None:
            log_weights = torch.zeros_like(stamps)
        else:
            # A weight of exactly zero excludes its stamp as if nothing had been seen there, for the nearest value and
            # the knots too; the clamp keeps its gradient finite.
            weights = weights.double().transpose(0, 1).flatten(0, 1)
            log_weights = torch.log(weights.clamp(min=1e-300))
            seen = seen & (weights > 0)[:, :, None]
        return cls(
            start=repeat_views(batch.start, views),
            end=repeat_views(batch.end, views),
            stamps=stamps,
            values=repeat_views(batch.values, views) * seen,
            seen=seen,
            log_weights=log_weights,
            bandwidth=h,
            landings=stamps[:, :0],
            kernel=kernel,
            shared=shared,
        )

    def wide_gaps(self) -> Bool[Tensor, "rows"]:
        """Rows with a gap between a channel's observations that makes the Gaussian path a sharp step; see `knots`."""
        if self.kernel != "gaussian":
            return torch.zeros_like(self.start, dtype=torch.bool)
        before = previous_observed(self.seen).roll(1, dims=1)  # the roll's first entry has nothing before it
        first = torch.arange(before.shape[1], device=self.device)[None, :, None] == 0
        times = self.stamps[:, :, None].expand(self.seen.shape)
        gap = times - times.gather(1, before.clamp(min=0))
        wide = self.seen & ~first & (before >= 0) & (gap > WIDE_GAP * self.bandwidth[:, None, None])
        return wide.flatten(1).any(dim=1)

    @property
    def longest_step(self) -> Float64[Tensor, "rows"]:
        """A few bandwidths."""
        return LONGEST_STEP * self.bandwidth.detach()

    @property
    def template(self) -> Tensor:
        """The observations."""
        return self.values

    @property
    def knots(self) -> Float64[Tensor, "rows knots"]:
        """Kinks (Laplacian: the stamps; compact kernels: stamps +- h) or, for the Gaussian, steps across wide gaps."""
        return self.landings

    def _evaluate(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        if self.near is not None:
            return self._around(t)._evaluate(t.reshape(-1, 1)).view(*t.shape, -1)
        return self._average(self._shares(self._distance(t), t))

    def _derivative(self, t: Float64[Tensor, "rows moments"], order: int) -> Float[Tensor, "rows moments channels"]:
        if self.near is not None:
            return self._around(t)._derivative(t.reshape(-1, 1), order).view(*t.shape, -1)
        if order > 1:
            return super()._derivative(t, order)
        u = self._distance(t)
        slope = kernel_named(self.kernel).slope(u) / self.bandwidth[:, None, None]
        if kernel_named(self.kernel).compact:
            return self._compact_derivative(u, slope, t)
        shares = self._shares(u, t)
        # The covariance of slope and value under the shares; centring the slope first keeps digits far from the data.
        if self.shared:
            centred = slope - (shares * slope).sum(dim=2, keepdim=True)
            return (shares * centred).to(self.dtype) @ self.values
        centred = slope[..., None] - (shares * slope[..., None]).sum(dim=2, keepdim=True)
        return self._average(shares * centred)

    def _around(self, t: Tensor) -> "KernelPath":
        """The paths of these moments, a row each, on the stamps that count there."""
        assert self.near is not None
        rows, length = self.stamps.shape
        gap = torch.searchsorted(self.stamps.contiguous(), t.detach().contiguous(), right=True)
        place = self.near.gather(1, gap)[:, :, None] + torch.arange(self.near_count, device=self.device)
        row = torch.arange(rows, device=self.device)
        index = (place + row[:, None, None] * length).flatten()
        row = row.repeat_interleave(t.shape[1])
        stamps, values, seen, log_weights = (
            table.flatten(0, 1).index_select(0, index).unflatten(0, (len(row), self.near_count))
            for table in (self.stamps, self.values, self.seen, self.log_weights)
        )
        start, end, landings, h = (x[row] for x in (self.start, self.end, self.landings[:, :0], self.bandwidth))
        moved = {"stamps": stamps, "values": values, "seen": seen, "log_weights": log_weights, "bandwidth": h}
        return replace(self, start=start, end=end, landings=landings, near=None, **moved)

    def _distance(self, t: Tensor) -> Float64[Tensor, "rows moments length"]:
        return (t[:, :, None] - self.stamps[:, None, :]) / self.bandwidth[:, None, None]

    def _shares(self, u: Tensor, t: Tensor) -> Tensor:
        """How much each observation counts: `[rows, moments, length]`, channels behind unless they share stamps."""
        kernel = kernel_named(self.kernel)
        if kernel.compact:
            mass = self._compact_mass(u)
            total = mass.sum(dim=2, keepdim=True)
            return torch.where(total > 0, mass / torch.where(total > 0, total, 1.0), self._nearest(t))
        logits = self._excluding_unseen(kernel.value(u) + self.log_weights[:, None, :])
        # Where nothing was seen at all the values are zeros, and any finite shares will do.
        nothing = torch.isneginf(logits).all(dim=2, keepdim=True)
        return torch.softmax(logits.masked_fill(nothing, 0.0), dim=2)

    def _excluding_unseen(self, logits: Tensor) -> Tensor:
        seen = self.seen[:, None, :, 0] if self.shared else self.seen[:, None]
        logits = logits if self.shared else logits[..., None]
        return torch.where(seen, logits, -torch.inf)

    def _average(self, shares: Tensor) -> Tensor:
        shares = shares.to(self.dtype)
        return shares @ self.values if self.shared else (shares * self.values[:, None]).sum(dim=2)

    def _compact_mass(self, u: Tensor) -> Tensor:
        weights = torch.exp(self.log_weights - self.log_weights.max(dim=1, keepdim=True).values)
        mass = kernel_named(self.kernel).value(u) * weights[:, None, :]
        return mass * self.seen[:, None, :, 0] if self.shared else mass[..., None] * self.seen[:, None]

    def _nearest(self, t: Tensor) -> Tensor:
        """All share to the nearest observation: what a compact kernel means in a gap."""
        distance = (t[:, :, None] - self.stamps[:, None, :]).abs()
        nearest = (-self._excluding_unseen(-distance)).argmin(dim=2, keepdim=True)
        shares = torch.zeros_like(self._excluding_unseen(distance), dtype=torch.float64)
        return shares.scatter(2, nearest, 1.0)

    def _compact_derivative(self, u: Tensor, slope: Tensor, t: Tensor) -> Tensor:
        mass = self._compact_mass(u)
        weights = torch.exp(self.log_weights - self.log_weights.max(dim=1, keepdim=True).values)[:, None, :]
        change = slope * weights
        change = change * self.seen[:, None, :, 0] if self.shared else change[..., None] * self.seen[:, None]
        total = mass.sum(dim=2, keepdim=True)
        covered = total > 0
        safe = torch.where(covered, total, 1.0)
        # d/dt (mass / total); zero in gaps, where the path stands still at the nearest value.
        moved = (change - mass / safe * change.sum(dim=2, keepdim=True)) / safe
        return self._average(torch.where(covered, moved, 0.0))

    def _smooth_fields(self) -> list[str]:
        return ["values", "log_weights", "bandwidth"]


def _landings(kernel: str, stamps, seen, log_weights, h, start, end) -> Float64[Tensor, "rows knots"]:
    """Where a solver should end steps; `seen` has one channel if all share their stamps."""
    anywhere = torch.where(seen.any(dim=2), stamps, torch.inf)
    if kernel == "laplacian":
        return inner_knots(anywhere, start, end)
    if kernel_named(kernel).compact:
        edges = torch.cat([anywhere - h[:, None], anywhere + h[:, None]], dim=1)
        return inner_knots(edges.nan_to_num(nan=torch.inf), start, end)
    if kernel != "gaussian":
        return start.new_zeros(len(start), 0)
    # Each channel's neighbouring observations: unseen stamps move to the back and make no gap.
    t = torch.where(seen, stamps[:, :, None], torch.inf)
    t, order = t.sort(dim=1)
    weight = log_weights[:, :, None].expand_as(t).gather(1, order)
    gap = t.diff(dim=1)
    wide = gap.isfinite() & (gap > WIDE_GAP * h[:, None, None])
    sharpness = h[:, None, None] ** 2 / torch.where(wide, gap, 1.0)
    lean = torch.where(wide, weight[:, :-1] - weight[:, 1:], 0.0)
    middle = (t[:, :-1] + t[:, 1:]) / 2 + sharpness * lean
    corners = [torch.where(wide, middle + side * STEP_REACH * sharpness, torch.inf) for side in (-1, 0, 1)]
    return inner_knots(torch.cat([c.flatten(1) for c in corners], dim=1), start, end)
