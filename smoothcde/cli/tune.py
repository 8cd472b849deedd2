"""`smoothcde tune`: better settings for a table, and the model that they give."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from smoothcde.cli.model_folder import ModelFolder
from smoothcde.cli.options import (
    TARGET,
    Balanced,
    BatchSize,
    Channels,
    Device,
    Duplicates,
    End,
    Epochs,
    Folder,
    Id,
    Labels,
    Model,
    Overwrite,
    Seed,
    Start,
    Static,
    Target,
    Task,
    Time,
    Value,
    Variable,
    layout_of,
    option,
)
from smoothcde.cli.telling import AsJson, Teller, telling
from smoothcde.cli.training_table import TrainingTable, estimator_of, refuse_wrong_choices

SEARCH = "The search"
SHOWN = 10


def tune(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file of the series.", show_default=False)],
    out: Folder,
    id: Id = "id",
    time: Time = "time",
    channels: Channels = None,
    variable: Variable = None,
    value: Value = None,
    duplicates: Duplicates = "error",
    start: Start = None,
    end: End = None,
    static: Static = None,
    target: Target = None,
    labels: Labels = None,
    task: Task = None,
    validation: Annotated[
        Path | None,
        option(TARGET, "Table that settings are judged on, instead of a fifth of the series.", metavar="FILE"),
    ] = None,
    trials: Annotated[int, option(SEARCH, "Trials in all, earlier ones included.", min=1, metavar="N")] = 20,
    hours: Annotated[
        float | None, option(SEARCH, "After so many hours no further trial begins.", min=0, metavar="HOURS")
    ] = None,
    storage: Annotated[
        str | None,
        option(SEARCH, "File or database that keeps the trials. FOLDER.trials.db if not given.", metavar="PLACE"),
    ] = None,
    model: Model = "mvc-gp",
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    balanced: Balanced = False,
    seed: Seed = 0,
    device: Device = "auto",
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Try settings of a model on a table, then train with the best of them and save that model.

    Searched are size, learning rate, weight decay, dropout, and the smoothness of the views. Every trial is judged on
    the same validation series; the first one has the settings that fit would choose. A search that was interrupted goes
    on where it was when it is started again, and several machines share one with a --storage that all of them reach.

    How good the best is on the validation series flatters it: judge it with evaluate on a table that had no part.
    """
    refuse_wrong_choices(model, duplicates, task, target, labels)
    folder = ModelFolder.at(out, overwrite)
    with telling(json) as teller:
        from smoothcde.tuning import tune as search

        folder.refuse_what_is_in_the_way(overwrite)
        layout = layout_of(id, time, channels, variable, value, duplicates, start, end)
        learned = TrainingTable.read(
            table, layout, teller, target=target, labels=labels, static=static, task=task, validation=validation
        )
        settings = {"model": model, "epochs": epochs, "batch_size": batch_size, "device": device}
        found = search(
            estimator_of(learned.task, balanced, random_state=seed, **settings),
            learned.series,
            learned.y,
            validation=learned.validation,
            trials=trials,
            hours=hours,
            storage=storage or folder.beside(".trials.db"),
            on_trial=lambda row: _tell(row, teller),
        )
        if not json:
            Console(stderr=True, highlight=False).print(_table(found.table, found.judged_by))
        teller.say(f"training with the settings of trial {found.table['trial'].iloc[0]}: {_worded(found.settings)}")
        more: dict[str, Any] = {"settings": found.settings, "judged_by": found.judged_by}
        more["trials"] = [row.dropna().to_dict() for _, row in found.table.iterrows()]
        folder.fill(found.estimator, learned, teller, more)  # type: ignore[arg-type]


def _tell(row: dict[str, Any], teller: Teller) -> None:
    if row["state"] != "finished":
        teller.say(f"trial {row['trial']}: {row['state']}" + (f", {row['failure']}" if "failure" in row else ""))
        return
    judged = ", ".join(f"{name} {row[name]:.4g}" for name in ("accuracy", "auroc", "loss") if name in row)
    teller.say(f"trial {row['trial']}: {judged}, {row['seconds']:.0f} s, {_worded(row['settings'])}")


def _worded(settings: dict[str, Any]) -> str:
    """Settings as options of fit."""

    def number(value: Any) -> str:
        return ",".join(map(number, value)) if isinstance(value, list | tuple) else f"{value:g}"

    if not settings:
        return "those that fit would choose"
    return " ".join(f"--{name.replace('_', '-')} {number(value)}" for name, value in settings.items())


def _table(rows: Any, judged_by: str) -> Table:
    table = Table(title=None)
    scores = list(dict.fromkeys([judged_by, "loss"]))
    for heading in ("trial", *scores, "NFE", "seconds", "settings"):
        table.add_column(heading, justify="left" if heading == "settings" else "right")
    for _, row in rows.head(SHOWN).iterrows():
        if row["state"] == "finished":
            cells = [f"{row[name]:.4g}" for name in scores]
            table.add_row(
                str(row["trial"]), *cells, f"{row['nfe']:.0f}", f"{row['seconds']:.0f}", _worded(row["settings"])
            )
    return table
