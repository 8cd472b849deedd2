"""The command line: a module per command, put together here in the order of the help."""

import typer

from smoothcde.cli.comparing import compare, demo, footprint
from smoothcde.cli.datasets import datasets
from smoothcde.cli.evaluate import evaluate
from smoothcde.cli.explain import explain
from smoothcde.cli.export import export
from smoothcde.cli.fit import fit
from smoothcde.cli.forecast import forecast
from smoothcde.cli.models import models
from smoothcde.cli.predict import predict
from smoothcde.cli.reproduce import report, reproduce
from smoothcde.cli.tune import tune

app = typer.Typer(
    name="smoothcde",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="markdown",
)


@app.callback()
def main() -> None:
    """Neural controlled differential equations on smooth control paths, for irregular time series.

    Train on a table, then predict, judge and explain:

    - smoothcde fit train.csv --target outcome --out model
    - smoothcde predict model new.csv --out predictions.csv
    - smoothcde evaluate model test.csv
    - smoothcde explain model new.csv --series 17 --out page.html
    - smoothcde tune train.csv --target outcome --out better
    - smoothcde export model --table train.csv --out model.onnx

    Or forecast what comes next: smoothcde forecast load.csv --context 24 --horizon 24 --out next.csv

    Results go to standard output, messages to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage.
    """


for panel, commands in {
    "Your tables": (fit, tune, predict, evaluate, explain, forecast, export),
    "What there is": (models, datasets),
    "Demonstration and comparison": (demo, compare, footprint),
    "The paper, measured again": (reproduce, report),
}.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)

__all__ = ["app"]
