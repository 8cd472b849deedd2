"""The main comparison: twelve models on three data sets."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, FigureBlock, Line, TableBlock, compared
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import MAIN_MODELS, QUICK, QUICK_DATA, grid, seeds_of
from smoothcde.reproduce.published import MAIN
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.settings import PAPER_DATA
from smoothcde.reproduce.trial import Trial

# The cheapest data set first, so that a table is whole as early as can be.
ORDER = ("UWaveGestureLibrary", "CharacterTrajectories", "SpokenArabicDigits")
AN_HOUR = {("SpokenArabicDigits", "linear")}
"""Where a single run costs more than an hour of processor time (63 minutes)."""


def trials() -> list[Trial]:
    """Twelve models, three data sets; five seeds for the four models that claims rest on, three for the rest, one where
    a run takes over an hour.
    """
    every = [trial for name in ORDER for trial in grid([name], MAIN_MODELS, seeds=seeds_of)]
    return [trial for trial in every if not trial.seed or (trial.data, trial.model) not in AN_HOUR]


def quick() -> list[Trial]:
    """Four models, few epochs, on data that come with a dependency."""
    return grid([QUICK_DATA], ("linear", "cubic", "gp", "mvc-gp"), [QUICK], seeds=1)


def show(results: Results) -> Sequence[Block]:
    """A table per data set, and accuracy against time."""
    data = [name for name in (*PAPER_DATA, QUICK_DATA) if name in results.data()]
    return [*[_table(name, results) for name in data], _pareto(data, results)]


def _table(data: str, results: Results) -> TableBlock:
    groups = [group for group in results.groups if group.data == data]
    rows = []
    for group in groups:
        paper = MAIN.get(data, {}).get(group.model)
        spread = results.spread(group, "accuracy")
        accuracy, alone = compared(spread, paper and paper.accuracy, factor=100.0), spread and spread.seeds == 1
        nfe = results.spread(group, "joint_nfe")
        solved = nfe is not None and nfe.mean > 0
        joint = compared(nfe, paper and paper.nfe, 0, more=False) if solved else "-"
        own = results.spread(group, "row_nfe")
        seconds = compared(results.spread(group, "train_seconds"), paper and paper.seconds, 0, more=False)
        parameters = results.mean(group, "parameters") or 0
        rows.append(
            [
                f"{group.model} (one seed: over an hour)" if alone and (data, group.model) in AN_HOUR else group.model,
                accuracy,
                joint,
                own.text(0) if own is not None and solved else "-",
                # Seconds of another machine are for comparing models, not for comparing with ours.
                type(seconds)(seconds.text, seconds.paper),
                f"{parameters:,.0f}",
            ]
        )
    headings = ("model", "test accuracy, %", "NFE per batch", "NFE per row", "training, s", "parameters")
    note = (
        "Ours, over (seeds), beside the paper's. NFE per batch: one step size for the whole batch, as the paper "
        "counted. NFE per row: every series and view at its own pace, this library's default, by which it was "
        "trained. Seconds are processor time of one thread here, of a GPU in the paper."
    )
    return TableBlock(data, headings, rows, note)


def _pareto(data: Sequence[str], results: Results) -> FigureBlock:
    lines = []
    for panel, name in enumerate(data):
        for group in results.groups:
            seconds, accuracy = results.mean(group, "train_seconds"), results.mean(group, "accuracy")
            if group.data == name and seconds is not None and accuracy is not None:
                lines.append(Line(group.model, [seconds], [100 * (1 - accuracy)], panel, "points", [group.model]))
    return FigureBlock("Error against training time", data, lines, "training, s", ["error, %"], log="x")


EXPERIMENT = Experiment(
    "main",
    "Main comparison",
    "MVC-CDE with Gaussian processes is as accurate as the best and needs several times fewer evaluations than "
    "splines.",
    "table 2 and figure 3",
    trials,
    show,
    quick,
)
