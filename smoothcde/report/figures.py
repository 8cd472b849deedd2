"""Figures for the page: a plotly figure per panel, so that panels stand side by side or below each other."""

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.colors import qualitative

from smoothcde.reproduce.blocks import FigureBlock, Line

PALETTE = (*qualitative.Safe, "#f97316")
"""As many as the comparison has models."""
HEIGHT = 340


def panels_of(block: FigureBlock) -> list[go.Figure]:
    """One figure per panel; a name has the same colour in all of them."""
    names = list(dict.fromkeys(_family(line.name) for line in block.lines))
    colours = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}
    made = []
    for number, title in enumerate(block.panels):
        lines = [line for line in block.lines if line.panel == number]
        made.append(_panel(block, title, block.y[number % len(block.y)], lines, colours))
    return made


def _family(name: str) -> str:
    """Steps have the colour of their path."""
    return name.removeprefix("steps of ")


def _panel(block: FigureBlock, title: str, height: str, lines: Sequence[Line], colours: dict[str, str]) -> go.Figure:
    figure = go.Figure()
    for line in lines:
        colour = colours[_family(line.name)]
        shown = {"name": line.name, "x": list(line.x), "y": list(line.y), "legendgroup": _family(line.name)}
        if line.kind == "steps":
            mark = {"symbol": "line-ns-open", "size": 9, "color": colour}
            figure.add_scatter(**shown, mode="markers", marker=mark, showlegend=False, hovertemplate="%{x:.2f}")
        elif line.kind == "points":
            observed = line.name == "observed"
            mark = {"size": 4 if observed else 10, "color": "#888888" if observed else colour}
            figure.add_scatter(**shown, mode="markers", marker=mark, text=list(line.labels) or None)
        else:
            few = len(line.x) <= 20
            figure.add_scatter(
                **shown,
                mode="lines+markers" if few else "lines",
                line={"color": colour},
                text=list(line.labels) or None,
            )
    figure.update_layout(
        template="plotly_white",
        height=HEIGHT,
        margin={"l": 55, "r": 10, "t": 40, "b": 45},
        title={"text": title, "font": {"size": 14}, "x": 0.02},
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "font": {"size": 11}},
        xaxis=_axis(block.x, "x" in block.log, [x for line in lines for x in line.x]),
        yaxis=_axis(height, "y" in block.log, [y for line in lines for y in line.y]),
        font={"family": "system-ui, sans-serif"},
    )
    return figure


def _axis(title: str, log: bool, values: Sequence[float]) -> dict[str, str]:
    if not log:
        return {"title": title, "type": "linear"}
    wide = max(values, default=1.0) > 5 * min(values, default=1.0)
    # "D2" labels 1, 2 and 5 of each decade; all nine, as by default, run into each other.
    return {"title": title, "type": "log"} | ({"dtick": "D2"} if wide else {})
