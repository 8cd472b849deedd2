"""The page: a template, a style, a script, and the numbers they show, in one HTML file that needs nothing else."""

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from smoothcde.explain.answer import SeriesExplanation
from smoothcde.explain.thinning import thinned
from smoothcde.explain.times import duration_text, moment_text, ticks
from smoothcde.plots import Portrait, ViewPortrait

MOST_SERIES = 500
"""Series that one page holds; browsers become slow with more."""


def render_page(
    *,
    title: str,
    model: str,
    series: Sequence[SeriesExplanation],
    channel_names: Sequence[str],
    channel_order: Sequence[int],
    first_channels: int,
    static_names: Sequence[str],
    dates: bool,
) -> str:
    """The HTML document of some explained series.

    Numbers travel as JSON and become text nodes in the browser, so no name a user chose is ever read as markup. The
    page forbids itself the network, and any script or style but its own, by a content security policy.

    Args:
        title: of the page.
        model: name of the model.
        series: what to show.
        channel_names: of all channels.
        channel_order: in which to offer them.
        first_channels: how many of these to show at first.
        static_names: of the static features.
        dates: whether times are seconds since 1970.
    """
    if len(series) > MOST_SERIES:
        raise ValueError(f"a page of {len(series)} series is too large to read; pick at most {MOST_SERIES} by `ids`")
    data = {
        "title": title,
        "model": model,
        "dates": dates,
        "channels": list(channel_names),
        "order": list(channel_order),
        "first": first_channels,
        "series": [_series_data(entry, static_names, dates) for entry in series],
    }
    style, script = _part("page.css"), _part("page.js")
    return Template(_part("page.html")).substitute(
        title=escape(title),
        overview=_overview(series),
        lead=escape(_lead(model, series)),
        policy=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'",
        style=style,
        script=script,
        data=script_json(data),
    )


def script_json(data: Any) -> str:
    """JSON that can stand inside a script element: no NaN, no infinity, and nothing that ends the element."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    return files("smoothcde.explain").joinpath(name).read_text(encoding="utf-8").strip()


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _lead(model: str, series: Sequence[SeriesExplanation]) -> str:
    if any(entry.portrait.views for entry in series):
        return (
            f"{model} smooths the observations of a series into one path per view and follows each path with an "
            "adaptive solver. Below: what was observed, the paths, where the solver stepped, and the answer."
            if any(view.bandwidth is not None for entry in series for view in entry.portrait.views)
            else f"{model} draws a path through the observations of a series and follows it with an adaptive solver. "
            "Below: what was observed, the path, where the solver stepped, and the answer."
        )
    return (
        f"{model} has no path to draw: it reads the observations one after another. Below: what was observed, and the "
        "answer."
    )


def _overview(series: Sequence[SeriesExplanation]) -> str:
    """All answers as plain HTML, for readers without scripts and for those who search the page."""
    truth = any(entry.answer.truth is not None for entry in series)
    rows = [
        f'<tr><th scope="row">{escape(str(entry.id))}</th><td>{escape(entry.answer.text)}</td>'
        + (f"<td>{escape(entry.answer.truth or '')}</td>" if truth else "")
        + f'<td class="number">{int(entry.portrait.counts.sum())}</td>'
        + f'<td class="number">{entry.portrait.nfe}</td></tr>'
        for entry in series
    ]
    head = '<tr><th scope="col">Series</th><th scope="col">Answer</th>' + (
        '<th scope="col">Truth</th>' if truth else ""
    )
    head += '<th scope="col" class="number">Observations</th><th scope="col" class="number">NFE</th></tr>'
    return f"<thead>{head}</thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody>"


def _series_data(entry: SeriesExplanation, static_names: Sequence[str], dates: bool) -> dict[str, Any]:
    portrait, answer = entry.portrait, entry.answer
    static = [] if entry.static is None else entry.static.tolist()
    axis = ticks(portrait.origin, portrait.span, dates)
    return {
        "id": str(entry.id),
        "origin": portrait.origin,
        "span": portrait.span,
        "from": moment_text(portrait.origin, 0.0, dates),
        "to": moment_text(portrait.origin, portrait.span, dates),
        "ticks": [[_rounded(time, portrait.span), label] for time, label in axis],
        "nfe": portrait.nfe,
        "channels": [_channel_data(portrait, channel) for channel in range(portrait.values.shape[1])],
        "attention": _attention_data(portrait),
        "views": [_view_data(view, portrait.span, dates) for view in portrait.views],
        "answer": {
            "text": answer.text,
            "truth": answer.truth,
            "names": list(answer.names),
            "numbers": [_number(value, 6) for value in answer.numbers],
            "classification": answer.classification,
        },
        "static": [[name, _number(value, 6)] for name, value in zip(static_names, static, strict=True)],
    }


def _channel_data(portrait: Portrait, channel: int) -> dict[str, Any]:
    times, values = portrait.channel(channel)
    paths = [view.path[:, channel] for view in portrait.views]
    shown = np.concatenate([values, *(path[np.isfinite(path)] for path in paths)])
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 0.0)
    height, span = high - low, portrait.span
    lines = [thinned(portrait.moments, path, height) for path in paths]
    return {
        "t": _list(times, span),
        "x": [_number(value, 7) for value in values],
        "low": _rounded(low, height),
        "high": _rounded(high, height),
        "gaps": [_list(gap, span) for gap in portrait.gaps(channel)],
        "paths": [[_list(t, 10 * span), _list(x, 10 * height)] for t, x in lines],
    }


def _attention_data(portrait: Portrait) -> dict[str, Any] | None:
    weights = [view.attention[portrait.observed] for view in portrait.views if view.attention is not None]
    if not weights:
        return None
    return {
        "t": _list(portrait.times[portrait.observed], portrait.span),
        "weights": [[_number(weight, 5) for weight in view] for view in weights],
    }


def _view_data(view: ViewPortrait, span: float, dates: bool) -> dict[str, Any]:
    return {
        "name": view.name,
        "bandwidth": None if view.bandwidth is None else duration_text(view.bandwidth, dates),
        "steps": _list(view.steps, span),
        "nfe": view.nfe,
        "accepted": view.accepted,
        "rejected": view.rejected,
    }


def _list(values: Any, extent: float) -> list[int | float | None]:
    return [_rounded(float(value), extent) for value in values]


def _rounded(value: float, extent: float) -> int | float | None:
    """To a hundred-thousandth of the extent, more than a screen can show; None for what is not a number."""
    if not math.isfinite(value):
        return None
    if not (extent > 0 and math.isfinite(extent)):
        return _number(value, 7)
    return _shortest(round(value, 5 - math.floor(math.log10(extent))))


def _number(value: float, digits: int) -> int | float | None:
    return _shortest(float(f"{value:.{digits}g}")) if math.isfinite(value) else None


def _shortest(value: float) -> int | float:
    """Whole numbers without their decimal point, and zero without its sign."""
    return int(value) if value == int(value) and abs(value) < 1e15 else value
