"""`smoothcde datasets`: which are known, how they are downloaded, and how they become tables."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from smoothcde.cli.telling import AsJson, Teller, choice, telling
from smoothcde.data.download import fetch
from smoothcde.data.known import KNOWN, KnownData
from smoothcde.data.physionet import MERGES
from smoothcde.data.tables import write_table
from smoothcde.data.tables.known import tables_of


def datasets(
    name: Annotated[
        str | None, typer.Argument(help="Data set to download or to turn into tables. All are listed if not given.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download it into the data folder, unless it is there.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder for the tables.")] = None,
    format: Annotated[str, typer.Option(metavar="FORMAT", help="csv or parquet.")] = "csv",
    duplicates: Annotated[
        str, typer.Option(metavar="RULE", help="Several values at one time: mean, last, first or keep.")
    ] = "mean",
    json: AsJson = False,
) -> None:
    """List known data sets, download one, or turn one into tables that `smoothcde fit` reads.

    The data folder is the one that the environment variable SMOOTHCDE_DATA names, or one in your cache folder.
    physionet2012 becomes a tidy table of observations (id, time in hours, variable, value), a table of labels and one
    of static columns for each of its sets.
    """
    if name is None:
        if download:
            raise typer.BadParameter("say which data set to download: smoothcde datasets NAME --download")
        with telling(json) as teller:
            teller.result({"datasets": {data.name: _entry(data) for data in KNOWN.values()}}, _listed)
        return
    data = KNOWN[choice("data set", name, KNOWN)]
    choice("format", format, ("csv", "parquet"))
    choice("rule --duplicates", duplicates, MERGES)
    if out is None and not download:
        raise typer.BadParameter("say where the tables shall go, with --out FOLDER, or add --download to get the data")
    with telling(json) as teller:
        if download:
            _downloaded(data, out is None, teller)
        if out is not None:
            files = {}
            for part, table, about in tables_of(data, duplicates):
                file = out / f"{part}.{format}"
                write_table(table, file)
                files[part] = {"file": str(file), "rows": len(table), "about": about}
            teller.result({"dataset": name, "tables": files}, lambda console: _written(console, files))


def _downloaded(data: KnownData, alone: bool, teller: Teller) -> None:
    """Fetch a data set; where it is, is the result if nothing else is asked for."""
    folder = fetch(data.name, progress=teller.first and not teller.json)
    if alone:
        found = {"dataset": data.name, "folder": str(folder)}
        teller.result(found, lambda console: console.print(f"{data.name} is in {folder}", soft_wrap=True))


def _entry(data: KnownData) -> dict[str, object]:
    folder = data.folder
    return {
        "about": data.about,
        "folder": None if folder is None else str(folder),
        "source": data.source,
        "addresses": [remote.address for remote in data.remotes],
    }


def _listed(console: Console) -> None:
    for data in KNOWN.values():
        console.print(f"[bold]{data.name}[/]: {data.about}", markup=True)
        if (folder := data.folder) is not None:
            console.print("  [green]present[/] in", end=" ", markup=True)
            console.print(f"{folder}", soft_wrap=True)
            continue
        console.print("  [yellow]absent[/] from", end=" ", markup=True)
        console.print(" or ".join(map(str, data.places)), soft_wrap=True)
        console.print(f"  smoothcde datasets {data.name} --download", soft_wrap=True)
        console.print(f"  or {data.by_hand()}", soft_wrap=True)


def _written(console: Console, files: dict[str, dict]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for entry in files.values():
        table.add_row(entry["file"], entry["about"])
    console.print(table)
