"""What there is to draw of one series: observations, and per view a path, attention and the solver's steps."""

from dataclasses import dataclass

import numpy as np
import torch

from smoothcde.models import Outcome, SeriesModel
from smoothcde.series import SeriesBatch

GRID = 401
"""Even moments at which a path is read, besides the stamps."""


@dataclass(frozen=True, eq=False)
class ViewPortrait:
    """One view of a series.

    Attributes:
        name: such as "view 1", or the kind of path where there is only one.
        bandwidth: in units of time, for smoothed paths.
        path: `[moments, channels]`, at the portrait's moments.
        steps: when accepted steps ended, since the series' start, which comes first.
        nfe: evaluations of the vector field.
        accepted: steps kept.
        rejected: steps tried and thrown away.
        attention: the weight of each stamp, for models that attend.
    """

    name: str
    bandwidth: float | None
    path: np.ndarray
    steps: np.ndarray
    nfe: int
    accepted: int
    rejected: int
    attention: np.ndarray | None

    @property
    def label(self) -> str:
        """The name, with the bandwidth where there is one."""
        return self.name if self.bandwidth is None else f"{self.name}, bandwidth {self.bandwidth:.3g}"


@dataclass(frozen=True, eq=False)
class Portrait:
    """One series as a model saw it, in numbers.

    Attributes:
        origin: the user's time at which the window starts; all other times count from it.
        span: length of the window.
        times: `[stamps]`.
        values: `[stamps, channels]`, NaN where not observed.
        moments: `[moments]`, where paths are read: evenly, at the stamps, and just before them.
        views: none for a model without a path.
        nfe: evaluations of the vector field over all views.
    """

    origin: float
    span: float
    times: np.ndarray
    values: np.ndarray
    moments: np.ndarray
    views: tuple[ViewPortrait, ...]
    nfe: int

    @property
    def counts(self) -> np.ndarray:
        """Observations per channel."""
        return np.isfinite(self.values).sum(axis=0)

    @property
    def observed(self) -> np.ndarray:
        """True at stamps where at least one channel was observed: those that can be attended to."""
        return np.asarray(np.isfinite(self.values).any(axis=1))

    def channel(self, channel: int) -> tuple[np.ndarray, np.ndarray]:
        """Times and values of what was observed of a channel."""
        seen = np.isfinite(self.values[:, channel])
        return self.times[seen], self.values[seen, channel]

    def gaps(self, channel: int) -> list[tuple[float, float]]:
        """Long stretches of the window without an observation of this channel.

        Long is a tenth of the window and three times the channel's usual distance between observations.
        """
        seen, _ = self.channel(channel)
        usual = float(np.median(np.diff(seen))) if len(seen) > 1 else 0.0
        edges = np.concatenate([[0.0], seen, [self.span]])
        long = np.diff(edges) > max(0.1 * self.span, 3.0 * usual)
        return [(float(a), float(b)) for a, b in zip(edges[:-1][long], edges[1:][long], strict=True)]


def portray(
    model: SeriesModel,
    batch: SeriesBatch,
    outcome: Outcome,
    series: int = 0,
    mean: np.ndarray | None = None,
    scale: np.ndarray | None = None,
) -> Portrait:
    """The portrait of one series of a batch.

    Args:
        model: that made the outcome.
        batch: it was made from.
        outcome: `model.solve(batch)`.
        series: which of the batch.
        mean: of each channel, to undo a standardisation (see `ChannelScaler`).
        scale: likewise.
    """
    length, span = int(batch.lengths[series]), float(batch.end[series])
    mean = np.zeros(batch.channels) if mean is None else mean
    scale = np.ones(batch.channels) if scale is None else scale
    times = batch.times[series, :length].cpu().numpy()
    seen = batch.mask[series, :length].cpu().numpy()
    values = batch.values[series, :length].detach().double().cpu().numpy() * scale + mean
    moments = _moments(times, span)
    n = len(batch)
    rows = list(range(series, len(outcome.nfe), n))
    views = () if outcome.path is None else _views(model, outcome, rows, moments, length, mean, scale)
    return Portrait(
        origin=float(batch.origin[series]),
        span=span,
        times=times,
        values=np.where(seen, values, np.nan),
        moments=moments,
        views=views,
        nfe=int(outcome.nfe[rows].sum()),
    )


def _moments(times: np.ndarray, span: float) -> np.ndarray:
    # Just before a stamp as well: a path that jumps there would otherwise be drawn with a slope.
    before = times - 1e-9 * span
    moments = np.concatenate([np.linspace(0.0, span, GRID), times, before])
    return np.unique(moments[(moments >= 0) & (moments <= span)])


def _views(model, outcome: Outcome, rows, moments, length, mean, scale) -> tuple[ViewPortrait, ...]:
    solution = outcome.solution
    assert outcome.path is not None
    assert solution is not None  # a model that has a path solves along it
    path = outcome.path.select(torch.as_tensor(rows, device=outcome.path.device))
    clock = path.clock(torch.as_tensor(moments, device=path.device).expand(path.rows, -1))
    channels = len(mean)  # a path's further channels are time and counts, no values of the series
    with torch.no_grad():
        values = path.evaluate(clock)[:, :, :channels].double().cpu().numpy() * scale + mean
    steps, stats = solution.steps, solution.stats
    series = rows[0]
    return tuple(
        ViewPortrait(
            name=name,
            bandwidth=bandwidth,
            path=values[view],
            steps=_real_times(steps[row], clock[view].cpu().numpy(), moments),
            nfe=int(stats.nfe[row]),
            accepted=int(stats.accepted[row]),
            rejected=int(stats.rejected[row]),
            attention=(
                None
                if outcome.attention is None
                else outcome.attention[series, view, :length].detach().double().cpu().numpy()
            ),
        )
        for view, (row, (name, bandwidth)) in enumerate(zip(rows, view_names(model), strict=True))
    )


def view_names(model: SeriesModel) -> list[tuple[str, float | None]]:
    """What to call each view of a model, with its bandwidth where it has one."""
    bandwidths = getattr(model, "bandwidths", None)
    if bandwidths is None:
        return [(str(getattr(model, "path", "path")), None)]
    return [(f"view {view + 1}", h) for view, h in enumerate(bandwidths.values.tolist())]


def _real_times(steps: np.ndarray, own: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Steps on a path's own clock (rectilinear has one) as times; `own` is what it shows at `moments`."""
    return steps if np.array_equal(own, moments) else np.interp(steps, own, moments)
