"""The command line."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    help="Neural controlled differential equations on smooth control paths, for irregular time series.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def main() -> None:
    """Neural controlled differential equations on smooth control paths, for irregular time series."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo-output"),
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training series.")] = 15,
    seed: Annotated[int, typer.Option(help="Of weights and order.")] = 0,
) -> None:
    """Train mvc-gp and a spline neural CDE of the same size on spoken vowels; compare accuracy and cost."""
    from smoothcde.demo import run_demo

    run_demo(out, epochs=epochs, seed=seed)


@app.command()
def models() -> None:
    """List the models that can be built by name."""
    from smoothcde.models import MODELS

    console = Console()
    for name in MODELS:
        console.print(name)
