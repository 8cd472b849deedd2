"""Solvers of order 3, 5 and 8."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, Cell, TableBlock, compared
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.published import ORDERS
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

SOLVERS = ("dopri5", "bosh3", "dopri8")
MODELS = ("mvc-gp", "cubic", "linear")


def trials() -> list[Trial]:
    """Three seeds on the smallest data set; the costly corner, interpolants by order 8, comes last."""
    whole = grid(["UWaveGestureLibrary"], MODELS, [{"solver": solver} for solver in SOLVERS])
    return sorted(whole, key=lambda trial: dict(trial.changes)["solver"] == "dopri8" and trial.model != "mvc-gp")


def show(results: Results) -> Sequence[Block]:
    """Accuracy, evaluations and time by solver."""
    rows = []
    for model in ("linear", "cubic", "mvc-gp"):
        for solver in SOLVERS:
            group = Trial.of("UWaveGestureLibrary", model, solver=solver)
            accuracy, seconds, nfe = ORDERS[model, solver]
            time = compared(results.spread(group, "train_seconds"), seconds, 0)
            rows.append(
                [
                    model,
                    solver,
                    compared(results.spread(group, "accuracy"), accuracy, factor=100.0),
                    compared(results.spread(group, "joint_nfe"), nfe, 0, more=False),
                    Cell(time.text, time.paper),
                ]
            )
    return [TableBlock("By solver", ("model", "solver", "accuracy, %", "NFE per batch", "training, s"), rows)]


EXPERIMENT = Experiment(
    "orders",
    "Order of the solver",
    "On smoothed paths a solver of order 3 halves the evaluations at a small loss of accuracy; order 8 costs more "
    "everywhere.",
    "tables 7 and 8",
    trials,
    show,
)
