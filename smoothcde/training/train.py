"""`train`: fit a model to series and targets."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from smoothcde import native
from smoothcde.models import SeriesModel
from smoothcde.series import SeriesSet
from smoothcde.training.checkpoint import Checkpoint, identity_of
from smoothcde.training.logs import LOGGERS, Log, check_loggers, write_metrics
from smoothcde.training.objectives import Objective
from smoothcde.training.processes import Fabric, make_fabric
from smoothcde.training.progress import ProgressBar
from smoothcde.training.recipes import Recipe
from smoothcde.training.record import TrainingRecord
from smoothcde.training.run import Examples, OnEpoch, OnStep, Run

Validation = tuple[SeriesSet, np.ndarray] | tuple[SeriesSet, np.ndarray, np.ndarray]


def train(
    model: SeriesModel,
    series: SeriesSet,
    targets: np.ndarray,
    objective: Objective,
    recipe: Recipe,
    *,
    weights: np.ndarray | None = None,
    validation: Validation | None = None,
    directory: Path | None = None,
    fabric: Fabric | None = None,
    progress: bool = False,
    loggers: Sequence[str] = (),
    checkpoint_seconds: float = 60.0,
    title: str = "",
    console: Console | None = None,
    on_step: OnStep | None = None,
    on_epoch: OnEpoch | None = None,
) -> TrainingRecord:
    """Fit a model; leave the weights of the best validation epoch in it (of the last, without validation).

    ```python
    record = train(model, series, labels, CrossEntropy(), RECIPES["tuned"], validation=(others, their_labels))
    ```

    With a `directory`, a run that was killed goes on from its last checkpoint when called again with the same
    arguments, and ends with the very weights it would have had (on the same device and number of threads).

    In a script started by torchrun or `fabric run`, the processes share each batch among them. Every process calls
    `train` with all of the series.

    Args:
        model: as built by `build_model`, on any device.
        series: standardised training series.
        targets: one entry per series, as the objective takes them.
        objective: `CrossEntropy()`, `SquaredError()`, or one of your own.
        recipe: how.
        weights: how much each series counts, relative to the others.
        validation: series and targets that pick the best epoch, and weights if they have some.
        directory: where `checkpoint.safetensors` and `metrics.csv` go, and what loggers write.
        fabric: device, precision and processes, if `make_fabric` would not choose what you want; its precision then
            takes the place of the recipe's. One process on the model's own device, unless a launcher started more.
        progress: show a bar, if there is a terminal.
        loggers: of "tensorboard" and "mlflow".
        checkpoint_seconds: how much work a kill may undo; epochs always end with a checkpoint.
        title: what the bar says it trains.
        console: where the bar goes; standard error by default.
        on_step: told epoch and step, both from 1, loss, and mean NFE per row.
        on_epoch: told what `TrainingRecord.epochs` keeps of an epoch, when it is over.
    """
    check_loggers(loggers, directory)
    if not len(series):
        raise ValueError("there are no series to train on; give at least one")
    fabric = fabric or make_fabric(next(model.parameters()).device, recipe.precision)
    given = (series, targets, weights)
    held = (*validation, None) if validation is not None and len(validation) == 2 else validation
    examples = _examples("training", *given, objective)
    examples = Examples(series, examples.targets, examples.weights / examples.weights.mean())
    others = None if held is None else _examples("validation", *held, objective)
    run = Run(model, objective, recipe, fabric, examples, others)
    identity: dict[str, Any] = {}
    if directory is not None:
        directory = Path(directory)
        identity = identity_of(model, recipe, objective, {"training": given, "validation": held})
        _resume(run, identity, directory)
    with _own_randomness(fabric), _own_memory(), _opened(run, directory, loggers) as logs:
        shown = console or Console(stderr=True) if progress and fabric.is_global_zero else None
        done = run.epoch * run.steps + run.step
        with ProgressBar(shown, title, recipe.epochs, run.steps, done) as bar:
            saved = time.perf_counter()
            while not run.finished:
                while run.step < run.steps:
                    loss, nfe = run.take_step()
                    bar.step(run.epoch + 1, loss, nfe)
                    if on_step is not None:
                        on_step(run.epoch + 1, run.step, loss, nfe)
                    if directory is not None and time.perf_counter() - saved >= checkpoint_seconds:
                        _save(run, identity, directory)
                        saved = time.perf_counter()
                entry = run.end_epoch()
                if others is not None:
                    bar.validated(objective.metric, entry[f"validation_{objective.metric}"])
                if on_epoch is not None:
                    on_epoch(entry)
                for log in logs:
                    log.epoch(entry)
                if directory is not None:
                    _save(run, identity, directory)
                    saved = time.perf_counter()
    run.take_best()
    model.eval()
    return run.record


def _examples(what: str, series: SeriesSet, targets, weights, objective: Objective) -> Examples:
    """Series with targets and weights as tensors, checked."""
    if len(series) != len(targets):
        raise ValueError(f"there are {len(series)} {what} series and {len(targets)} targets; give one per series")
    if weights is None:
        weights = np.ones(len(series))
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(series),):
        raise ValueError(f"{what} weights have shape {weights.shape}; give one number per series ({len(series)})")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum() > 0:
        raise ValueError(f"{what} weights must be finite, none below 0 and not all 0; correct them")
    return Examples(series, objective.targets(targets), torch.as_tensor(weights))


def _resume(run: Run, identity: dict[str, Any], directory: Path) -> None:
    """Go on where the directory's checkpoint is; the first process reads it for all."""
    found = None
    if run.fabric.is_global_zero:
        directory.mkdir(parents=True, exist_ok=True)
        found = Checkpoint.load(directory)
    found = run.fabric.broadcast(found)
    if found is not None:
        found.check_run(identity, directory)
        run.restore(found)


def _save(run: Run, identity: dict[str, Any], directory: Path) -> None:
    if run.fabric.is_global_zero:
        run.checkpoint(identity).save(directory)
    if run.fabric.is_global_zero and run.record.epochs:
        write_metrics(directory, run.record.epochs)


@contextmanager
def _opened(run: Run, directory: Path | None, names: Sequence[str]) -> Iterator[list[Log]]:
    """The logs of a run, on the first process."""
    logs: list[Log] = []
    if directory is not None and run.fabric.is_global_zero and not run.finished:
        resumed = bool(run.epoch or run.step)
        logs = [LOGGERS[name](directory, asdict(run.recipe), resumed, run.epoch) for name in names]
    try:
        yield logs
    finally:
        for log in logs:
            log.close(run.finished)


@contextmanager
def _own_randomness(fabric: Fabric) -> Iterator[None]:
    """Leave the caller's random state as it was."""
    devices = [fabric.device] if fabric.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


@contextmanager
def _own_memory() -> Iterator[None]:
    """Keep nothing of what steps kept for each other."""
    try:
        yield
    finally:
        native.give_back()
