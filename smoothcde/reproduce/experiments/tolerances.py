"""Whether splines become cheap by a loose tolerance."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, FigureBlock, Line, TableBlock
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4)
DATA = "UWaveGestureLibrary"


def trials() -> list[Trial]:
    """Splines and mvc-gp at four tolerances, one seed."""
    return grid([DATA], ("mvc-gp", "cubic", "linear"), [{"tolerance": tol} for tol in TOLERANCES], seeds=1)


def show(results: Results) -> Sequence[Block]:
    """Error against time, a line per model, a point per tolerance."""
    lines, rows = [], []
    for model in ("linear", "cubic", "mvc-gp"):
        groups = [group for group in results.groups if group.model == model]
        if not groups:
            continue
        seconds = [results.mean(group, "train_seconds") or 0 for group in groups]
        wrong = [100 * (1 - (results.mean(group, "accuracy") or 0)) for group in groups]
        names = [f"{dict(group.changes)['tolerance']:g}" for group in groups]
        lines.append(Line(model, seconds, wrong, 0, "line", names))
        rows += [
            [model, name, f"{100 - e:.2f}", f"{results.mean(group, 'joint_nfe') or 0:.0f}", f"{s:.0f}"]
            for name, e, s, group in zip(names, wrong, seconds, groups, strict=True)
        ]
    return [
        FigureBlock("Error against training time by tolerance", [DATA], lines, "training, s", ["error, %"], log="x"),
        TableBlock("By tolerance", ("model", "tolerance", "accuracy, %", "NFE per batch", "training, s"), rows),
    ]


EXPERIMENT = Experiment(
    "tolerances",
    "Splines at loose tolerances",
    "Linear and cubic paths cannot be made as efficient by relaxing the solver's tolerance without losing accuracy.",
    "figure 3 and appendix B.6",
    trials,
    show,
)
