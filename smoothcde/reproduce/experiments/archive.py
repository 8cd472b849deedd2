"""The archive's own split of training and test series, beside the paper's random one."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, TableBlock
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.experiments.main import ORDER
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

MODELS = ("cubic", "gp", "mvc-kernel", "mvc-gp")


def trials() -> list[Trial]:
    """Four models, three seeds on the smallest data set, one on the others."""
    change = [{"split": "archive"}]
    return grid(ORDER[:1], MODELS, change) + grid(ORDER[1:], MODELS, change, seeds=1)


def show(results: Results) -> Sequence[Block]:
    """Accuracy by data set."""
    rows = []
    for model in MODELS:
        row = [model]
        for data in ORDER:
            found = results.spread(Trial.of(data, model, split="archive"), "accuracy")
            row.append("not run" if found is None else f"{found.text(2, 100.0)} ({found.seeds})")
        rows.append(row)
    return [TableBlock("Test accuracy, %", ("model", *ORDER), rows, "A fifth of the training part picks the epoch.")]


EXPERIMENT = Experiment(
    "archive",
    "The archive's own split",
    "Not in the paper, which splits the merged sets at random: a random split of UWaveGestureLibrary trains on 264 "
    "gestures, the archive's on 120.",
    "",
    trials,
    show,
)
