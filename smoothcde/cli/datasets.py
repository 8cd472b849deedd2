"""`smoothcde datasets`: which are known, and how they become tables."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from smoothcde.cli.telling import AsJson, choice, telling
from smoothcde.data.known import KNOWN, KnownData
from smoothcde.data.physionet import MERGES
from smoothcde.data.tables import write_table


def datasets(
    name: Annotated[
        str | None, typer.Argument(help="Data set to turn into tables. All are listed if not given.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder for the tables.")] = None,
    format: Annotated[str, typer.Option(metavar="FORMAT", help="csv or parquet.")] = "csv",
    duplicates: Annotated[
        str, typer.Option(metavar="RULE", help="Several values at one time: mean, last, first or keep.")
    ] = "mean",
    json: AsJson = False,
) -> None:
    """List known data sets, or turn one into tables that `smoothcde fit` reads.

    Data sets are looked for below the folder that the environment variable SMOOTHCDE_DATA names.
    physionet2012 becomes a tidy table of observations (id, time in hours, variable, value), a table of labels and one
    of static columns for each of its sets.
    """
    if name is None:
        with telling(json) as teller:
            found = {data.name: _entry(data) for data in KNOWN.values()}
            teller.result({"datasets": found}, _listed)
        return
    data = KNOWN[choice("data set", name, KNOWN)]
    choice("format", format, ("csv", "parquet"))
    choice("rule --duplicates", duplicates, MERGES)
    if out is None:
        raise typer.BadParameter("say where the tables shall go, with --out FOLDER")
    with telling(json) as teller:
        files = {}
        for part, table, about in data.tables(duplicates):
            file = out / f"{part}.{format}"
            write_table(table, file)
            files[part] = {"file": str(file), "rows": len(table), "about": about}
        teller.result({"dataset": name, "tables": files}, lambda console: _written(console, files))


def _entry(data: KnownData) -> dict[str, str | None]:
    folder = data.folder
    return {"about": data.about, "folder": None if folder is None else str(folder), "source": data.source}


def _listed(console: Console) -> None:
    for data in KNOWN.values():
        console.print(f"[bold]{data.name}[/]: {data.about}")
        if (folder := data.folder) is not None:
            console.print(f"  [green]present[/] in {folder}", soft_wrap=True)
            continue
        places = " or ".join(str(place) for place in data.places) or f"{data.place} (SMOOTHCDE_DATA is not set)"
        console.print(f"  [yellow]absent[/] from {places}", soft_wrap=True)
        console.print(f"  put {' and '.join(data.files)} there, from {data.source}", soft_wrap=True)


def _written(console: Console, files: dict[str, dict]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for entry in files.values():
        table.add_row(entry["file"], entry["about"])
    console.print(table)
