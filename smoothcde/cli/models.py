"""`smoothcde models`: what can be built by name."""

from rich.console import Console
from rich.table import Table

from smoothcde.cli.telling import AsJson, telling
from smoothcde.models import MODELS

ABOUT = {
    "linear": "neural CDE on straight lines between observations",
    "rectilinear": "neural CDE on steps, first in time, then in values",
    "hermite": "neural CDE on cubic Hermite splines",
    "cubic": "neural CDE on natural cubic splines, the classic",
    "smoothing-spline": "neural CDE on smoothing splines",
    "kernel": "neural CDE on one kernel-smoothed path",
    "gp": "neural CDE on one Gaussian process path",
    "mv-kernel": "several kernel paths, each weighing observations its way",
    "mv-gp": "several Gaussian process paths, likewise",
    "mvc-kernel": "mv-kernel with a convolutional encoder for the weights",
    "mvc-gp": "mv-gp with a convolutional encoder for the weights (default)",
    "log-ncde": "log-ODE steps on log-signatures of windows",
    "neural-rde": "neural CDE driven by log-signatures of windows",
    "ode-rnn": "recurrent cell at observations, an ODE in between",
    "gru-d": "recurrent cell with decay towards the mean in gaps",
    "gru": "recurrent cell on values, masks and time gaps",
    "mamba": "selective state space model (needs the extra 'mamba')",
}


def models(json: AsJson = False) -> None:
    """List the models that can be built by name, with one line on each."""
    with telling(json) as teller:
        found = {name: ABOUT.get(name, "") for name in MODELS}
        teller.result({"models": found}, lambda console: _show(console, found))


def _show(console: Console, found: dict[str, str]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, words in found.items():
        table.add_row(name, words)
    console.print(table)
