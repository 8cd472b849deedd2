"""Pictures of one series as a model sees it: paths, attention, solver steps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from smoothcde.models import Outcome, SeriesModel
from smoothcde.plots.portrait import Portrait, portray
from smoothcde.series import SeriesBatch

# The palette of Okabe and Ito, made for the colour-blind; line styles tell views apart without any colour.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d", "#8a5fbf")
_STYLES = ("-", "--", "-.", ":")


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
    channels = range(min(batch.channels, 2)) if channels is None else channels
    return draw_portrait(portray(model, batch, outcome, series), channels, title=title)


def draw_portrait(
    portrait: Portrait,
    channels: Sequence[int],
    *,
    channel_names: Sequence[str] | None = None,
    bars: tuple[Sequence[str], Sequence[float]] | None = None,
    dates: bool = False,
    title: str | None = None,
) -> Figure:
    """A panel per channel, then attention and solver steps where there are any, then bars.

    Args:
        portrait: of the series.
        channels: which to draw.
        channel_names: "channel 0", ... without.
        bars: names and lengths between 0 and 1, such as the probabilities of classes.
        dates: whether times are seconds since 1970, to be shown as dates.
        title: above the figure.
    """
    attends = any(view.attention is not None for view in portrait.views)
    heights = [3.0] * len(channels) + [1.6] * attends
    heights += [0.5 + 0.28 * len(portrait.views)] if portrait.views else []
    timed = len(heights)
    heights += [0.6 + 0.35 * len(bars[0])] if bars else []
    figure = Figure(figsize=(8.5, 1.1 + 0.62 * sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    axes: list[Axes] = []
    for row in range(timed):
        axes.append(figure.add_subplot(grid[row], sharex=axes[0] if axes else None))
    clock = Clock(portrait.origin, dates)
    for axis, channel in zip(axes, channels, strict=False):
        _draw_channel(axis, portrait, channel, clock)
        axis.set_ylabel(plain_text(channel_names[channel] if channel_names else f"channel {channel}"))
    if channels:
        axes[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    if attends:
        _draw_attention(axes[len(channels)], portrait, clock)
    if portrait.views:
        _draw_steps(axes[timed - 1], portrait, clock)
    for axis in axes[:-1]:
        axis.tick_params(labelbottom=False)
    if axes:
        clock.label(axes[-1])
        axes[-1].set_xlim(*_limits(clock(np.array([0.0, portrait.span]))))
    if bars:
        axes.append(figure.add_subplot(grid[timed]))
        _draw_bars(axes[-1], *bars)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


class Clock:
    """Times since the series' start as the user's own, for an axis."""

    def __init__(self, origin: float, dates: bool):
        self._origin, self._dates = origin, dates

    def __call__(self, times: Any) -> Any:
        """Times as an axis takes them."""
        seconds = np.asarray(times) + self._origin
        return seconds / 86400.0 if self._dates else seconds  # matplotlib counts dates in days since 1970

    def label(self, axis: Axes) -> None:
        """Name the axis, and show dates as such."""
        axis.set_xlabel("time (UTC)" if self._dates else "time")
        if self._dates:
            locator = AutoDateLocator()
            axis.xaxis.set_major_locator(locator)
            axis.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _limits(ends: np.ndarray) -> tuple[float, float]:
    margin = 0.03 * (ends[1] - ends[0]) or 0.5
    return float(ends[0] - margin), float(ends[1] + margin)


def plain_text(text: str) -> str:
    """Without the dollar signs that matplotlib would read as mathematics."""
    return text.replace("$", r"\$")


def look(view: int) -> dict[str, Any]:
    """Colour and line style of a view."""
    return {"color": _COLOURS[view % len(_COLOURS)], "linestyle": _STYLES[view % len(_STYLES)]}


def _draw_channel(axis: Axes, portrait: Portrait, channel: int, clock: Clock) -> None:
    for begin, end in portrait.gaps(channel):
        axis.axvspan(*clock([begin, end]), color="#777777", alpha=0.1, linewidth=0)
    t, x = portrait.channel(channel)
    axis.plot(clock(t), x, ".", color="#777777", markersize=6, label="observed")
    for index, view in enumerate(portrait.views):
        axis.plot(clock(portrait.moments), view.path[:, channel], **look(index), label=view.label)


def _draw_attention(axis: Axes, portrait: Portrait, clock: Clock) -> None:
    seen = portrait.observed
    for index, view in enumerate(portrait.views):
        assert view.attention is not None
        weights = view.attention[seen]
        axis.plot(clock(portrait.times[seen]), weights, **look(index), linewidth=1.4, marker=".", markersize=3)
    axis.set_ylabel("attention")
    axis.set_ylim(bottom=0)


def _draw_steps(axis: Axes, portrait: Portrait, clock: Clock) -> None:
    views = portrait.views
    for index, view in enumerate(views):
        colour = _COLOURS[index % len(_COLOURS)]
        axis.plot(clock(view.steps), np.full(len(view.steps), -index), "|", color=colour, markersize=9)
    axis.set_yticks([-index for index in range(len(views))], [f"{view.nfe} NFE" for view in views], fontsize=8)
    axis.set_ylim(-len(views) + 0.4, 0.6)
    axis.set_ylabel("steps")


def _draw_bars(axis: Axes, names: Sequence[str], lengths: Sequence[float]) -> None:
    places = [-float(place) for place in range(len(names))]
    axis.barh(places, lengths, color=_COLOURS[0], height=0.7)
    for place, length in zip(places, lengths, strict=True):
        axis.text(length + 0.01, place, f"{length:.3f}", va="center", fontsize=8)
    axis.set_yticks(places, [plain_text(name) for name in names], fontsize=8)
    axis.set_xlim(0.0, 1.1)
    axis.set_xlabel("probability")
