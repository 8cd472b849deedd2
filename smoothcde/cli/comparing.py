"""`smoothcde demo`, `compare` and `footprint`: what the library is about, measured."""

from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from smoothcde.cli.telling import choice

SMALL_DATA = ("JapaneseVowels", "BasicMotions")
"""They come with aeon and need no download."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo-output"),
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training series.")] = 15,
    seed: Annotated[int, typer.Option(help="Of weights and order.")] = 0,
) -> None:
    """Train mvc-gp and a spline neural CDE of the same size on spoken vowels; compare accuracy and cost."""
    from smoothcde.demo import run_demo

    run_demo(out, epochs=epochs, seed=seed)


def compare(
    data: Annotated[list[str] | None, typer.Argument(help="Data sets of the UEA archive.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only these models; repeat for several.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of the optimiser, at least.")] = 100,
    seed: Annotated[int, typer.Option(help="Of weights and order.")] = 0,
    results: Annotated[Path, typer.Option(help="File of results; what it holds is not run again.")] = Path(
        "comparison.json"
    ),
) -> None:
    """Train every model, all of one size, and print one table. JapaneseVowels and BasicMotions need no download."""
    from smoothcde.experiments.compare import Compared, Plan, check_names, table_of, verdict_on
    from smoothcde.experiments.compare import compare as run
    from smoothcde.experiments.ledger import Ledger
    from smoothcde.experiments.rivals import RIVALS
    from smoothcde.models import MODELS

    console, names = Console(), tuple(model or (*MODELS, *RIVALS))
    try:
        check_names(names)
        ledger = Ledger(results)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error

    def tell(line: Compared) -> None:
        console.print(f"{line.data}: {line.model} {line.accuracy:.1%} in {line.seconds:.0f} s")

    plan = Plan(steps=steps, seed=seed)
    lines = [line for name in data or SMALL_DATA for line in run(name, names, plan, ledger, tell)]
    console.print(table_of(lines))
    console.print(verdict_on(lines))


def footprint(
    data: Annotated[list[str] | None, typer.Argument(help="Data sets of the paper.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only these models; repeat for several.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Series in the training step.")] = 64,
    memory: Annotated[bool, typer.Option(help="Measure the peak memory of a training step.")] = True,
) -> None:
    """Match every model to mvc-gp and print parameters and peak memory of a training step. Needs no data."""
    from smoothcde.experiments.footprint import PAPER_DATA, table_of
    from smoothcde.experiments.footprint import footprint as run
    from smoothcde.models import MODELS

    console = Console()
    shapes, names = data or list(PAPER_DATA), model or list(MODELS)
    for kind, asked, known in (("data set", shapes, PAPER_DATA), ("model", names, MODELS)):
        for name in asked:
            choice(kind, name, known)
    lines = []
    for shape, name in product(shapes, names):
        with console.status(f"{shape}: {name}"):
            lines.append(run(shape, name, batch_size, memory))
    console.print(table_of(lines))
