"""`smoothcde fit`: from a table to a model directory."""

from pathlib import Path
from typing import Annotated

import typer

from smoothcde.cli.model_folder import ModelFolder
from smoothcde.cli.options import (
    MODEL,
    TARGET,
    Balanced,
    BatchSize,
    Channels,
    Device,
    Duplicates,
    End,
    Epochs,
    Folder,
    Hidden,
    Id,
    Labels,
    LearningRate,
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
    listed_numbers,
    option,
)
from smoothcde.cli.telling import AsJson, choice, telling
from smoothcde.cli.training_table import TrainingTable, estimator_of, refuse_wrong_choices
from smoothcde.training import RECIPES


def fit(
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
        option(TARGET, "Table that picks the best epoch, instead of a fifth of the series.", metavar="FILE"),
    ] = None,
    model: Model = "mvc-gp",
    recipe: Annotated[str, option(MODEL, "tuned, or a paper-... recipe.", metavar="NAME")] = "tuned",
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    weight_decay: Annotated[float | None, option(MODEL, "Of the optimiser.", min=0, metavar="NUMBER")] = None,
    dropout: Annotated[
        float | None, option(MODEL, "Share of the times that training hides.", min=0, metavar="SHARE")
    ] = None,
    hidden: Hidden = None,
    bandwidths: Annotated[
        str | None,
        option(MODEL, "Smoothness of each view, fractions of the longest series, commas between.", metavar="FRACTIONS"),
    ] = None,
    noise: Annotated[float | None, option(MODEL, "Sigma of Gaussian process paths.", metavar="NUMBER")] = None,
    balanced: Balanced = False,
    calibrate: Annotated[bool, option(MODEL, "Fit probabilities to the validation.", "--calibrate")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Train a model on a table of series and save it in a folder.

    The table has one row per series and time, and a column per channel; or, with --variable and --value, one row per
    observation. Cells may be empty. The target is a column of the table, or of --labels.

    The folder remembers how the table was read, so that predict, evaluate and explain need only a file. A fit that was
    interrupted goes on where it was when it is started again.
    """
    choice("recipe", recipe, RECIPES)
    refuse_wrong_choices(model, duplicates, task, target, labels)
    folder = ModelFolder.at(out, overwrite)
    with telling(json) as teller:
        folder.refuse_what_is_in_the_way(overwrite)
        layout = layout_of(id, time, channels, variable, value, duplicates, start, end)
        learned = TrainingTable.read(
            table, layout, teller, target=target, labels=labels, static=static, task=task, validation=validation
        )
        estimator = estimator_of(
            learned.task,
            balanced,
            calibrate,
            model=model,
            recipe=recipe,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            dropout=dropout,
            hidden=hidden,
            bandwidths=listed_numbers(bandwidths, "--bandwidths", "0.1,0.4"),
            noise=noise,
            device=device,
            random_state=seed,
        )
        folder.fill(estimator, learned, teller)
