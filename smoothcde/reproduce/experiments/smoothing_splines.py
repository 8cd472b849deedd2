"""Smoothing splines: is it smoothing alone, or attention to several scales?"""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, TableBlock, compared
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.experiments.main import ORDER
from smoothcde.reproduce.grid import grid, seeds_of
from smoothcde.reproduce.published import MAIN, SMOOTHING_SPLINE
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

MODELS = ("linear", "cubic", "smoothing-spline", "mvc-kernel", "mvc-gp")


def trials() -> list[Trial]:
    """Smoothing splines beside models of the main comparison."""
    return [trial for name in ORDER for trial in grid([name], MODELS, seeds=seeds_of)]


def show(results: Results) -> Sequence[Block]:
    """Accuracy by data set."""
    rows = []
    for model in MODELS:
        row: list = [model]
        for data in ORDER:
            paper = SMOOTHING_SPLINE[data] if model == "smoothing-spline" else MAIN[data][model].accuracy
            row.append(compared(results.spread(Trial.of(data, model), "accuracy"), paper, factor=100.0))
        rows.append(row)
    return [TableBlock("Test accuracy, %", ("model", *ORDER), rows)]


EXPERIMENT = Experiment(
    "smoothing-splines",
    "Smoothing splines",
    "A smoothing spline does reasonably well and falls short of several attentive views.",
    "table 10",
    trials,
    show,
)
