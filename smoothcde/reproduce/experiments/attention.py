"""What views attend to, and the workflow: series, smoothed paths, steps of the solver."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, FigureBlock, Line
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.experiments.main import ORDER
from smoothcde.reproduce.grid import QUICK, QUICK_DATA, grid
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.settings import setting_of
from smoothcde.reproduce.trial import Trial


def trials() -> list[Trial]:
    """MV against MVC on every data set, one seed."""
    return grid(ORDER, ("mv-gp", "mvc-gp"), seeds=1, measure="attention")


def quick() -> list[Trial]:
    """On data that come with a dependency."""
    return grid([QUICK_DATA], ("mvc-gp",), [QUICK], seeds=1, measure="attention")


def show(results: Results) -> Sequence[Block]:
    """Attention over time, a panel per model, a figure per data set."""
    made = []
    for data in results.data():
        groups = [group for group in results.groups if group.data == data]
        lines = []
        for panel, group in enumerate(groups):
            found = results.of(group)[0]
            scales = setting_of(group).bandwidths
            for view, weights in enumerate(found["attention"]):
                lines.append(Line(f"view {view + 1}, h {scales[view]:g}", found["stamps"], weights, panel))
        names = [group.model for group in groups]
        made.append(FigureBlock(f"Attention, {data}", names, lines, "time", ["weight of a stamp"]))
    return made


EXPERIMENT = Experiment(
    "attention",
    "What the views attend to",
    "Attention of MV-CDE is blurred or follows single stamps; the encoder of MVC-CDE makes it sharp and stable.",
    "figure 5",
    trials,
    show,
    quick,
)
