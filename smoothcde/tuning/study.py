"""Where trials are kept, and what they look like as a table."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

import optuna
import pandas as pd
from optuna.trial import FrozenTrial, TrialState

from smoothcde.series.problems import listed

NAME = "smoothcde"
_FIRST_TRIALS = 5
"""Trials that go all the way before others are stopped for being behind them."""
_STATES = {TrialState.COMPLETE: "finished", TrialState.PRUNED: "stopped early", TrialState.FAIL: "failed"}


def open_study(
    storage: str | PathLike[str] | None, about: dict[str, Any], direction: Literal["minimize", "maximize"], warmup: int
) -> optuna.Study:
    """A new study, or the one that the storage holds, if it is about the same.

    Args:
        storage: see `tune`.
        about: what makes a search this search, as JSON knows it.
        direction: "minimize" or "maximize".
        warmup: epochs of a trial before it may be stopped.
    """
    study = optuna.create_study(
        storage=_database(storage),
        study_name=NAME,
        load_if_exists=True,
        direction=direction,
        # Where others may search at the same time, a sampler of the same seed would try what they try.
        sampler=optuna.samplers.TPESampler(seed=about["random_state"] if storage is None else None),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=_FIRST_TRIALS, n_warmup_steps=warmup),
    )
    about = json.loads(json.dumps(about, default=str))
    known = study.user_attrs.get("about")
    if known is None:
        study.set_user_attr("about", about)
    elif different := [name for name in about if known.get(name) != about[name]]:
        raise ValueError(
            f"'{storage}' holds a search that began otherwise: {listed(different)} differ; "
            "name another storage, or go on with this search as it began"
        )
    return study


def _database(storage: str | PathLike[str] | None) -> Any:
    if storage is None:
        return None
    address = fspath(storage)
    if "://" not in address:
        Path(address).resolve().parent.mkdir(parents=True, exist_ok=True)
        address = f"sqlite:///{address}"
    try:
        return optuna.storages.RDBStorage(address)
    except Exception as error:  # of whatever database it is
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{fspath(storage)!r} cannot be opened as a store of trials ({reason}); "
            "give a file name, or the address of a database"
        ) from error


@contextmanager
def quietly() -> Iterator[None]:
    """Without the words that Optuna has for every trial; whoever asked for a search is told of them anyway."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that came to an end, good or bad; not those of processes that died or were interrupted."""
    return [trial for trial in study.get_trials(deepcopy=False) if _ended(trial)]


def _ended(trial: FrozenTrial) -> bool:
    if trial.state == TrialState.FAIL:
        return "failure" in trial.user_attrs
    return trial.state in _STATES


def table_of(trials: Sequence[FrozenTrial], judged_by: str) -> pd.DataFrame:
    """A row per trial that came to an end, the best first; then those that were stopped or failed, in their order."""
    rows = [_row(trial, judged_by) for trial in trials if _ended(trial)]
    better = 1 if judged_by == "loss" else -1

    def rank(row: dict[str, Any]) -> tuple[Any, ...]:
        if row["state"] != "finished":
            return 1, 0.0, 0.0, row["trial"]
        return 0, better * row[judged_by], row["loss"], row["trial"]

    return pd.DataFrame(sorted(rows, key=rank))


def _row(trial: FrozenTrial, judged_by: str) -> dict[str, Any]:
    told = trial.user_attrs
    row: dict[str, Any] = {"trial": trial.number, "state": _STATES[trial.state]}
    if trial.state == TrialState.COMPLETE:
        row |= {judged_by: trial.value, "loss": told["loss"], "best epoch": int(told["epoch"]), "nfe": told["nfe"]}
    elif "failure" in told:
        row["failure"] = told["failure"]
    duration = trial.duration
    return row | {"seconds": None if duration is None else duration.total_seconds(), "settings": told.get("settings")}
