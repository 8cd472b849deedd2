"""One series as a model sees it: paths, attention, solver steps."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from smoothcde.models import Outcome, SeriesModel
from smoothcde.series import SeriesBatch

_COLOURS = ("#0b6e99", "#d1495b", "#2f8f4e", "#8a5fbf", "#c98a1b", "#4d4d4d", "#e377c2", "#17becf")


def plot_outcome(
    model: SeriesModel,
    batch: SeriesBatch,
    outcome: Outcome,
    series: int = 0,
    channels: Sequence[int] | None = None,
    title: str | None = None,
) -> Figure:
    """Observations with the path of each view, its attention, and where the solver stepped.

    Args:
        model: that made the outcome.
        batch: it was made from.
        outcome: `model.solve(batch)`.
        series: which of the batch.
        channels: which to draw, the first two by default.
        title: above the figure.
    """
    if outcome.path is None or outcome.solution is None:
        raise ValueError(
            f"a {type(model).__name__} has no path to draw; draw a model that is driven by one, as 'mvc-gp'"
        )
    views, n = outcome.path.rows // len(batch), len(batch)
    channels = range(min(batch.channels, 2)) if channels is None else channels
    rows = [view * n + series for view in range(views)]
    heights = [3.0] * len(channels) + [1.6] * (outcome.attention is not None) + [0.5 + 0.28 * views]
    figure = Figure(figsize=(8.5, 1.1 + 0.62 * sum(heights)), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)))
    origin = float(batch.origin[series])
    names = _view_names(model)

    path = outcome.path.select(torch.as_tensor(rows, device=outcome.path.device))
    span = float(batch.end[series])
    clock = torch.linspace(0.0, span, 400, dtype=torch.float64, device=path.device)
    moments = path.clock(clock.expand(path.rows, -1))
    with torch.no_grad():
        values = path.evaluate(moments).double().cpu().numpy()
    for axis, channel in zip(axes, channels, strict=False):
        seen = batch.mask[series, :, channel].cpu().numpy()
        t, x = batch.times[series].cpu().numpy(), batch.values[series, :, channel].detach().cpu().numpy()
        axis.plot(t[seen] + origin, x[seen], ".", color="#777777", markersize=6, label="observed")
        for view in range(views):
            axis.plot(clock.cpu() + origin, values[view, :, channel], color=_COLOURS[view % 8], label=names[view])
        axis.set_ylabel(f"channel {channel}")
    axes[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    if outcome.attention is not None:
        _draw_attention(axes[len(channels)], batch.select([series]), outcome.attention[series], origin)
    steps = [
        _real_times(outcome.solution.steps[row], own, clock.cpu().numpy()) + origin
        for row, own in zip(rows, moments.cpu().numpy(), strict=True)
    ]
    _draw_steps(axes[-1], steps, [int(outcome.solution.stats.nfe[row]) for row in rows])
    axes[-1].set_xlabel("time")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _view_names(model: SeriesModel) -> list[str]:
    bandwidths = getattr(model, "bandwidths", None)
    if bandwidths is None:
        return [str(getattr(model, "path", "path"))]
    return [f"view {view + 1}, bandwidth {h:.3g}" for view, h in enumerate(bandwidths.values.tolist())]


def _draw_attention(axis: Axes, batch: SeriesBatch, attention: torch.Tensor, origin: float) -> None:
    seen = batch.observed[0].cpu().numpy()
    t = batch.times[0].cpu().numpy()[seen] + origin
    for view, weights in enumerate(attention.detach().cpu().numpy()):
        axis.plot(t, weights[seen], color=_COLOURS[view % 8], linewidth=1.4, marker=".", markersize=3)
    axis.set_ylabel("attention")
    axis.set_ylim(bottom=0)


def _real_times(steps: np.ndarray, own: np.ndarray, clock: np.ndarray) -> np.ndarray:
    """Steps on a path's own clock (rectilinear has one) as times; `own` is what it shows at the times `clock`."""
    return steps if np.array_equal(own, clock) else np.interp(steps, own, clock)


def _draw_steps(axis: Axes, steps: list[np.ndarray], nfe: list[int]) -> None:
    for view, ends in enumerate(steps):
        axis.plot(ends, np.full(len(ends), -view), "|", color=_COLOURS[view % 8], markersize=9)
    axis.set_yticks([-view for view in range(len(steps))], [f"{count} NFE" for count in nfe], fontsize=8)
    axis.set_ylim(-len(steps) + 0.4, 0.6)
    axis.set_ylabel("steps")
