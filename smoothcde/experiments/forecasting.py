"""Forecasts of ETTm1 with 30% of the observations dropped: the paper's task of forecasting under missingness.

Seven channels, 24 steps of 15 minutes seen, the next 24 forecast, errors in standard deviations of the training split,
months 1 to 12 for training, 13 to 16 for validation, 17 to 20 for the test, an origin at every step. What was dropped
is known to nobody before the test, whose targets are complete. "30% of daily observations were randomly dropped" can be
read in two ways: *stamps*, each dropped by chance, and *days*, dropped whole. Where a dropped day leaves a history
without any observation, no model can say anything, and there is no forecast.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from smoothcde.checks import check_known
from smoothcde.estimators import CDEForecaster
from smoothcde.experiments.lineup import REFERENCE, WITHOUT_WIDTH
from smoothcde.models import build_forecaster, matching_hidden, parameter_count
from smoothcde.models.forecast import BASELINES
from smoothcde.series import SeriesSet
from smoothcde.training import Recipe

READINGS = ("stamps", "days")
COMPARED = ("mvc-gp", "cubic", "gru", "linear-forecast", "last-value")
CONTEXT, HORIZON, STEP, DAY, MONTH = 24, 24, 900.0, 86400.0, 30 * 86400.0
CHANNELS = 7


@dataclass(frozen=True)
class Plan:
    """How every model is trained.

    Attributes:
        epochs: passes.
        epoch_size: windows of a pass.
        batch_size: windows per step.
        learning_rate: at its highest.
        weight_decay: of AdamW.
        hidden: size of mvc-gp's state per view; the others are matched to its parameter count.
        width: of fields and encoders.
        bandwidths: of mvc-gp's views, fractions of the context.
        noise: sigma of its Gaussian processes.
        time_unit: of the time channel of all equations, a fraction of the context.
        integral_unit: of their integral channels; None for none.
        tolerance: of the solver.
        clock: whether models are told the time of day. The paper does not say; in its authors' public code they are
            told phases of day, week, month, quarter and year.
        drop: share of the observations that is dropped.
    """

    epochs: int = 6
    epoch_size: int = 8192
    batch_size: int = 128
    learning_rate: float = 4e-3
    weight_decay: float = 0.3
    hidden: int = 32
    width: int = 32
    bandwidths: tuple[float, ...] = (0.06, 0.2)
    noise: float = 0.02
    time_unit: float = 0.03
    integral_unit: float | None = 0.3
    tolerance: float = 1e-2
    clock: bool = False
    drop: float = 0.3

    def recipe(self) -> Recipe:
        """The same for all."""
        return Recipe(
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.weight_decay,
            epoch_size=self.epoch_size,
            select="loss",
        )

    def options(self, name: str) -> dict[str, Any]:
        """Settings of a model besides its size."""
        if name in WITHOUT_WIDTH:
            return {}
        tolerances = {"rtol": self.tolerance, "atol": self.tolerance}
        settings = {"width": self.width, "time_channel": True, "time_unit": self.time_unit, **tolerances}
        if self.integral_unit is not None:
            settings |= {"integral_channels": True, "integral_unit": self.integral_unit}
        if name.startswith("mv"):
            settings |= {"encoder_width": self.width, "encoder_inputs": "values+mask+gap", "noise": self.noise}
        return settings

    def hidden_of(self, name: str) -> int:
        """The hidden size that gives a model as many parameters as mvc-gp."""
        with torch.device("meta"):
            reference = parameter_count(self._build(REFERENCE, self.hidden))
            return matching_hidden(lambda hidden: self._build(name, hidden), reference)

    def _build(self, name: str, hidden: int) -> Any:
        sizes: dict[str, Any] = {"channels": CHANNELS, "horizon": HORIZON, "context": CONTEXT, "time_scale": 1.0}
        sizes |= {"bandwidths": self.views_of(name), "periods": (DAY,) if self.clock else ()}
        return build_forecaster(name, **sizes, hidden=hidden, **self.options(name))

    def views_of(self, name: str) -> tuple[float, ...]:
        """Bandwidths of a model's paths."""
        return self.bandwidths if name.startswith("mv") else self.bandwidths[:1]


@dataclass(frozen=True, eq=False)
class Task:
    """The recording as it was and with observations dropped, cut into its splits."""

    training: SeriesSet
    validation: SeriesSet
    test: SeriesSet
    truth: SeriesSet

    @classmethod
    def of(cls, whole: SeriesSet, reading: str, drop: float, seed: int) -> "Task":
        """The task of one seed."""
        kept = whole_without(whole, dropped(whole.times, reading, drop, seed))
        start = float(whole.start[0])
        ends = [start + months * MONTH - STEP for months in (12, 16, 20)]
        # A split's first origin is the last stamp of the split before, so that every one of its stamps is a target.
        begins = [start, *(end - (CONTEXT - 1) * STEP for end in ends[:2])]
        parts = [kept.with_window(a, b).cropped() for a, b in zip(begins, ends, strict=True)]
        return cls(*parts, truth=whole.with_window(begins[2], ends[2]).cropped())


def dropped(times: np.ndarray, reading: str, share: float, seed: int) -> np.ndarray:
    """True at stamps that are dropped: "stamps" by chance, or "days" as a whole."""
    check_known("reading", reading, READINGS)
    generator = np.random.default_rng([seed, READINGS.index(reading)])
    if reading == "stamps":
        return generator.random(len(times)) < share
    day = np.floor((times - times[0]) / DAY).astype(int)
    return (generator.random(day.max() + 1) < share)[day]


def whole_without(series: SeriesSet, gone: np.ndarray) -> SeriesSet:
    """One recording less some stamps, its window as it was."""
    kept = ~gone
    return replace(series, values=series.values[kept], times=series.times[kept], offsets=np.array([0, int(kept.sum())]))


def run_one(task: Task, name: str, plan: Plan, seed: int) -> dict[str, Any]:
    """Train one model and judge it on the test split."""
    trained = name not in BASELINES
    forecaster = CDEForecaster(
        CONTEXT,
        HORIZON,
        name,
        step=STEP,
        baseline=False,
        hidden=plan.hidden_of(name) if trained else None,
        bandwidths=plan.views_of(name),
        periods=(DAY,) if plan.clock else (),
        recipe=plan.recipe(),
        model_options=plan.options(name) if trained else None,
        random_state=seed,
    )
    began, worked = time.perf_counter(), time.process_time()
    forecaster.fit(task.training, task.validation)
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    record = forecaster.predictor_.record
    best = record["epochs"][record["best_epoch"] - 1] if "epochs" in record else {}
    found = forecaster.backtest(task.test, truth=task.truth)
    scores = found.table.loc[name]
    return {
        "mse": float(scores["MSE"]),
        "mae": float(scores["MAE"]),
        "validation_mse": best.get("validation_loss"),
        "best_epoch": record.get("best_epoch"),
        "nfe": best.get("nfe") or None,
        "train_seconds": cpu,
        "train_clock_seconds": seconds,
        "parameters": parameter_count(forecaster.predictor_.model),
        "windows": found.origins,
        "without_history": found.skipped,
    }
