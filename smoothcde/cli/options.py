"""Options that several commands have in common: how a table is read, how a model is trained."""

import csv
from pathlib import Path
from typing import Annotated, Any

import typer

TABLE, MODEL, OUTPUT = "The table", "The model and its training", "Output"


def option(panel: str, help: str, *names: str, **settings: Any) -> Any:
    """An option under a heading of the help."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


Time = Annotated[str, option(TABLE, "Column of times: numbers or ISO 8601 dates.", metavar="COLUMN")]
Channels = Annotated[
    str | None,
    option(TABLE, "Columns (or variables) to use, commas between. All if not given.", metavar="COLUMNS"),
]
Variable = Annotated[str | None, option(TABLE, "Tidy table: column that names the variable.", metavar="COLUMN")]
Value = Annotated[str | None, option(TABLE, "Tidy table: column that holds its value.", metavar="COLUMN")]
Duplicates = Annotated[str, option(TABLE, "Several values at one time: error, mean, last or first.", metavar="RULE")]
LearningRate = Annotated[float | None, option(MODEL, "At its highest.", metavar="RATE")]
Hidden = Annotated[int | None, option(MODEL, "Units of the state of each view.", min=1, metavar="N")]
Device = Annotated[str, option(MODEL, "auto, cpu, cuda, cuda:1, ...", metavar="NAME")]


def listed_channels(text: str | None) -> tuple[str, ...]:
    """What --channels names, a name with a comma in quotes; nothing where it was not given."""
    names = next(csv.reader([text], skipinitialspace=True)) if text else []
    return tuple(name.strip() for name in names if name.strip())


def looks_tidy(file: Path, header: list[str]) -> str:
    """What to say to somebody who gave a tidy table as a wide one; nothing if it does not look so."""
    return f"'{file}' looks tidy; add --variable variable --value value" if {"variable", "value"} <= set(header) else ""
