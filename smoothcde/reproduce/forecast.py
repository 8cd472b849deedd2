"""The forecasting task as trials: its settings, and one measurement."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from smoothcde.data import load_ett
from smoothcde.experiments.forecasting import READINGS, Plan, Task, run_one
from smoothcde.reproduce.trial import Trial

DATA = "ETTm1"


def plan_of(trial: Trial) -> tuple[Plan, str]:
    """How a trial forecasts, and how it reads "dropped"."""
    changes = dict(trial.changes)
    reading = changes.pop("reading", READINGS[0])
    return Plan(**changes), reading


def forecast_document(trial: Trial) -> dict[str, Any]:
    """A trial's setting, as JSON keeps it."""
    plan, reading = plan_of(trial)
    return {"reading": reading, **asdict(plan)}


def forecast(trial: Trial, work: Path) -> dict[str, Any]:
    """Squared and absolute error on the test months."""
    plan, reading = plan_of(trial)
    task = Task.of(load_ett(trial.data), reading, plan.drop, trial.seed)
    return run_one(task, trial.model, plan, trial.seed)
