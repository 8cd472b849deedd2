"""Forecasting under missingness: ETTm1, six hours seen, six forecast, 30% dropped."""

from collections.abc import Sequence
from typing import Any

from smoothcde.experiments.forecasting import COMPARED, READINGS
from smoothcde.reproduce.blocks import Block, Cell, TableBlock, compared
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.forecast import DATA
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.published import FORECASTING
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

BY_PATH_ALONE = {"time_unit": 1.0, "integral_unit": None}
"""The paper's equations: a state moves where its path does, and not by itself."""


def trials() -> list[Trial]:
    """Both readings of "dropped", with and without the time of day, ten seeds; and the paper's equations, three."""
    changes = [{"reading": reading, "clock": clock} for clock in (False, True) for reading in READINGS]
    by_path_alone = [{"reading": reading, "clock": False, **BY_PATH_ALONE} for reading in READINGS]
    found = grid([DATA], COMPARED, changes, seeds=10, measure="forecast")
    return found + grid([DATA], ("mvc-gp", "cubic"), by_path_alone, measure="forecast")


def show(results: Results) -> Sequence[Block]:
    """Errors, evaluations and time, a table for each way of asking."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("models not told the time of day", {"clock": False}),
        ("models told the time of day", {"clock": True}),
        ("not told the time of day, states that move only where their path does", {"clock": False, **BY_PATH_ALONE}),
    ]
    made = []
    for told, changes in asked:
        for reading in READINGS:
            groups = {m: Trial.of(DATA, m, measure="forecast", reading=reading, **changes) for m in COMPARED}
            rows = [_row(results, model, group) for model, group in groups.items() if results.of(group)]
            if rows:
                headings = ("model", "test MSE", "test MAE", "NFE per row", "training, s")
                made.append(TableBlock(f"{reading} dropped, {told}", headings, rows))
    return made


def _row(results: Results, model: str, group: Trial) -> list[Any]:
    error, seconds = FORECASTING.get(model, (None, None))
    absolute, nfe = results.spread(group, "mae"), results.spread(group, "nfe")
    time = compared(results.spread(group, "train_seconds"), seconds, 0)
    return [
        model,
        compared(results.spread(group, "mse"), error, 3, more=False),
        "-" if absolute is None else absolute.text(3),
        "-" if nfe is None else nfe.text(0),
        Cell(time.text, time.paper),
    ]


EXPERIMENT = Experiment(
    "forecasting",
    "Forecasting with missing observations",
    "MVC-GP forecasts better than a cubic neural CDE and a GRU, in less time than the cubic one.",
    "table 1",
    trials,
    show,
)
