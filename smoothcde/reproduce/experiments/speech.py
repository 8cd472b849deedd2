"""Spoken words with dropped stamps."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, Cell, TableBlock, compared
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.published import SPEECH
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

RATES = (0.3, 0.5)
MODELS = ("mvc-gp", "cubic", "linear")
DATA = ("FreeSpokenDigits", "SpeechCommands")


def trials() -> list[Trial]:
    """One seed; the digits first, which are a tenth of the commands."""
    return grid(DATA, MODELS, [{"drop": rate} for rate in RATES], seeds=1)


def show(results: Results) -> Sequence[Block]:
    """Accuracy, evaluations and time by share dropped."""
    rows = []
    for data in results.data():
        for rate in RATES:
            for model in ("linear", "cubic", "mvc-gp"):
                group = Trial.of(data, model, drop=rate)
                accuracy, nfe, seconds = SPEECH[model, rate]
                same = data == "SpeechCommands"  # the paper says nothing about the digits
                time = results.spread(group, "train_seconds")
                rows.append(
                    [
                        data,
                        f"{rate:.0%}",
                        model,
                        compared(results.spread(group, "accuracy"), accuracy if same else None, factor=100.0),
                        compared(results.spread(group, "joint_nfe"), nfe if same else None, 0, more=False),
                        Cell("not run" if time is None else time.text(0), f"{seconds:,.0f}" if same else ""),
                    ]
                )
    headings = ("data", "dropped", "model", "accuracy, %", "NFE per batch", "training, s")
    note = "Free Spoken Digits, 3,000 clips resampled to 161 frames, stand in where Speech Commands is not at hand."
    return [TableBlock("Spoken words", headings, rows, note)]


EXPERIMENT = Experiment(
    "speech",
    "Spoken words with dropped stamps",
    "With 30 and 50% of the stamps dropped, splines lose accuracy and need many evaluations, MVC-GP keeps 89%.",
    "table 5",
    trials,
    show,
)
