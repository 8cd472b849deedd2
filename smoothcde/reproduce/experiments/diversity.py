"""How unlike the views' attention is, and what a penalty on likeness does."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, TableBlock, compared
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.published import DIVERSITY
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

BANDWIDTHS = (0.03, 0.3, 1.4, 2.4, 4.0)
WEIGHTS = (0.0, 0.1)


def trials() -> list[Trial]:
    """Five views on the smallest data set, with and without the penalty, three seeds."""
    changes = [{"bandwidths": BANDWIDTHS, "diversity": weight} for weight in WEIGHTS]
    return grid(["UWaveGestureLibrary"], ("mv-gp", "mvc-gp"), changes)


def show(results: Results) -> Sequence[Block]:
    """Likeness and accuracy."""
    rows = []
    for group in results.groups:
        weight = dict(group.changes)["diversity"]
        cosine, accuracy = DIVERSITY[group.model, weight]
        divergence = results.spread(group, "largest_divergence")
        rows.append(
            [
                group.model + (" with penalty" if weight else ""),
                compared(results.spread(group, "largest_cosine"), cosine, 3, more=False),
                "-" if divergence is None else divergence.text(3),
                compared(results.spread(group, "accuracy"), accuracy, factor=100.0),
            ]
        )
    headings = ("model", "largest cosine of two views", "largest Jensen-Shannon divergence, bits", "accuracy, %")
    return [
        TableBlock("Likeness of views", headings, rows, f"Five views, bandwidths {', '.join(map(str, BANDWIDTHS))}.")
    ]


EXPERIMENT = Experiment(
    "diversity",
    "Diversity of the views",
    "A penalty on like attention makes views less alike and the model less accurate.",
    "table 4",
    trials,
    show,
)
