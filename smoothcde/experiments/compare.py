"""Every model on a data set of the archive, of one size, by one recipe; one table."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from rich.table import Table

from smoothcde.checks import check_known
from smoothcde.data import ChannelScaler, load_uea
from smoothcde.experiments.ledger import Ledger
from smoothcde.experiments.lineup import Lineup
from smoothcde.experiments.rivals import RIVALS
from smoothcde.models import MODELS, parameter_count
from smoothcde.series import SeriesSet
from smoothcde.training import CrossEntropy, Recipe, measure_classifier, train

VIEWS = (0.1, 0.2, 0.4)


@dataclass(frozen=True)
class Plan:
    """How a comparison trains: the same for every model.

    Attributes:
        steps: of the optimiser, at least; whole epochs.
        batch_size: series per step.
        learning_rate: at its highest.
        hidden: size of the reference's state per view; every other model is matched to its parameter count.
        width: of fields and encoders.
        solver: of models that solve an equation; a low order serves a loose tolerance best.
        tolerance: relative and absolute.
        seed: of weights and order.
    """

    steps: int = 100
    batch_size: int = 32
    learning_rate: float = 5e-3
    hidden: int = 32
    width: int = 32
    solver: str = "bosh3"
    tolerance: float = 1e-2
    seed: int = 0

    def recipe(self, series: int) -> Recipe:
        """For a training set of that many series."""
        epochs = math.ceil(self.steps / math.ceil(series / self.batch_size))
        return Recipe(epochs, self.batch_size, self.learning_rate, seed=self.seed)


@dataclass(frozen=True)
class Compared:
    """One line of the comparison.

    Attributes:
        data: the data set.
        model: by name; models of ours have parameters, rivals do not.
        accuracy: on the archive's test part.
        chance: what always naming the commonest class would get there.
        series: in the test part.
        parameters: trainable numbers.
        nfe: evaluations per row on the test part, for models that solve an equation.
        seconds: of training.
    """

    data: str
    model: str
    accuracy: float
    chance: float
    series: int
    parameters: int | None
    nfe: float | None
    seconds: float

    @property
    def at_chance(self) -> bool:
        """Whether luck explains the accuracy: it is within three standard deviations of guessing."""
        return self.accuracy < self.chance + 3 * math.sqrt(self.chance * (1 - self.chance) / self.series)


@dataclass(frozen=True)
class _Task:
    """A data set, standardised by its training part, labels as indices."""

    train: SeriesSet
    targets: np.ndarray
    test: SeriesSet
    truth: np.ndarray
    classes: int

    @classmethod
    def load(cls, data: str) -> "_Task":
        (train, train_labels), (test, test_labels) = load_uea(data, "train"), load_uea(data, "test")
        classes, scaler = np.unique(train_labels), ChannelScaler.fit(train)
        targets, truth = np.searchsorted(classes, train_labels), np.searchsorted(classes, test_labels)
        return cls(scaler.transform(train), targets, scaler.transform(test), truth, len(classes))

    @property
    def chance(self) -> float:
        return float(np.bincount(self.truth).max() / len(self.truth))


def compare(
    data: str,
    names: Sequence[str] = (*MODELS, *RIVALS),
    plan: Plan | None = None,
    ledger: Ledger | None = None,
    on_line: Callable[[Compared], None] | None = None,
) -> list[Compared]:
    """Train each model on the archive's training part and judge it on its test part.

    Args:
        data: a data set of the UEA archive.
        names: of `MODELS`, or of `RIVALS` (boosted summaries, MiniRocket: what a user would otherwise pick).
        plan: how to train.
        ledger: where results are kept; those it has are not made again.
        on_line: told each line as it is known.
    """
    check_names(names)
    plan, ledger, task, lines = plan or Plan(), ledger or Ledger(), None, []
    for name in names:
        settings = {"data": data, "model": name, **asdict(plan)}
        found = ledger.find(settings)
        if found is None:
            task = task or _Task.load(data)
            found = _of_rival(name, task, plan) if name in RIVALS else _of_model(name, task, plan)
            ledger.add(settings, found)
        lines.append(Compared(data=data, model=name, **found))
        if on_line is not None:
            on_line(lines[-1])
    return lines


def check_names(names: Sequence[str]) -> None:
    """Refuse what is neither a model nor a rival, before hours are spent on the others."""
    for name in names:
        check_known("model", name, (*MODELS, *RIVALS))


def _of_model(name: str, task: _Task, plan: Plan) -> dict[str, Any]:
    lineup = Lineup(
        channels=task.train.channels,
        outputs=task.classes,
        time_scale=task.train.longest_span,
        bandwidths=VIEWS,
        hidden=plan.hidden,
        width=plan.width,
        options={"solver": plan.solver, "rtol": plan.tolerance, "atol": plan.tolerance},
    )
    hidden = lineup.hidden_of(name)
    torch.manual_seed(plan.seed)
    model = lineup.build(name, hidden)
    record = train(model, task.train, task.targets, CrossEntropy(), plan.recipe(len(task.train)))
    measured = measure_classifier(model, task.test, task.truth)
    return {
        "accuracy": measured.accuracy,
        "chance": task.chance,
        "series": len(task.test),
        "parameters": parameter_count(model),
        "nfe": measured.row_nfe or None,
        "seconds": record.seconds,
    }


def _of_rival(name: str, task: _Task, plan: Plan) -> dict[str, Any]:
    begin = time.perf_counter()
    fitted = RIVALS[name](plan.seed).fit(task.train, task.targets)
    seconds = time.perf_counter() - begin
    accuracy = float((fitted.predict(task.test) == task.truth).mean())
    own = {"parameters": None, "nfe": None, "seconds": seconds}
    return {"accuracy": accuracy, "chance": task.chance, "series": len(task.test), **own}


def table_of(lines: Sequence[Compared]) -> Table:
    """The comparison as a table for the terminal."""
    table = Table(title="Same recipe, same parameter count")
    for heading in ("data", "model", "test accuracy", "chance", "NFE per row", "training time", "parameters"):
        table.add_column(heading, justify="left" if heading in ("data", "model") else "right")
    for line in lines:
        table.add_row(
            line.data,
            line.model,
            f"{line.accuracy:.1%}",
            f"{line.chance:.1%}",
            "-" if line.nfe is None else f"{line.nfe:.0f}",
            f"{line.seconds:.1f} s",
            "-" if line.parameters is None else f"{line.parameters:,}",
        )
    return table


def verdict_on(lines: Sequence[Compared]) -> str:
    """Which models learnt nothing, in a sentence."""
    lost = [f"{line.model} on {line.data}" for line in lines if line.at_chance]
    return f"At chance: {', '.join(lost)}." if lost else "No model is at chance."
