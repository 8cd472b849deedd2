"""Pictures of a forecast: what was seen, how it was smoothed, what is expected."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from smoothcde.estimators.forecast_predictor import ForecastPredictor
from smoothcde.plots.outcome import Clock, look, plain_text
from smoothcde.plots.portrait import view_names
from smoothcde.series import SeriesSet

SHOWN = 3
"""Contexts of history that are drawn before a forecast; the last of them is what the model saw."""
MOMENTS = 200
_INK, _SEEN = "#111111", "#777777"


def plot_forecast(
    predictor: ForecastPredictor,
    history: SeriesSet,
    series: int = 0,
    channels: Sequence[int] | None = None,
    *,
    truth: SeriesSet | None = None,
    dates: bool = False,
    title: str | None = None,
) -> Figure:
    """A panel per channel: observations, the path of each view over the context, the forecast and its interval.

    Args:
        predictor: a trained one, `forecaster.predictor_`.
        history: series as `predict` takes them.
        series: which of them.
        channels: which to draw, the first three by default.
        truth: the same series with what came, to be drawn as circles.
        dates: whether times are seconds since 1970, to be shown as dates.
        title: above the figure.
    """
    one = predictor.prepare(history[series])
    forecast = predictor.forecast(one)
    rolling, origin = predictor.rolling, float(one.end[0])
    chosen = range(min(len(predictor.channel_names), SHOWN)) if channels is None else channels
    moments, views, names = _views(predictor, one, dates)
    clock = Clock(0.0, dates)
    figure = Figure(figsize=(8.5, 1.0 + 2.1 * len(chosen)), layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(chosen), 1, sharex=True))
    recent = one.times >= origin - SHOWN * rolling.context * rolling.step
    for axis, channel in zip(axes, chosen, strict=True):
        axis.axvspan(*clock([origin - rolling.span, origin]), color=_SEEN, alpha=0.1, linewidth=0, label="context")
        axis.axvline(clock(origin), color=_SEEN, linewidth=1.0, linestyle=":")
        axis.plot(clock(one.times[recent]), one.values[recent, channel], ".", color=_SEEN, label="observed")
        for place, (name, path) in enumerate(zip(names, views, strict=True)):
            axis.plot(clock(moments), path[:, channel], **look(place), linewidth=1.2, label=name)
        times = clock(forecast.times[0])
        if forecast.interval is not None:
            share = forecast.quantiles[-1] - forecast.quantiles[0]
            low, high = (band[0, :, channel] for band in forecast.interval)
            axis.fill_between(times, low, high, color=_INK, alpha=0.15, linewidth=0, label=f"{share:.0%} interval")
        axis.plot(times, forecast.values[0, :, channel], color=_INK, linewidth=1.6, label="forecast")
        if truth is not None:
            came = predictor.prepare(truth[series])
            after = (came.times > origin) & (came.times <= forecast.times[0, -1] + rolling.step / 2)
            spot = {"markerfacecolor": "none", "markersize": 4, "color": _SEEN, "label": "what came"}
            axis.plot(clock(came.times[after]), came.values[after, channel], "o", **spot)
        axis.set_ylabel(plain_text(predictor.channel_names[channel]))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    clock.label(axes[-1])
    if title:
        figure.suptitle(plain_text(title), fontsize=11)
    return figure


def _views(predictor: ForecastPredictor, one: SeriesSet, dates: bool) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Moments of the context, the path of each view at them in the series' own units, and what to call it."""
    batch, outcome = predictor.solve(one)
    since = torch.linspace(0.0, float(batch.end[0]), MOMENTS, dtype=torch.float64)
    moments = since.numpy() + float(batch.origin[0])
    if outcome.path is None:
        return moments, np.zeros((0, MOMENTS, len(predictor.channel_names))), []
    with torch.no_grad():
        paths = predictor.model.views(batch, outcome, since)[:, 0].double().cpu().numpy()
    scale = predictor.scaler
    names = [
        name if h is None else f"{name}, bandwidth {f'{h / 3600:.3g} h' if dates else f'{h:.3g}'}"
        for name, h in view_names(predictor.model.encoder)
    ]
    return moments, paths * scale.scale + scale.mean, names
