"""Forecasting under missingness: ETTm1, six hours seen, six forecast, 30% dropped."""

from collections.abc import Sequence

from smoothcde.experiments.forecasting import COMPARED, READINGS
from smoothcde.reproduce.blocks import Block, Cell, TableBlock, compared
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.forecast import DATA
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.published import FORECASTING
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial


def trials() -> list[Trial]:
    """Both readings of "dropped", with and without the time of day, three seeds."""
    changes = [{"reading": reading, "clock": clock} for clock in (False, True) for reading in READINGS]
    return grid([DATA], COMPARED, changes, measure="forecast")


def show(results: Results) -> Sequence[Block]:
    """Errors, evaluations and time, a table for each way of asking."""
    made = []
    for clock in (False, True):
        for reading in READINGS:
            rows = []
            for model in COMPARED:
                group = Trial.of(DATA, model, measure="forecast", reading=reading, clock=clock)
                if not results.of(group):
                    continue
                error, seconds = FORECASTING.get(model, (None, None))
                absolute, nfe = results.spread(group, "mae"), results.spread(group, "nfe")
                time = compared(results.spread(group, "train_seconds"), seconds, 0)
                rows.append(
                    [
                        model,
                        compared(results.spread(group, "mse"), error, 3, more=False),
                        "-" if absolute is None else absolute.text(3),
                        "-" if nfe is None else nfe.text(0),
                        Cell(time.text, time.paper),
                    ]
                )
            told = "told the time of day" if clock else "not told the time of day"
            if rows:
                headings = ("model", "test MSE", "test MAE", "NFE per row", "training, s")
                made.append(TableBlock(f"{reading} dropped, models {told}", headings, rows))
    return made


EXPERIMENT = Experiment(
    "forecasting",
    "Forecasting with missing observations",
    "MVC-GP forecasts better than a cubic neural CDE and a GRU, in less time than the cubic one.",
    "table 1",
    trials,
    show,
)
