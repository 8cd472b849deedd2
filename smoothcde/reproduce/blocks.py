"""What an experiment has to show: tables and figures, the same for the terminal and the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from smoothcde.reproduce.results import Spread


@dataclass(frozen=True)
class Cell:
    """A number of ours beside the paper's.

    Attributes:
        text: as shown.
        paper: the paper's figure as it prints it, empty if it has none.
        mark: "better", "worse" or "same" than the paper by more than both spreads allow; empty where there is nothing
            to compare.
    """

    text: str
    paper: str = ""
    mark: str = ""


@dataclass(frozen=True)
class TableBlock:
    """A table.

    Attributes:
        title: above it.
        headings: of the columns.
        rows: of strings and cells.
        note: below it.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    note: str = ""


@dataclass(frozen=True)
class Line:
    """Points that belong together in a figure.

    Attributes:
        name: in the legend.
        x: places.
        y: heights.
        panel: which of the figure's panels, from 0.
        kind: "line", "points" or "steps" (ticks along the time axis).
        labels: shown when a point is touched.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    panel: int = 0
    kind: str = "line"
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class FigureBlock:
    """A figure of one or several panels.

    Attributes:
        title: above it.
        panels: a title each.
        lines: what is drawn.
        x: name of the horizontal axis.
        y: names of the vertical axes, one for all panels or one each.
        log: which axes are logarithmic: "", "x", "y" or "xy".
        note: below it.
    """

    title: str
    panels: Sequence[str]
    lines: Sequence[Line]
    x: str
    y: Sequence[str]
    log: str = ""
    note: str = ""


Block = TableBlock | FigureBlock


def compared(
    ours: Spread | None, paper: tuple[float, float] | None, digits: int = 2, factor: float = 1.0, more: bool = True
) -> Cell:
    """Our figure beside the paper's, marked where they differ by more than twice the larger spread.

    Args:
        ours: over seeds; None if it was not run.
        paper: mean and deviation in the unit shown.
        digits: after the point.
        factor: from our unit to the one shown.
        more: whether more is better.
    """
    shown = "" if paper is None else f"{paper[0]:.{digits}f} ± {paper[1]:.{digits}f}"
    if ours is None:
        return Cell("not run", shown)
    text = ours.text(digits, factor)
    if ours.seeds > 1:
        text += f" ({ours.seeds})"
    if paper is None:
        return Cell(text)
    gap, spread = factor * ours.mean - paper[0], 2 * max(factor * (ours.deviation or 0.0), paper[1])
    mark = "same" if abs(gap) <= spread else "better" if (gap > 0) == more else "worse"
    return Cell(text, shown, mark)
