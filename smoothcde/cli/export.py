"""`smoothcde export`: a model as one file that other programs run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from smoothcde.cli.predict import End, Model, Rule, Start, Static
from smoothcde.cli.remembered import Remembered
from smoothcde.cli.telling import AsJson, choice, telling
from smoothcde.estimators import Predictor

FORMATS = ("onnx", "torch")


def export(
    model: Model,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write.")],
    format: Annotated[str, typer.Option(metavar="NAME", help="onnx, or torch for a .pt2 program.")] = "onnx",
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Series like those to come, which the steps are fixed on; no targets needed."
        ),
    ] = None,
    coverage: Annotated[
        float, typer.Option(metavar="SHARE", help="Of the table's series that the steps serve.")
    ] = 0.99,
    length: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most times of a series. The table's longest if not given.")
    ] = None,
    longest: Annotated[
        float | None,
        typer.Option(metavar="TIME", help="Longest window. The longest of training or table if not given."),
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="Channels are always observed together: a quicker file.")
    ] = False,
    static: Static = None,
    start: Start = None,
    end: End = None,
    duplicates: Rule = None,
    json: AsJson = False,
) -> None:
    """Write a model as an ONNX file or a torch program, with the solver's steps fixed.

    The steps are those that serve nearly all series of a table; the file tells for every series it scores whether they
    served it too. Inputs and outputs are described in the file's metadata.
    """
    from smoothcde.export import export_onnx, export_torch
    from smoothcde.export.graph import check_exportable

    choice("format", format, FORMATS)
    with telling(json) as teller:
        predictor = Predictor.load(model)
        check_exportable(predictor.model)
        if table is not None:
            remembered = Remembered.of(predictor).with_options(start, end, duplicates)
            series = remembered.series(remembered.table(table), static, teller)
            predictor = predictor.frozen(series, coverage)
            length = length or int(series.cropped().lengths.max())
            longest = (
                max(predictor.model.time_scale, float((series.end - series.start).max()))
                if longest is None
                else longest
            )
        elif predictor.plan is None:
            raise ValueError("the model's steps are not frozen yet; give series to fix them on with --table FILE")
        if length is None:
            raise ValueError("say how many times a series may have with --length N, or give --table FILE")
        plan = predictor.plan
        assert plan is not None
        teller.say(f"{sum(plan.nfe)} evaluations per series; writing takes a minute or two")
        write = export_onnx if format == "onnx" else export_torch
        graph = write(predictor, out, length=length, longest=longest, together=together)
        document = {
            "file": str(out),
            "format": format,
            "length": length,
            "longest": graph.longest,
            "steps": list(plan.steps),
            "covered": plan.covered,
            "calibration_series": plan.series,
        }
        teller.result(document, lambda console: _written(console, out, plan.covered, plan.series))


def _written(console: Console, out: Path, covered: float, series: int) -> None:
    served = f"its steps serve {covered:.1%} of the {series} series they were fixed on"
    console.print(f"'{out}' written; {served}", soft_wrap=True)
