"""The workflow figures: a series, the paths that models make of it, and where the solver steps."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, FigureBlock, Line, TableBlock
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import QUICK, QUICK_DATA, grid
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.settings import setting_of
from smoothcde.reproduce.trial import Trial

MODELS = ("linear", "cubic", "gp", "mvc-gp")


def trials() -> list[Trial]:
    """Four models of the main comparison on the longest series, one seed."""
    return grid(["UWaveGestureLibrary"], MODELS, seeds=1, measure="attention")


def quick() -> list[Trial]:
    """On data that come with a dependency."""
    return grid([QUICK_DATA], ("cubic", "mvc-gp"), [QUICK], seeds=1, measure="attention")


def show(results: Results) -> Sequence[Block]:
    """The first channel, the paths through it, and the accepted steps."""
    made, rows = [], []
    for data in results.data():
        groups = [group for group in results.groups if group.data == data]
        lines = []
        for panel, group in enumerate(groups):
            found = results.of(group)[0]
            first = [row[0] for row in found["values"]]
            lines.append(Line("observed", found["stamps"], first, panel, "points"))
            floor = min(first) - 0.5
            for view, path in enumerate(found["paths"]):
                scales = setting_of(group).bandwidths
                name = f"view {view + 1}, h {scales[view]:g}" if len(found["paths"]) > 1 else group.model
                lines.append(Line(name, found["moments"], [point[0] for point in path], panel))
                steps = found["steps"][view]
                lines.append(Line(f"steps of {name}", steps, [floor - 0.3 * view] * len(steps), panel, "steps"))
                rows.append([data, group.model, name, str(len(steps) - 1), str(found["nfe"][view])])
        names = [group.model for group in groups]
        made.append(FigureBlock(f"Paths and steps, {data}", names, lines, "time", ["first channel"]))
    return [*made, TableBlock("Steps of one series", ("data", "model", "path", "accepted steps", "NFE"), rows)]


EXPERIMENT = Experiment(
    "workflow",
    "Paths and the solver's steps",
    "Exact interpolation forces many short steps; smoothed views are crossed in few.",
    "figures 1 and 2",
    trials,
    show,
    quick,
)
