"""`smoothcde explain`: a page that shows how predictions came about."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from smoothcde.cli.predict import End, Model, Rule, Start, Static, Table
from smoothcde.cli.remembered import Remembered, read_labels
from smoothcde.cli.telling import AsJson, telling
from smoothcde.data.tables import TableError
from smoothcde.estimators import Predictor
from smoothcde.series.frames import column_of
from smoothcde.series.problems import listed


def explain(
    model: Model,
    table: Table,
    series: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Which series; repeat for several. The first if not given.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="HTML file of the page.")] = Path("explained.html"),
    static: Static = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of true targets, to be shown beside the answers.")
    ] = None,
    start: Start = None,
    end: End = None,
    duplicates: Rule = None,
    json: AsJson = False,
) -> None:
    """Write a page that shows how predictions for some series came about.

    Observations and gaps, the smoothed path of each view, attention over time, where the solver stepped and what it
    cost, and the answer. The page is one file that needs no network.
    """
    from smoothcde.explain import explain as explained

    with telling(json) as teller:
        predictor = Predictor.load(model)
        remembered = Remembered.of(predictor).with_options(start, end, duplicates)
        frame, id = remembered.table(table), remembered.layout.id
        present = [str(name) for name in column_of(frame, id).dropna().unique()]
        chosen = list(dict.fromkeys(series)) if series else present[:1]
        if unknown := [name for name in chosen if name not in set(present)]:
            known = listed(present)
            raise TableError(f"there is no series {listed(unknown)} in '{table}'; column {id!r} holds {known}")
        found = remembered.series(frame, static, teller, chosen)
        truth = None
        if labels is not None:
            answers = read_labels(labels, id, remembered.targets).reindex(chosen)
            truth = answers.iloc[:, 0].tolist() if answers.shape[1] == 1 else answers.to_numpy().tolist()
        page = explained(predictor, found, truth=truth).save(out)
        teller.result({"page": str(page), "series": chosen}, lambda console: _written(console, chosen, page))


def _written(console: Console, chosen: list[str], page: Path) -> None:
    console.print(f"Series {listed(chosen)} explained in '{page}'", soft_wrap=True)
