"""Many channels: 963 of traffic, and real sets of some dozens."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, Cell, TableBlock, compared
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.generated import GENERATED
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.published import PEMS
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

MODELS = ("mvc-gp", "mamba", "cubic", "linear")
DATA = ("NATOPS", "FingerMovements", GENERATED, "PEMS-SF")


def trials() -> list[Trial]:
    """One seed each, the real sets of fewer channels first."""
    return grid(DATA, MODELS, seeds=1)


def show(results: Results) -> Sequence[Block]:
    """Accuracy, evaluations, time and memory."""
    rows = []
    for group in results.groups:
        accuracy, nfe, seconds = PEMS[group.model] if group.data == "PEMS-SF" else (None, None, None)
        time, peak = results.spread(group, "train_seconds"), results.spread(group, "peak_megabytes")
        joint = results.spread(group, "joint_nfe")
        rows.append(
            [
                group.data,
                group.model,
                compared(results.spread(group, "accuracy"), accuracy, factor=100.0),
                compared(joint, nfe, 0, more=False) if joint is not None and joint.mean > 0 else "-",
                Cell("not run" if time is None else time.text(0), "" if seconds is None else f"{seconds:,.0f}"),
                "-" if peak is None else peak.text(0),
                f"{results.mean(group, 'parameters') or 0:,.0f}",
            ]
        )
    headings = ("data", "model", "accuracy, %", "NFE per batch", "training, s", "peak memory, MB", "parameters")
    note = (
        f"{GENERATED} has the shape of PEMS-SF (440 x 963 x 144) and nothing else of it: look at cost there, not at "
        "accuracy. Neural CDEs have fields of rank 16."
    )
    return [TableBlock("Many channels", headings, rows, note)]


EXPERIMENT = Experiment(
    "channels",
    "Many channels",
    "At 963 channels MVC-GP is more accurate than Mamba and trains several times faster than splines.",
    "table 9",
    trials,
    show,
)
