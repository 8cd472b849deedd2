"""Smoothing against splines: what linear and cubic paths cost over mvc-gp, all of one size and trained alike.

    python -m benchmarks.smoothing
    python -m benchmarks.smoothing --series 16 --epochs 2      # a try; writes nothing

The models that `smoothcde reproduce main` trains on UWaveGestureLibrary, seed 0, by the paper's recipe, tolerance 1e-4,
all of one size; one that is not trained yet is trained first. Evaluations in joint mode, one step size for the batch,
as the paper counts; the training step in that mode, and with a step size per row. Kinks of the linear path are stepped
over, as the paper must have done, and landed on; a natural cubic spline has none that dopri5 is told of.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks.machine import described
from benchmarks.record import write
from benchmarks.timing import interleaved, median
from smoothcde import SeriesModel, SolverOptions
from smoothcde.models import parameter_count
from smoothcde.reproduce.fitting import fit_trial
from smoothcde.reproduce.trial import Trial

DATA, ROUNDS = "UWaveGestureLibrary", 3
CHECKPOINTS = Path("results/checkpoints")
TOGETHER = 64
"""Series of a training step: thousands of evaluations of all series leave more for the backward than memory holds."""
MVC = "mvc-gp"
VARIANTS = {MVC: (MVC, "land"), "linear, kinks stepped over": ("linear", "step_over")}
VARIANTS |= {"linear, kinks landed on": ("linear", "land"), "natural cubic": ("cubic", "land")}


def options_of(model: SeriesModel, knots: Any, step_control: Any) -> SolverOptions:
    """How a variant is solved."""
    return replace(model.options, knots=knots, step_control=step_control)


def measure(series: int | None, epochs: int | None, rounds: int) -> dict[str, Any]:
    """Evaluations and seconds of each variant."""
    changes = {} if epochs is None else {"epochs": epochs}
    names = dict.fromkeys(name for name, _ in VARIANTS.values())
    fitted = {name: fit_trial(Trial.of(DATA, name, **changes), CHECKPOINTS) for name in names}
    part = fitted[MVC].task.train
    shown = part.series if series is None else part.series[:series]
    batch, targets = shown.batch(), torch.as_tensor(part.targets[: len(shown)])
    few = shown[:TOGETHER].batch()
    found: dict[str, dict[str, Any]] = {}
    steps = {}
    for variant, (name, knots) in VARIANTS.items():
        model = fitted[name].model
        ways = {way: options_of(model, knots, way) for way in ("joint", "row")}
        with torch.no_grad():
            outcomes = {way: model.solve(batch, options=options) for way, options in ways.items()}
        right = (outcomes["row"].outputs.argmax(dim=1) == targets).double().mean()
        found[variant] = {
            "parameters": parameter_count(model),
            "training accuracy": float(right),
            "joint evaluations": int(outcomes["joint"].nfe[0]),
            "evaluations per row": float(np.mean(outcomes["row"].nfe)),
        }
        for way, options in ways.items():
            steps[variant, way] = _step(model, few, targets[: len(few)], options)
        print(f"{variant:>28}: {found[variant]}", flush=True)
    timed = interleaved({f"{variant}/{way}": step for (variant, way), step in steps.items()}, rounds)
    for variant, way in steps:
        found[variant][f"training step, {way}"] = median(timed[f"{variant}/{way}"])
    ours = found[MVC]
    for variant, numbers in found.items():
        numbers["over mvc-gp"] = {what: numbers[what] / ours[what] for what in RATIOS}
        print(f"{variant:>28}: {', '.join(f'{what} {r:.1f} x' for what, r in numbers['over mvc-gp'].items())}")
    head = {"data": DATA, "series": len(shown), "series of a step": len(few), "rounds": rounds}
    head |= {"epochs": fitted[MVC].setting.epochs, **described()}
    return head | {"variants": found}


RATIOS = ("joint evaluations", "training step, joint", "evaluations per row", "training step, row")


def _step(model: SeriesModel, batch: Any, targets: torch.Tensor, options: SolverOptions):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0)

    def run() -> None:
        optimiser.zero_grad()
        cross_entropy(model.solve(batch, options=options).outputs, targets).backward()
        optimiser.step()

    return run


def run(series: int | None = None, epochs: int | None = None, rounds: int = ROUNDS) -> None:
    """Measure; written down only if it is the whole of it."""
    report = measure(series, epochs, rounds)
    if series is None and epochs is None:
        write("smoothing", report)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, help="fewer series; results are then not written")
    parser.add_argument("--epochs", type=int, help="of training; results are then not written")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    run(arguments.series, arguments.epochs, arguments.rounds)
