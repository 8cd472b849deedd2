"""`smoothcde predict`: answers for the series of a table."""

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from smoothcde.cli.remembered import Remembered, read_ids
from smoothcde.cli.telling import AsJson, choice, telling
from smoothcde.data.tables import check_output, write_table
from smoothcde.estimators import Predictor
from smoothcde.series import SeriesSet
from smoothcde.series.duplicates import POLICIES
from smoothcde.series.problems import listed

Model = Annotated[Path, typer.Argument(help="Folder that `smoothcde fit` made.", show_default=False)]
Table = Annotated[Path, typer.Argument(help="CSV or Parquet file of the series.", show_default=False)]
Static = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File of static columns, if the model was trained with some.")
]
Start = Annotated[str | None, typer.Option(metavar="TIME", help="Look at nothing before this time.")]


def _known_rule(asked: str | None) -> str | None:
    return asked if asked is None else choice("rule --duplicates", asked, POLICIES)


Rule = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="Several values at one time: error, mean, last or first. That of training if not given.",
        callback=_known_rule,
    ),
]
End = Annotated[str | None, typer.Option(metavar="TIME", help="Predict at this time, from what was known by then.")]


def predict(
    model: Model,
    table: Table,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV or Parquet file for the predictions. Printed as CSV if not given."),
    ] = None,
    static: Static = None,
    ids: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File whose id column says which series, also ones without any row."),
    ] = None,
    start: Start = None,
    end: End = None,
    duplicates: Rule = None,
    json: AsJson = False,
) -> None:
    """Predict for every series of a table, with probabilities.

    The table has the columns that the model was trained on; targets are not needed. Each prediction is made at the end
    of the series, or at --end, from what was observed until then.
    """
    with telling(json) as teller:
        check_output(out, table, static, ids)
        predictor = Predictor.load(model)
        remembered = Remembered.of(predictor).with_options(start, end, duplicates)
        frame = remembered.table(table)
        id = remembered.layout.id
        names = None if ids is None else read_ids(ids, id)
        series = remembered.series(frame, static, teller, names)
        if ids is not None and (empty := [name for name, n in zip(series.ids, series.lengths, strict=True) if not n]):
            teller.note(f"{len(empty)} series have no observation in the table: {listed(empty, most=3)}")
        answers = predictions(predictor, series, id)
        if out is not None:
            write_table(answers, out)
            document = {"predictions": str(out), "series": len(answers), "columns": list(answers.columns)}
            teller.result(document, lambda console: _written(console, len(answers), out))
        else:
            rows = answers.to_dict("records") if json else []
            teller.result(
                {"series": len(answers), "predictions": rows}, lambda _: answers.to_csv(sys.stdout, index=False)
            )


def predictions(predictor: Predictor, series: SeriesSet, id: str) -> pd.DataFrame:
    """A row per series: its id, the prediction, and for classes their probabilities."""
    answers = _answers(predictor, series)
    # Ids whose column is called as an answer go by another name.
    return pd.DataFrame({"id" if id in answers else id: list(series.ids), **answers})


def _answers(predictor: Predictor, series: SeriesSet) -> dict[str, np.ndarray]:
    if predictor.labels is not None:
        probabilities = predictor.probabilities(series)
        named = zip(predictor.labels.tolist(), probabilities.T, strict=True)
        best = predictor.labels[probabilities.argmax(axis=1)]
        return {"prediction": best, **{f"probability_{label}": column for label, column in named}}
    columns = predictor.predict(series).T
    names = [""] if len(columns) == 1 else [f"_{name}" for name in predictor.target_names]
    return {f"prediction{name}": column for name, column in zip(names, columns, strict=True)}


def _written(console: Console, count: int, out: Path) -> None:
    console.print(f"{count} predictions written to '{out}'", soft_wrap=True)
