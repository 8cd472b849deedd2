"""What a table offers to learn: series, targets and how both were read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from smoothcde.cli.options import looks_tidy
from smoothcde.cli.remembered import (
    Remembered,
    answers_of,
    labels_of,
    matched,
    read_labels,
    read_static,
    refuse_odd_cells,
)
from smoothcde.cli.telling import Teller, choice
from smoothcde.data.tables import (
    TASKS,
    StaticEncoder,
    TableError,
    TableLayout,
    guessed_task,
    learned_channels,
    read_header,
    read_table,
    target_columns,
    targets_by_series,
)
from smoothcde.estimators import CDEClassifier, CDERegressor
from smoothcde.models import MODELS
from smoothcde.series import SeriesSet
from smoothcde.series.duplicates import POLICIES
from smoothcde.series.problems import counted, listed


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Series with targets, from files.

    Attributes:
        series: all that have a target.
        y: their targets.
        task: "classification" or "regression".
        targets: names of the targets.
        remembered: how the table was read, for later ones.
        validation: series and targets of another table, if there is one.
    """

    series: SeriesSet
    y: Any
    task: str
    targets: list[str]
    remembered: Remembered
    validation: tuple[SeriesSet, Any] | None

    @classmethod
    def read(
        cls,
        table: Path,
        layout: TableLayout,
        teller: Teller,
        *,
        target: list[str] | None,
        labels: Path | None,
        static: Path | None,
        task: str | None,
        validation: Path | None,
    ) -> "TrainingTable":
        """Read the files; what is left out of them is told, what is wrong with them refused."""
        id = layout.id
        header = read_header(table)
        if not layout.tidy and (hint := looks_tidy(table, header)):
            raise TableError(hint)
        if labels is None:
            named = target_columns(header, id, target or [], f"'{table}'")
        else:
            answers = read_labels(labels, id, target or [])
            named = [str(name) for name in answers.columns]
        columns = list(dict.fromkeys([*layout.columns(header), *(name for name in named if name in header)]))
        frame = read_table(table, text=layout.names, targets=named, columns=columns)
        if labels is None:
            answers = targets_by_series(frame, id, named, f"'{table}'")
        layout, notes = learned_channels(frame, layout, other=named)
        teller.note(*notes)
        ids, answers = matched(frame, answers, id, teller, keep_empty=False)
        goal = task or _announced(guessed_task(answers), named, teller)
        y = _checked(answers, goal, named)
        encoder = None
        if static is not None:
            described = read_static(static, id)
            encoder, notes = StaticEncoder.fit(described.loc[described[id].isin(ids)], id, named)
            teller.note(*notes)
        remembered = Remembered(layout, tuple(named), encoder)
        series = remembered.series(frame, static, teller, ids)
        remembered = remembered.with_times_of(frame, series)
        del frame  # the larger half of the memory
        others = None if validation is None else _validation(remembered, validation, labels, static, y, goal, teller)
        seen = series.cropped().lengths
        used = f"{counted(series.channels, 'channel')} ({listed(series.channel_names)})"
        said = f"{len(series)} series, {used}, {seen.min()} to {seen.max()} times"
        teller.say(f"{goal} of {listed(named)}: {said}")
        return cls(series, y, goal, named, remembered, others)


def refuse_wrong_choices(
    model: str, duplicates: str, task: str | None, target: list[str] | None, labels: Path | None
) -> None:
    """What can be told to be wrong before any file is read."""
    choice("model", model, MODELS)
    choice("rule --duplicates", duplicates, POLICIES)
    if task is not None:
        choice("task", task, TASKS)
    if not target and labels is None:
        raise typer.BadParameter("say what to predict: --target COLUMN of the table, or --labels FILE")


def estimator_of(
    task: str, balanced: bool = False, calibrate: bool = False, **settings: Any
) -> CDEClassifier | CDERegressor:
    """The estimator for a task."""
    if task == "regression":
        if balanced or calibrate:
            raise TableError("--balanced and --calibrate are for classification; leave them out")
        return CDERegressor(**settings)
    weight, calibration = "balanced" if balanced else None, "temperature" if calibrate else None
    return CDEClassifier(class_weight=weight, calibration=calibration, **settings)


def _announced(task: str, named: list[str], teller: Teller) -> str:
    teller.say(f"{listed(named)} looks like {task}; say otherwise with --task")
    return task


def _checked(answers: pd.DataFrame, task: str, named: list[str]) -> Any:
    """Targets that can be learned."""
    if task == "regression":
        return answers_of(answers, task)
    if len(named) > 1:
        raise TableError(f"classification has one target, and {listed(map(repr, named))} are {len(named)}; choose one")
    y = np.asarray(answers_of(answers, task))
    classes = np.unique(y)
    if len(classes) < 2:
        raise TableError(
            f"target {named[0]!r} has one class only, {classes[0]}, in all {len(y)} series; give series of another too"
        )
    if len(classes) > max(len(y) / 2, 2):
        refuse_odd_cells(answers, named[0])
        raise TableError(
            f"target {named[0]!r} has {len(classes)} classes in {len(y)} series, too many to learn; "
            "use --task regression if it is a quantity, or another column"
        )
    return y


def _validation(
    remembered: Remembered, file: Path, labels: Path | None, static: Path | None, y: Any, task: str, teller: Teller
) -> tuple[SeriesSet, Any]:
    """Series and targets of the validation table, whose labels and static features are in the same files.

    Its classes are those of the training targets `y`.
    """
    frame, id = remembered.table(file, with_targets=labels is None), remembered.layout.id
    if labels is None:
        answers = targets_by_series(frame, id, remembered.targets, f"'{file}'")
    else:
        answers = read_labels(labels, id, remembered.targets)
        present = set(frame[id].dropna().unique())
        answers = answers.loc[[name for name in answers.index if name in present]]
    ids, answers = matched(frame, answers, id, teller, keep_empty=False)
    series = remembered.series(frame, static, teller, ids)
    if task == "regression":
        return series, answers_of(answers, task)
    return series, np.array(labels_of(answers, np.unique(y).tolist()))
