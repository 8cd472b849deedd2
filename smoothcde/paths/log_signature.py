"""Log-signatures over windows: a path summarised by its increments and signed areas."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float64
from torch import Tensor

from smoothcde.checks import check_choice
from smoothcde.paths.linear import LinearPath
from smoothcde.paths.piecewise import PiecewisePath, inner_knots
from smoothcde.series import SeriesBatch


@dataclass(frozen=True, eq=False, kw_only=True)
class LogSignaturePath(PiecewisePath):
    """The running sum of log-signatures of the linear path over windows of length `step`, straight within a window.

    Depth 1 is the linear path through the windows' ends. Depth 2 appends, for every pair i < j of channels, the signed
    area 1/2 int (X_i - X_i(s)) dX_j - (X_j - X_j(s)) dX_i of the window, the coefficient of the bracket [i, j]. Its
    slope in a window is that window's log-signature over the window's length, which is what the log-ODE method
    integrates.

    Attributes:
        base_channels: how many of the channels are increments; the rest are areas.
    """

    base_channels: int

    @classmethod
    def fit(cls, batch: SeriesBatch, depth: int, step: float, time_scale: float | None = None) -> "LogSignaturePath":
        """Summarise a batch of series.

        Args:
            batch: the series; missing values are interpolated linearly.
            depth: 1 or 2.
            step: length of a window, in time units; the last window of a series may be shorter.
            time_scale: if given, time over it is a further channel, with areas of its own.
        """
        check_windows(depth, step)
        longest = float(batch.end.max()) if len(batch) else 0.0
        edges = torch.arange(max(int(-(-longest // step)), 1) + 1, device=batch.device, dtype=torch.float64) * step
        grid = torch.minimum(edges.expand(len(batch), -1), batch.end[:, None]).contiguous()
        curve = _Curve(batch, time_scale)
        values = curve.at(grid)
        increments = values.diff(dim=1)
        summary = increments if depth == 1 else torch.cat([increments, curve.areas(grid, values)], dim=2)
        areas = summary.shape[2] - increments.shape[2]
        running = torch.cat([values[:, :1], values.new_zeros(len(batch), 1, areas)], dim=2) + torch.cat(
            [torch.zeros_like(summary[:, :1]), summary.cumsum(dim=1)[:, :-1]], dim=1
        )
        width = grid.diff(dim=1)
        slope = torch.where(width[:, :, None] > 0, summary / torch.where(width > 0, width, 1.0)[:, :, None], 0.0)
        return cls(
            start=batch.start,
            end=batch.end,
            grid=grid,
            pieces=(width > 0).sum(dim=1).clamp(min=1),
            coefficients=torch.stack([running, slope], dim=2).to(batch.dtype),
            base_channels=increments.shape[2],
        )

    @property
    def knots(self) -> Float64[Tensor, "rows knots"]:
        """The windows' ends."""
        return inner_knots(self.grid, self.start, self.end)


def check_windows(depth: int, step: float) -> None:
    """Refuse a depth that is not offered and a window without length."""
    check_choice("depth", depth, (1, 2))
    if not step > 0:
        raise ValueError(f"step is {step}; a window's length must be positive")


class _Curve:
    """The linear path, time appended on request, with the running integrals that areas are made of."""

    def __init__(self, batch: SeriesBatch, time_scale: float | None):
        self._path = LinearPath.fit(replace(batch, values=batch.values.double()))
        self._stamps = batch.times.clamp(max=batch.end[:, None])
        self._time_scale = time_scale

    def at(self, times: Tensor) -> Float64[Tensor, "n moments channels"]:
        """Values at times."""
        values = self._path.evaluate(times)
        return values if self._time_scale is None else torch.cat([values, times[:, :, None] / self._time_scale], dim=2)

    def areas(self, grid: Tensor, ends: Tensor) -> Float64[Tensor, "n windows pairs"]:
        """Signed areas of each window, for i < j in row-major order."""
        points = torch.cat([self._stamps, grid], dim=1).sort(dim=1).values
        values = self.at(points)
        # On a straight piece the integral of X_i dX_j is the mean of X_i times the increment of X_j.
        middle, change = (values[:, 1:] + values[:, :-1]) / 2, values.diff(dim=1)
        pieces = middle[..., :, None] * change[..., None, :]
        running = torch.cat([torch.zeros_like(pieces[:, :1]), pieces.cumsum(dim=1)], dim=1)
        edge = torch.searchsorted(points, grid)
        channels = values.shape[2]
        totals = running.flatten(2).gather(1, edge[:, :, None].expand(-1, -1, channels**2)).unflatten(2, (channels, -1))
        integral = totals.diff(dim=1) - ends[:, :-1, :, None] * ends.diff(dim=1)[..., None, :]
        area = (integral - integral.mT) / 2
        first, second = torch.triu_indices(channels, channels, offset=1, device=grid.device)
        return area[:, :, first, second]
