"""How many views, and whether at one scale or at several."""

from collections.abc import Sequence

import numpy as np

from smoothcde.reproduce.blocks import Block, FigureBlock, Line, TableBlock
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import QUICK, QUICK_DATA, grid
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

VIEWS = (1, 2, 4, 8)
SAME = (0.1, 0.4, 1.4)
SPREAD = (0.1, 1.4)
"""Ends of the geometric progression of unlike bandwidths."""
MODELS = ("mv-gp", "mvc-gp")
DATA = "UWaveGestureLibrary"


def unlike(views: int) -> tuple[float, ...]:
    """Bandwidths in geometric progression."""
    return tuple(float(f"{h:.3g}") for h in np.geomspace(*SPREAD, views))


def changes() -> list[dict[str, tuple[float, ...]]]:
    """Every number of views, alike at each scale, and unlike."""
    alike = [{"bandwidths": (h,) * views} for views in VIEWS for h in SAME]
    return alike + [{"bandwidths": unlike(views)} for views in VIEWS if views > 1]


def trials() -> list[Trial]:
    """On the smallest data set, three seeds."""
    return grid([DATA], MODELS, changes())


def quick() -> list[Trial]:
    """One and three views."""
    chosen = [{**QUICK, "bandwidths": bandwidths} for bandwidths in ((0.4,), (0.4, 0.4, 0.4))]
    return grid([QUICK_DATA], ("mvc-gp",), chosen, seeds=1)


def show(results: Results) -> Sequence[Block]:
    """Error and evaluations against the number of views, a line per scale."""
    scales: dict[tuple[str, str], list[Trial]] = {}
    for group in results.groups:
        chosen = dict(group.changes)["bandwidths"]
        name = f"all {chosen[0]:g}" if len(set(chosen)) == 1 else f"{SPREAD[0]:g} to {SPREAD[1]:g}"
        scales.setdefault((group.model, name), []).append(group)
    error, cost, rows = [], [], []
    for (model, name), groups in sorted(scales.items()):
        ordered = sorted(groups, key=lambda group: len(dict(group.changes)["bandwidths"]))
        views = [float(len(dict(group.changes)["bandwidths"])) for group in ordered]
        panel = MODELS.index(model)
        error.append(Line(name, views, [100 * (1 - (results.mean(g, "accuracy") or 0)) for g in ordered], panel))
        cost.append(Line(name, views, [results.mean(g, "joint_nfe") or 0 for g in ordered], panel))
        for count, group in zip(views, ordered, strict=True):
            accuracy, nfe = results.spread(group, "accuracy"), results.spread(group, "joint_nfe")
            assert accuracy is not None
            assert nfe is not None
            rows.append([model, name, f"{count:.0f}", f"{accuracy.text(2, 100.0)} ({accuracy.seeds})", nfe.text(0)])
    return [
        FigureBlock("Error by number of views", MODELS, error, "views", ["error, %"], log="x"),
        FigureBlock("Evaluations by number of views", MODELS, cost, "views", ["NFE per batch"], log="x"),
        TableBlock("Views and scales", ("model", "bandwidths", "views", "accuracy, %", "NFE per batch"), rows),
    ]


EXPERIMENT = Experiment(
    "heads",
    "Number of views and their scales",
    "More views lower the error, most where smoothing is strong, with little gain beyond four; unlike bandwidths give "
    "the better trade of error against time.",
    "figures 6, 8 and 9",
    trials,
    show,
    quick,
)
