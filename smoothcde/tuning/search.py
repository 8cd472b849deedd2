"""`tune`: trials of settings, each judged on validation series, kept where they can be taken up again."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from numbers import Integral
from os import PathLike
from typing import Any, cast

import pandas as pd
from sklearn.base import clone

from smoothcde.checks import check_above_zero, check_whole
from smoothcde.estimators import CDEClassifier, CDEForecaster, CDERegressor
from smoothcde.series import SeriesSet
from smoothcde.solve import SolveError
from smoothcde.training.checkpoint import fingerprint
from smoothcde.training.errors import TrainingError
from smoothcde.tuning.space import SearchSpace

Estimator = CDEClassifier | CDERegressor | CDEForecaster
_NO_MATTER = ("verbose", "directory", "device")
"""Parameters that do not change what a trial is about."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a search found.

    Attributes:
        estimator: with the best settings, not fitted.
        settings: those of them that were found; empty if it was best as it was given.
        judged_by: "loss", or a metric of which more is better.
        table: a row per trial, the best first: its number, how it ended, what it was judged by, validation loss, best
            epoch, evaluations per row, seconds, and its settings.
    """

    estimator: Estimator
    settings: dict[str, Any]
    judged_by: str
    table: pd.DataFrame


def tune(
    estimator: Estimator,
    series: SeriesSet,
    y: Any = None,
    *,
    validation: Any = None,
    trials: int = 30,
    hours: float | None = None,
    storage: str | PathLike[str] | None = None,
    space: SearchSpace | None = None,
    on_trial: Callable[[dict[str, Any]], None] | None = None,
) -> Tuned:
    """Search for better settings of an estimator.

    ```python
    found = tune(CDEClassifier(random_state=0), series, labels, trials=30, storage="study.db")
    print(found.table)
    classifier = found.estimator.fit(series, labels)
    ```

    The first trial is the estimator as it is, so what comes out is no worse than that on the validation series. All
    trials have one seed and the same validation series: those given, or the split that `fit` would hold out. What picks
    the best epoch of a training picks the best trial, ties going to the lower loss. A trial that is behind the median
    of the others after a third of its epochs is stopped. The more trials, the more the winner's score flatters it:
    judge it on series that had no part in this.

    Args:
        estimator: a `CDEClassifier`, `CDERegressor` or `CDEForecaster`; what `space` does not name stays as it is.
        series: to train and, without `validation`, to validate on.
        y: labels or numbers; None for forecasts.
        validation: as the estimator's `fit` takes it.
        trials: in all, those of earlier calls on the same storage included.
        hours: after which no further trial begins; None for no limit.
        storage: a file (SQLite) that keeps the trials, or the address of a database that many machines can work on at
            once, such as "postgresql://user@host/name". A search that was stopped goes on where it was. None to keep
            nothing.
        space: which settings to try.
        on_trial: told every trial of this call, as a row of the table.
    """
    # Optuna takes a second to import, which only those who search shall wait for.
    import optuna

    from smoothcde.tuning.study import finished, open_study, quietly, table_of

    check_whole("trials", trials, 1)
    if hours is not None:
        check_above_zero("hours", hours, "give the hours that the search may take, or None")
    space = space or SearchSpace()
    given = _settled(estimator)
    # What a forecaster is compared with plays no part in the choice.
    estimator = _with(given, {"baseline": False}) if isinstance(given, CDEForecaster) else given
    judged_by = estimator.judged_by(y)
    about = {"estimator": type(estimator).__name__, "series and targets": fingerprint(series, [] if y is None else y)}
    about |= {"validation": _name_of(validation)}
    about |= {name: value for name, value in estimator._params_to_json().items() if name not in _NO_MATTER}
    about |= {f"range of {name}": ends for name, ends in asdict(space).items()}
    warmup = max(1, estimator._recipe(len(series)).epochs // 3)
    with quietly():
        study = open_study(storage, about, "minimize" if judged_by == "loss" else "maximize", warmup)
    judge = _Judge(estimator, series, y, validation, judged_by)
    as_given = not any(trial.user_attrs.get("settings") == {} for trial in finished(study))

    def objective(trial: optuna.Trial) -> float:
        nonlocal as_given
        settings = {} if as_given else space.choose(trial, estimator.model)
        as_given = False
        return judge.value(trial, settings)

    def settled(study: optuna.Study, trial: Any) -> None:
        if on_trial is not None:
            on_trial(table_of([trial], judged_by).iloc[0].dropna().to_dict())
        if len(finished(study)) >= trials:
            study.stop()

    if len(finished(study)) < trials:
        seconds = None if hours is None else 3600 * hours
        with quietly():
            study.optimize(objective, timeout=seconds, callbacks=[settled], catch=(SolveError, TrainingError))
    table = table_of(study.get_trials(deepcopy=False), judged_by)
    if "state" not in table or table["state"].iloc[0] != "finished":
        failures = [trial.user_attrs["failure"] for trial in finished(study) if "failure" in trial.user_attrs]
        because = f"; the last one failed: {failures[-1]}" if failures else ""
        raise ValueError(f"no trial was finished{because}; give more trials or hours")
    settings = table["settings"].iloc[0]
    return Tuned(_with(given, settings), settings, judged_by, table)


@dataclass(frozen=True, eq=False)
class _Judge:
    """How good settings are: a training with them, and what the validation series say of it."""

    estimator: Estimator
    series: SeriesSet
    y: Any
    validation: Any
    judged_by: str

    def value(self, trial: Any, settings: dict[str, Any]) -> float:
        """Train; what else there is to know is kept with the trial, and why it failed if it did."""
        trial.set_user_attr("settings", settings)
        candidate = _with(self.estimator, settings)
        # The estimator as it is goes all the way: it is what the others are compared with.
        candidate.on_epoch = partial(self._look, trial, stoppable=bool(settings))
        try:
            if isinstance(candidate, CDEForecaster):
                candidate.fit(self.series, self.validation)
            else:
                candidate.fit(self.series, self.y, validation=self.validation)
            record = candidate.predictor_.record
            best = record["epochs"][record["best_epoch"] - 1]
            if not math.isfinite(best["validation_loss"] + best[f"validation_{self.judged_by}"]):
                raise TrainingError("the validation loss is no number in any epoch")
        except (SolveError, TrainingError) as error:
            trial.set_user_attr("failure", str(error))
            raise
        for name, value in {"loss": best["validation_loss"], "epoch": best["epoch"], "nfe": best["nfe"]}.items():
            trial.set_user_attr(name, float(value))
        return float(best[f"validation_{self.judged_by}"])

    def _look(self, trial: Any, entry: dict[str, Any], *, stoppable: bool) -> None:
        """After an epoch: go on, or stop here."""
        from optuna import TrialPruned

        if f"validation_{self.judged_by}" not in entry:
            raise ValueError(
                "there are no validation series to judge settings by; give `validation`, more series, or a larger "
                "validation_fraction"
            )
        trial.report(entry[f"validation_{self.judged_by}"], entry["epoch"])
        if stoppable and trial.should_prune():
            raise TrialPruned


def _name_of(validation: Any) -> str | None:
    """A name for validation series, None where there are none, or none that can be told apart."""
    parts = validation if isinstance(validation, tuple | list) else (validation, [])
    return fingerprint(parts[0], parts[1]) if isinstance(parts[0], SeriesSet) else None


def _with(estimator: Estimator, settings: dict[str, Any]) -> Estimator:
    """A copy with other settings."""
    return cast("Estimator", clone(estimator)).set_params(**settings)


def _settled(estimator: Estimator) -> Estimator:
    """A silent copy whose seed is a number, so that every trial has the same."""
    seed = estimator.random_state if isinstance(estimator.random_state, Integral) else estimator._seed()
    return _with(estimator, {"random_state": int(cast("int", seed)), "verbose": 0, "directory": None})
