"""`smoothcde evaluate`: how good a model is on a table with known answers."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as RichTable

from smoothcde.cli.predict import End, Model, Rule, Start, Static, Table
from smoothcde.cli.remembered import Remembered, answers_of, labels_of, matched, read_labels
from smoothcde.cli.telling import AsJson, save_text, telling
from smoothcde.data.tables import targets_by_series
from smoothcde.estimators import Predictor
from smoothcde.evaluation import (
    ClassificationReport,
    Estimate,
    RegressionReport,
    evaluate_classification,
    evaluate_regression,
)

MOST_SHOWN = 12
"""Classes up to which the confusion fits a terminal."""


def evaluate(
    model: Model,
    table: Table,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the true targets, if the table has none.")
    ] = None,
    static: Static = None,
    start: Start = None,
    end: End = None,
    duplicates: Rule = None,
    resamples: Annotated[int, typer.Option(min=0, metavar="N", help="Of the bootstrap; 0 for no intervals.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the bootstrap.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON file for the result.")] = None,
    json: AsJson = False,
) -> None:
    """Compare predictions with the truth, with 95% intervals.

    Classification: accuracy, AUROC, AUPRC, log loss, Brier score and confusion. Regression: MSE, MAE and R2. The
    intervals are of the bootstrap over series. Series that only --labels names count as series without observations.
    """
    from json import dumps

    with telling(json) as teller:
        predictor = Predictor.load(model)
        remembered = Remembered.of(predictor).with_options(start, end, duplicates)
        frame = remembered.table(table, with_targets=labels is None)
        id = remembered.layout.id
        if labels is None:
            truth = targets_by_series(frame, id, remembered.targets, f"'{table}'")
        else:
            truth = read_labels(labels, id, remembered.targets)
        names, truth = matched(frame, truth, id, teller, keep_empty=True)
        series = remembered.series(frame, static, teller, names)
        report: ClassificationReport | RegressionReport
        if predictor.labels is not None:
            known = predictor.labels.tolist()
            true = labels_of(truth, known)
            report = evaluate_classification(
                true, predictor.probabilities(series), known, resamples=resamples, seed=seed
            )
        else:
            values = np.asarray(answers_of(truth, predictor.task))
            report = evaluate_regression(
                values, predictor.predict(series), remembered.targets, resamples=resamples, seed=seed
            )
        document = {"model": str(model), "task": predictor.task, **report.as_dict()}
        if out is not None:
            save_text(out, dumps(document, indent=1) + "\n")
        teller.result(document, lambda console: _show(console, report))


def _show(console: Console, report: ClassificationReport | RegressionReport) -> None:
    console.print(f"{report.series} series")
    if isinstance(report, RegressionReport):
        for target, metrics in report.metrics.items():
            console.print(_metrics(metrics, target))
        return
    console.print(_metrics(report.metrics))
    if len(report.classes) == 2:
        console.print(f"AUROC and AUPRC are of class {report.classes[1]}")
    if len(report.classes) <= MOST_SHOWN:
        confusion = RichTable(title="Confusion", title_justify="left")
        confusion.add_column("true \\ predicted")
        for label in report.classes:
            confusion.add_column(str(label), justify="right")
        for label, counts in zip(report.classes, report.confusion, strict=True):
            confusion.add_row(str(label), *map(str, counts))
        console.print(confusion)


def _metrics(metrics: dict[str, Estimate], title: str | None = None) -> RichTable:
    table = RichTable(title=title, title_justify="left")
    for heading in ("metric", "value", "95% interval"):
        table.add_column(heading, justify="left" if heading == "metric" else "right")
    for name, estimate in metrics.items():
        cells: tuple[Any, ...] = ("not defined", "")
        if np.isfinite(estimate.value):
            interval = f"{estimate.low:.4g} to {estimate.high:.4g}" if np.isfinite(estimate.low) else ""
            cells = (f"{estimate.value:.4g}", interval)
        table.add_row(name, *cells)
    return table
