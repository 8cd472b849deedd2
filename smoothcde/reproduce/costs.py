"""What trials cost, estimated before they are run: so that a budget decides what is run, not taste."""

from collections.abc import Sequence
from dataclasses import dataclass

from smoothcde.reproduce.results import Results
from smoothcde.reproduce.settings import as_done, setting_of
from smoothcde.reproduce.store import Store
from smoothcde.reproduce.trial import Trial

# Processor seconds of a whole training at the paper's setting on one 2026 server core: measured where trials were run
# with compiled code, else from single steps in plain torch.
_MEASURED = {
    "JapaneseVowels": {"linear": 160, "cubic": 60, "gp": 34, "mvc-gp": 45},
    "UWaveGestureLibrary": {
        "mvc-gp": 22,
        "gp": 9,
        "gru-d": 151,
        "mamba": 194,
        "kernel": 22,
        "mv-kernel": 36,
        "mv-gp": 22,
        "mvc-kernel": 65,
        "log-ncde": 63,
        "cubic": 181,
        "smoothing-spline": 53,
        "ode-rnn": 375,
        "linear": 332,
    },
    "CharacterTrajectories": {
        "mvc-gp": 45,
        "gp": 73,
        "gru-d": 340,
        "mamba": 430,
        "kernel": 98,
        "mv-kernel": 96,
        "mv-gp": 171,
        "mvc-kernel": 109,
        "log-ncde": 251,
        "cubic": 179,
        "smoothing-spline": 157,
        "ode-rnn": 594,
        "linear": 326,
    },
    "SpokenArabicDigits": {
        "mvc-gp": 173,
        "gp": 329,
        "gru-d": 438,
        "mamba": 706,
        "kernel": 590,
        "mv-kernel": 643,
        "mv-gp": 579,
        "mvc-kernel": 610,
        "log-ncde": 435,
        "cubic": 1498,
        "smoothing-spline": 586,
        "ode-rnn": 838,
        "linear": 3791,
    },
}
_UNKNOWN = 600.0
_FLAT = {"memory": 20.0, "forecast": 60.0}
"""Measures that cost about the same whatever the model."""
_SOLVER = {"bosh3": 2.5, "bs5": 1.0, "dopri5": 1.0, "tsit5": 1.0, "dopri8": 4.0}
"""Times the cost of dopri5, roughly, on exact paths; on smooth ones less."""


@dataclass(frozen=True)
class Budgeted:
    """Trials that fit into a budget, and those that do not.

    Attributes:
        chosen: in the order of running.
        left: the others.
        hours: estimated processor time of the chosen.
    """

    chosen: Sequence[Trial]
    left: Sequence[Trial]
    hours: float


def hours_of(trial: Trial) -> float:
    """Estimated processor hours, from a table of measured steps."""
    if trial.measure in _FLAT:
        return _FLAT[trial.measure] / 3600
    setting, usual = setting_of(trial), setting_of(Trial.of(trial.data, trial.model))
    seconds = _MEASURED.get(trial.data, {}).get(trial.model, _UNKNOWN)
    seconds *= setting.epochs / usual.epochs * len(setting.bandwidths) / len(usual.bandwidths)
    seconds *= _SOLVER[setting.solver] / _SOLVER[usual.solver]
    return seconds / 3600


def within(trials: Sequence[Trial], budget: float | None, store: Store) -> Budgeted:
    """The first trials without a result, as long as their estimated processor hours fit the budget; None for all.

    A trial is estimated by its other seeds where one has been run, else by `hours_of`.
    """
    distinct = list(dict.fromkeys(map(as_done, trials)))
    results = Results(store.found(distinct))
    chosen, left, spent = [], [], 0.0
    for trial in distinct:
        if trial in results:
            continue
        seconds = results.mean(trial, "train_seconds")
        hours = hours_of(trial) if seconds is None else seconds / 3600
        # Nothing is passed over: else cheap models would get more seeds than dear ones.
        if left or (budget is not None and spent + hours > budget):
            left.append(trial)
        else:
            chosen.append(trial)
            spent += hours
    return Budgeted(chosen, left, spent)
