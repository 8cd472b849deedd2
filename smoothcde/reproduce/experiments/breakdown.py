"""Where the time goes: building paths, training, testing."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, TableBlock
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.experiments.main import trials
from smoothcde.reproduce.results import Results


def show(results: Results) -> Sequence[Block]:
    """Seconds of each part, from the main comparison."""
    rows = []
    for group in results.groups:
        fit, test = results.mean(group, "fit_seconds"), results.mean(group, "test_seconds") or 0.0
        train = results.mean(group, "train_seconds") or 0.0
        own = "-" if fit is None else f"{fit:.2f}"
        share = "-" if fit is None else f"{100 * fit * _epochs(results, group) / train:.0f}"
        rows.append([group.data, group.model, own, f"{train:.0f}", f"{test:.2f}", share])
    note = (
        "Processor seconds. Paths of all training series built once; for mv and mvc models they depend on the weights, "
        "so each epoch builds them: the last column is that part of training, without its backward pass."
    )
    return [
        TableBlock(
            "Paths, training, one test pass",
            ("data", "model", "paths, s", "training, s", "test, s", "paths, % of training"),
            rows,
            note,
        )
    ]


def _epochs(results: Results, group) -> float:
    return results.mean(group, "epochs") or 0.0


EXPERIMENT = Experiment(
    "breakdown",
    "Where the time goes",
    "Building smooth paths is a small part of the time; what is saved in the solver outweighs it.",
    "figure 10",
    trials,
    show,
)
