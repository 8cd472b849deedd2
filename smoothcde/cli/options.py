"""Options that several commands have in common: how a table is read, how a model is trained."""

import csv
from pathlib import Path
from typing import Annotated, Any

import typer

from smoothcde.data.tables import TableError, TableLayout, seconds_of

TABLE, TARGET, MODEL, OUTPUT = "The table", "What to predict", "The model and its training", "Output"


def option(panel: str, help: str, *names: str, **settings: Any) -> Any:
    """An option under a heading of the help."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


Id = Annotated[str, option(TABLE, "Column that names the series.", metavar="COLUMN")]
Time = Annotated[str, option(TABLE, "Column of times: numbers or ISO 8601 dates.", metavar="COLUMN")]
Channels = Annotated[
    str | None,
    option(TABLE, "Columns (or variables) to use, commas between. All if not given.", metavar="COLUMNS"),
]
Variable = Annotated[str | None, option(TABLE, "Tidy table: column that names the variable.", metavar="COLUMN")]
Value = Annotated[str | None, option(TABLE, "Tidy table: column that holds its value.", metavar="COLUMN")]
Duplicates = Annotated[str, option(TABLE, "Several values at one time: error, mean, last or first.", metavar="RULE")]
Start = Annotated[str | None, option(TABLE, "Where every series begins, if not at its first time.", metavar="TIME")]
End = Annotated[str | None, option(TABLE, "Moment to predict at, if not a series' last time.", metavar="TIME")]
Static = Annotated[
    Path | None, option(TABLE, "File with a row per series: what does not change with time.", metavar="FILE")
]
Target = Annotated[
    list[str] | None,
    option(TARGET, "Column to predict, of the table or the labels. Repeat for several.", metavar="COLUMN"),
]
Labels = Annotated[Path | None, option(TARGET, "File with a row per series that holds the target.", metavar="FILE")]
Task = Annotated[
    str | None,
    option(TARGET, "classification or regression. Guessed from the target if not given.", metavar="TASK"),
]
Model = Annotated[str, option(MODEL, "See: smoothcde models.", metavar="NAME")]
Epochs = Annotated[int | None, option(MODEL, "Passes over the series. The recipe's if not given.", min=1, metavar="N")]
BatchSize = Annotated[int | None, option(MODEL, "Series per step.", min=1, metavar="N")]
Balanced = Annotated[bool, option(MODEL, "Give rare classes more weight.", "--balanced")]
Seed = Annotated[int, option(MODEL, "Of weights, order and split.", min=0, metavar="N")]
Folder = Annotated[Path, option(OUTPUT, "Folder for the trained model.", show_default=False, metavar="FOLDER")]
Overwrite = Annotated[bool, option(OUTPUT, "Replace a model that is there.", "--overwrite")]
LearningRate = Annotated[float | None, option(MODEL, "At its highest.", metavar="RATE")]
Hidden = Annotated[int | None, option(MODEL, "Units of the state of each view.", min=1, metavar="N")]
Device = Annotated[str, option(MODEL, "auto, cpu, cuda, cuda:1, ...", metavar="NAME")]


def listed_channels(text: str | None) -> tuple[str, ...]:
    """What --channels names, a name with a comma in quotes; nothing where it was not given."""
    names = next(csv.reader([text], skipinitialspace=True)) if text else []
    return tuple(name.strip() for name in names if name.strip())


def layout_of(
    id: str,
    time: str,
    channels: str | None,
    variable: str | None,
    value: str | None,
    duplicates: str,
    start: str | None,
    end: str | None,
) -> TableLayout:
    """How a table is to be read, from the options."""
    return TableLayout(
        id=id,
        time=time,
        variable=variable,
        value=value,
        channels=listed_channels(channels),
        duplicates=duplicates,
        start=None if start is None else seconds_of(start),
        end=None if end is None else seconds_of(end),
    )


def listed_numbers(text: str | None, option: str, example: str) -> tuple[float, ...] | None:
    """The numbers that an option lists; None where it was not given."""
    if text is None:
        return None
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise TableError(f"{option} is {text!r}; give numbers with commas between, such as {example}") from error


def looks_tidy(file: Path, header: list[str]) -> str:
    """What to say to somebody who gave a tidy table as a wide one; nothing if it does not look so."""
    return f"'{file}' looks tidy; add --variable variable --value value" if {"variable", "value"} <= set(header) else ""
