"""Small tables for the command line, and a way to run it."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from smoothcde.cli import app


def command(*arguments, width=200):
    """Run `smoothcde` with these arguments; `.stdout` and `.stderr` are kept apart."""
    settings = {"COLUMNS": str(width), "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=settings)


def waves(count=24, seed=0):
    """Series of two channels, one with gaps, whose outcome shows in their amplitude."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        loud = i % 2
        for time in np.sort(rng.uniform(0, 10, size=rng.integers(4, 8))):
            pulse = (1 + 2 * loud) * np.sin(time) + 0.1 * rng.normal()
            sat = np.nan if rng.random() < 0.3 else loud + rng.normal()
            rows.append((f"{i:03d}", round(time, 3), pulse, sat, "loud" if loud else "quiet", loud + 0.01 * i))
    return pd.DataFrame(rows, columns=["id", "time", "pulse", "sat", "outcome", "dose"])


def tidy(frame):
    """The same with one row per observation."""
    return frame.melt(["id", "time"], ["pulse", "sat"], "variable", "value").dropna().sort_values(["id", "time"])


def per_series(frame, *columns):
    """One row per series."""
    return frame.groupby("id", as_index=False)[list(columns)].first()
