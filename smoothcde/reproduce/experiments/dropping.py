"""Dropped stamps: mvc-gp against GRU-D."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, TableBlock, compared
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.published import DROPPED
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

RATES = (0.3, 0.5)
MODELS = ("gru-d", "mvc-gp")


def trials() -> list[Trial]:
    """Three seeds on the smaller data sets, one on the largest."""
    changes = [{"drop": rate} for rate in RATES]
    return (
        grid(["UWaveGestureLibrary"], MODELS, changes)
        + grid(["CharacterTrajectories"], MODELS, changes)
        + grid(["SpokenArabicDigits"], MODELS, changes, seeds=1)
    )


def show(results: Results) -> Sequence[Block]:
    """Accuracy by share dropped."""
    rows = []
    for data in results.data():
        for model in MODELS:
            row: list = [data, model]
            for rate in RATES:
                found = results.spread(Trial.of(data, model, drop=rate), "accuracy")
                row.append(compared(found, DROPPED[data, model, rate], factor=100.0))
            rows.append(row)
    headings = ("data", "model", *(f"accuracy with {rate:.0%} dropped" for rate in RATES))
    return [TableBlock("Accuracy with dropped stamps", headings, rows, "First and last stamps are kept.")]


EXPERIMENT = Experiment(
    "dropping",
    "Dropped stamps",
    "MVC-GP keeps its accuracy when stamps are missing, GRU-D loses it.",
    "table 6",
    trials,
    show,
)
