"""`smoothcde fit`: from a table to a model directory."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from smoothcde.cli.options import (
    MODEL,
    OUTPUT,
    TABLE,
    Channels,
    Device,
    Duplicates,
    Hidden,
    LearningRate,
    Time,
    Value,
    Variable,
    listed_channels,
    looks_tidy,
    option,
)
from smoothcde.cli.remembered import (
    Remembered,
    answers_of,
    labels_of,
    matched,
    read_labels,
    read_static,
    refuse_odd_cells,
)
from smoothcde.cli.telling import AsJson, Teller, choice, telling
from smoothcde.data.tables import (
    TASKS,
    StaticEncoder,
    TableError,
    TableLayout,
    guessed_task,
    learned_channels,
    read_header,
    read_table,
    seconds_of,
    target_columns,
    targets_by_series,
)
from smoothcde.estimators import CDEClassifier, CDERegressor
from smoothcde.models import MODELS
from smoothcde.series.duplicates import POLICIES
from smoothcde.series.problems import counted, listed
from smoothcde.storage import refuse_strangers
from smoothcde.training import RECIPES
from smoothcde.training.checkpoint import FILE as CHECKPOINT
from smoothcde.training.logs import METRICS

_TARGET = "What to predict"


def fit(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file of the series.", show_default=False)],
    out: Annotated[Path, option(OUTPUT, "Folder for the trained model.", show_default=False, metavar="FOLDER")],
    id: Annotated[str, option(TABLE, "Column that names the series.", metavar="COLUMN")] = "id",
    time: Time = "time",
    channels: Channels = None,
    variable: Variable = None,
    value: Value = None,
    duplicates: Duplicates = "error",
    start: Annotated[
        str | None, option(TABLE, "Where every series begins, if not at its first time.", metavar="TIME")
    ] = None,
    end: Annotated[
        str | None, option(TABLE, "Moment to predict at, if not a series' last time.", metavar="TIME")
    ] = None,
    static: Annotated[
        Path | None, option(TABLE, "File with a row per series: what does not change with time.", metavar="FILE")
    ] = None,
    target: Annotated[
        list[str] | None,
        option(_TARGET, "Column to predict, of the table or the labels. Repeat for several.", metavar="COLUMN"),
    ] = None,
    labels: Annotated[
        Path | None, option(_TARGET, "File with a row per series that holds the target.", metavar="FILE")
    ] = None,
    task: Annotated[
        str | None,
        option(_TARGET, "classification or regression. Guessed from the target if not given.", metavar="TASK"),
    ] = None,
    validation: Annotated[
        Path | None,
        option(_TARGET, "Table that picks the best epoch, instead of a fifth of the series.", metavar="FILE"),
    ] = None,
    model: Annotated[str, option(MODEL, "See: smoothcde models.", metavar="NAME")] = "mvc-gp",
    recipe: Annotated[str, option(MODEL, "tuned, or a paper-... recipe.", metavar="NAME")] = "tuned",
    epochs: Annotated[
        int | None, option(MODEL, "Passes over the series. The recipe's if not given.", min=1, metavar="N")
    ] = None,
    batch_size: Annotated[int | None, option(MODEL, "Series per step.", min=1, metavar="N")] = None,
    learning_rate: LearningRate = None,
    hidden: Hidden = None,
    balanced: Annotated[bool, option(MODEL, "Give rare classes more weight.", "--balanced")] = False,
    calibrate: Annotated[bool, option(MODEL, "Fit probabilities to the validation.", "--calibrate")] = False,
    seed: Annotated[int, option(MODEL, "Of weights, order and split.", min=0, metavar="N")] = 0,
    device: Device = "auto",
    overwrite: Annotated[bool, option(OUTPUT, "Replace a model that is there.", "--overwrite")] = False,
    json: AsJson = False,
) -> None:
    """Train a model on a table of series and save it in a folder.

    The table has one row per series and time, and a column per channel; or, with --variable and --value, one row per
    observation. Cells may be empty. The target is a column of the table, or of --labels.

    The folder remembers how the table was read, so that predict, evaluate and explain need only a file. A fit that was
    interrupted goes on where it was when it is started again.
    """
    choice("model", model, MODELS)
    choice("recipe", recipe, RECIPES)
    choice("rule --duplicates", duplicates, POLICIES)
    if task is not None:
        choice("task", task, TASKS)
    if not target and labels is None:
        raise typer.BadParameter("say what to predict: --target COLUMN of the table, or --labels FILE")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not overwrite:
            raise typer.BadParameter(f"'{out}' is there already; choose another --out, or add --overwrite")
        if not (out / "manifest.json").exists():
            raise typer.BadParameter(f"'{out}' is there already and is no model; choose another --out")
    if out.name in ("", ".."):  # "." and the like have no name to put files beside
        out = out.resolve()
    training, kept = out.with_name(out.name + ".training"), out.with_name(out.name + ".metrics.csv")
    with telling(json) as teller:
        refuse_strangers(out)
        if kept.exists() and not overwrite:
            raise TableError(f"'{kept}' is there already; move it, choose another --out, or add --overwrite")
        if strange := [path.name for path in _inside(training) if path.name not in (CHECKPOINT, METRICS)]:
            raise TableError(
                f"'{training}' is where the training would be kept, and holds {listed(strange, most=3)}; "
                "move it, or choose another --out"
            )
        layout = TableLayout(
            id=id,
            time=time,
            variable=variable,
            value=value,
            channels=listed_channels(channels),
            duplicates=duplicates,
            start=None if start is None else seconds_of(start),
            end=None if end is None else seconds_of(end),
        )
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
        estimator = _estimator(
            goal,
            model=model,
            recipe=recipe,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            hidden=hidden,
            device=device,
            random_state=seed,
            verbose=int(not json),
            directory=training,
            balanced=balanced,
            calibrate=calibrate,
        )
        seen = series.cropped().lengths
        used = f"{counted(series.channels, 'channel')} ({listed(series.channel_names)})"
        said = f"{len(series)} series, {used}, {seen.min()} to {seen.max()} times"
        teller.say(f"{goal} of {listed(named)}: {said}")
        if (training / CHECKPOINT).exists():
            teller.say(f"going on with the training in '{training}'")
        teller.note_on_speed()
        estimator.fit(series, y, validation=others)
        estimator.predictor_ = remembered.attached(estimator.predictor_)
        if not teller.first:
            return
        estimator.directory = None  # where this training was kept is no business of later ones
        estimator.save(out)
        # With its checkpoint gone a training folder belongs to a finished model; its metrics stay to be looked at.
        os.replace(training / METRICS, kept)
        (training / CHECKPOINT).unlink()
        with suppress(OSError):  # someone else's files may have come meanwhile
            training.rmdir()
        _report(estimator, out, kept, teller)


def _inside(folder: Path) -> list[Path]:
    """What a folder holds, if it is there, but for what a killed write left."""
    return [path for path in folder.iterdir() if path.suffix != ".tmp"] if folder.is_dir() else []


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
):
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


def _estimator(task: str, *, balanced: bool, calibrate: bool, **settings: Any) -> CDEClassifier | CDERegressor:
    if task == "regression":
        if balanced or calibrate:
            raise TableError("--balanced and --calibrate are for classification; leave them out")
        return CDERegressor(**settings)
    weight, calibration = "balanced" if balanced else None, "temperature" if calibrate else None
    return CDEClassifier(class_weight=weight, calibration=calibration, **settings)


def _report(estimator: CDEClassifier | CDERegressor, out: Path, metrics: Path, teller: Teller) -> None:
    predictor = estimator.predictor_
    record = predictor.record
    best = record["epochs"][record["best_epoch"] - 1]
    if not record["validation_series"]:
        teller.note(
            "there were too few series to hold any out, so nothing tells how good the model is on others; "
            "give more, or others with --validation"
        )
    document = {
        "model": str(out),
        "task": predictor.task,
        "name": predictor.architecture["name"],
        "classes": None if predictor.labels is None else predictor.labels.tolist(),
        "targets": list(record["table"]["targets"]),
        "channels": list(predictor.channel_names),
        "static": list(predictor.static_names),
        "training_series": record["training_series"],
        "validation_series": record["validation_series"],
        "epochs": len(record["epochs"]),
        "best_epoch": record["best_epoch"],
        "best": {key: float(number) if np.isfinite(number) else None for key, number in best.items()},
        "seconds": record["seconds"],
        "metrics": str(metrics),
    }

    def show(console: Console) -> None:
        judged = [f"{key.removeprefix('validation_')} {best[key]:.4f}" for key in best if key.startswith("validation_")]
        console.print(
            f"Best of {document['epochs']} epochs: {document['best_epoch']}"
            + (f", on {document['validation_series']} validation series {', '.join(judged)}" if judged else "")
        )
        console.print(f"Model saved in '{out}', metrics of every epoch in '{metrics}'", soft_wrap=True)

    teller.result(document, show)
