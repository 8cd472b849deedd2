"""What is measured of a trial: each measure takes a trial and gives numbers that JSON can keep."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from smoothcde.data import add_noise
from smoothcde.experiments.footprint import PAPER_DATA as SHAPES
from smoothcde.experiments.footprint import peak_above, peak_memory, reset_peak
from smoothcde.models import SeriesModel, largest_divergence, largest_similarity, parameter_count
from smoothcde.models.cde import CDEModel
from smoothcde.reproduce.fitting import Fitted, fit_trial
from smoothcde.reproduce.forecast import forecast
from smoothcde.reproduce.settings import reference_of, setting_of
from smoothcde.reproduce.trial import Trial
from smoothcde.series import SeriesSet
from smoothcde.training import measure_classifier

NOISE_LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def score(trial: Trial, work: Path) -> dict[str, Any]:
    """Accuracy on test series, evaluations as the paper counts them and per row, times and memory."""
    before = reset_peak()
    fitted = fit_trial(trial, work)
    peak = peak_above(before)
    model, task, record = fitted.model, fitted.task, fitted.record
    measured = measure_classifier(model, task.test.series, task.test.targets, fitted.setting.batch_size)
    best = record.epochs[record.best_epoch - 1]
    return {
        "accuracy": measured.accuracy,
        "validation_accuracy": best["validation_accuracy"],
        "test_series": len(task.test.series),
        "best_epoch": record.best_epoch,
        "epochs": len(record.epochs),
        "losses": [round(row["loss"], 5) for row in record.epochs],
        "joint_nfe": measured.joint_nfe,
        "row_nfe": measured.row_nfe,
        "parameters": parameter_count(model),
        # Processor time: it means the same whether or not others use the machine.
        "train_seconds": record.processor_seconds,
        "train_clock_seconds": record.seconds,
        "fit_seconds": path_seconds(model, task.train.series, fitted.setting.batch_size),
        "test_seconds": test_seconds(model, task.test.series, fitted.setting.batch_size),
        "peak_megabytes": None if fitted.resumed else peak,  # else it is that of reading a checkpoint
        **similarity(fitted),
    }


def noise(trial: Trial, work: Path) -> dict[str, Any]:
    """The trained model on test series with more and more white noise."""
    fitted = fit_trial(trial, work)
    test, levels = fitted.task.test, []
    for number, level in enumerate(NOISE_LEVELS):
        noisy = add_noise(test.series, level, seed=100 * trial.seed + number)
        found = measure_classifier(fitted.model, noisy, test.targets, fitted.setting.batch_size)
        levels.append(
            {"level": level, "accuracy": found.accuracy, "joint_nfe": found.joint_nfe, "row_nfe": found.row_nfe}
        )
    return {"levels": levels}


def memory(trial: Trial, work: Path) -> dict[str, Any]:
    """Parameters, and the peak memory of a training step in a fresh process."""
    setting = setting_of(trial)
    shape = SHAPES[trial.data]
    sizes = trial.model, reference_of(trial.data), shape.channels, shape.classes, float(shape.length)
    with torch.device("meta"):
        hidden = setting.hidden_of(*sizes)
        sized = replace(setting, hidden=hidden).build(*sizes)
    peak = peak_memory(trial.data, trial.model, hidden, setting.batch_size)
    return {"parameters": parameter_count(sized), "hidden": hidden, "megabytes": peak}


@torch.no_grad()
def attention(trial: Trial, work: Path) -> dict[str, Any]:
    """What each view listens to in one test series, the path it makes of it, and the steps of the solver."""
    fitted = fit_trial(trial, work)
    model, test = fitted.model.eval(), fitted.task.test
    batch = test.series.batch([0])
    outcome = model.solve(batch)
    assert outcome.path is not None
    assert outcome.solution is not None
    moments = torch.linspace(0.0, float(batch.end[0]), 200, dtype=torch.float64)
    rows = outcome.path.rows
    drawn = torch.stack([outcome.path.evaluate(moment.expand(rows)) for moment in moments], dim=1)
    steps = [row.tolist() for row in outcome.solution.steps]
    found: dict[str, Any] = {
        "stamps": batch.times[0].tolist(),
        "values": _rounded(batch.values[0]),
        "moments": _rounded(moments),
        "paths": _rounded(drawn),
        "steps": [[round(moment, 3) for moment in row] for row in steps],
        "nfe": outcome.nfe.tolist(),
        "answer": int(outcome.outputs.argmax()),
        "truth": int(test.targets[0]),
    }
    if outcome.attention is not None:
        found["attention"] = _rounded(outcome.attention[0], 6)
    return found


def _rounded(tensor: torch.Tensor, digits: int = 4) -> list[Any]:
    return np.round(tensor.double().numpy(), digits).tolist()


@torch.no_grad()
def similarity(fitted: Fitted) -> dict[str, float]:
    """How alike the views of a model attend to test series, for models with several."""
    weights = getattr(fitted.model, "weights", None)
    if weights is None or len(fitted.setting.bandwidths) < 2:
        return {}
    found = weights(fitted.task.test.series.batch())
    return {
        "largest_cosine": float(largest_similarity(found)),
        "largest_divergence": float(largest_divergence(found)),
    }


@torch.no_grad()
def path_seconds(model: SeriesModel, series: SeriesSet, batch_size: int) -> float | None:
    """Processor time of building the paths of all series once; None for models that have none."""
    if not isinstance(model, CDEModel):
        return None
    batches = [series.batch(chosen) for chosen in _batches(series, batch_size)]
    return _timed(lambda: [model.smooth(batch) for batch in batches])


@torch.no_grad()
def test_seconds(model: SeriesModel, series: SeriesSet, batch_size: int) -> float:
    """Processor time of one pass over the series."""
    model.eval()
    batches = [series.batch(chosen) for chosen in _batches(series, batch_size)]
    return _timed(lambda: [model(batch) for batch in batches])


def _batches(series: SeriesSet, batch_size: int) -> list[np.ndarray]:
    return np.array_split(np.arange(len(series)), -(-len(series) // batch_size))


def _timed(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


MEASURES: Mapping[str, Callable[[Trial, Path], dict[str, Any]]] = {
    "score": score,
    "noise": noise,
    "attention": attention,
    "memory": memory,
    "forecast": forecast,
}
