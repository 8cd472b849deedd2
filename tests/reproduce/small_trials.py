"""Trials of seconds, on data that come with aeon."""

import sys
from pathlib import Path

from smoothcde.reproduce.engine import run_trials
from smoothcde.reproduce.store import Store
from smoothcde.reproduce.trial import Trial

SMALL = {"series": 60, "epochs": 2, "batch_size": 20, "hidden": 6, "width": 6, "tolerance": 1e-2}
DETERMINED = ("accuracy", "losses", "joint_nfe", "row_nfe", "best_epoch", "parameters")
"""What does not depend on the machine's speed."""


def small(model="gp", seed=0, measure="score", data="JapaneseVowels", **changes):
    return Trial.of(data, model, seed, measure, **{**SMALL, **changes})


def determined(results):
    return {trial: {key: result[key] for key in DETERMINED} for trial, result in results.items()}


def fake(accuracy=0.9, nfe=100.0, seconds=10.0, **more):
    """A result as `score` gives it."""
    return {
        "accuracy": accuracy,
        "joint_nfe": nfe,
        "row_nfe": nfe / 2,
        "train_seconds": seconds,
        "test_seconds": seconds / 10,
        "fit_seconds": 0.1,
        "epochs": 30,
        "parameters": 1000,
        "largest_cosine": 0.5,
        "largest_divergence": 0.2,
        **more,
    }


def noisy(growth=1.0, lost=0.1):
    """A result as `noise` gives it."""
    levels = [
        {
            "level": level,
            "accuracy": 0.9 - lost * level / 0.7,
            "joint_nfe": 100 * (1 + (growth - 1) * level / 0.7),
            "row_nfe": 1,
        }
        for level in (0.0, 0.35, 0.7)
    ]
    return {"levels": levels}


TRIALS = [small(seed=seed) for seed in range(4)]

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    run_trials(TRIALS, Store(folder), folder / "work", "joblib", 2)
