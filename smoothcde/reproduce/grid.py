"""Grids of trials, by seed first: whatever the budget ends, every model has had the same number of seeds."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from smoothcde.reproduce.trial import Trial

MAIN_MODELS = (
    "linear",
    "cubic",
    "ode-rnn",
    "gru-d",
    "log-ncde",
    "mamba",
    "kernel",
    "gp",
    "mv-kernel",
    "mv-gp",
    "mvc-kernel",
    "mvc-gp",
)
FIVE_SEEDS = ("mvc-gp", "mvc-kernel", "gp", "cubic")
QUICK = {"epochs": 4}
QUICK_DATA = "JapaneseVowels"
"""Comes with aeon."""


def seeds_of(model: str) -> int:
    """Five for the models that the paper's claims rest on, three for the others."""
    return 5 if model in FIVE_SEEDS else 3


def grid(
    data: Sequence[str],
    models: Sequence[str],
    changes: Sequence[Mapping[str, Any]] = ({},),
    seeds: int | Callable[[str], int] = 3,
    measure: str = "score",
) -> list[Trial]:
    """Every data set, model and change, seed by seed.

    Args:
        data: data sets.
        models: by name.
        changes: of the paper's setting; a trial each.
        seeds: how many, for all models or by model.
        measure: what is measured.
    """
    count = seeds if callable(seeds) else lambda model: seeds
    most = max(map(count, models))
    return [
        Trial.of(name, model, seed, measure, **change)
        for seed, name, change, model in product(range(most), data, changes, models)
        if seed < count(model)
    ]
