"""The tuning grids that the paper's appendix gives its models, by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from smoothcde.checks import check_known

_RATES = (1e-3, 5e-3, 1e-2)
_TOLERANCES = (1e-2, 1e-3)
_WINDOWS = {"learning_rate": (5e-3, 1e-2), "stamps_per_window": (3, 5, 10, 20, 30), "depth": (1, 2)}
_NOISE = {"noise": (0.01, 0.05)}

GRIDS: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "ode-rnn": {"learning_rate": _RATES, "tolerance": _TOLERANCES},
    "gru-d": {"learning_rate": _RATES},
    "gru": {"learning_rate": _RATES},
    "mamba": {"learning_rate": _RATES},
    "log-ncde": _WINDOWS,
    "neural-rde": _WINDOWS,
    "gp": _NOISE,
    "mv-gp": _NOISE,
    "mvc-gp": _NOISE,
}


@dataclass(frozen=True)
class GridPoint:
    """One setting of a grid.

    Attributes:
        learning_rate: for the `Recipe`; None where the grid leaves it to the data set's own.
        settings: for `build_model`.
    """

    learning_rate: float | None
    settings: dict[str, Any]


def grid_points(name: str, longest: int | None = None) -> Iterator[GridPoint]:
    """Every setting of a named grid.

    ```python
    for point in grid_points("log-ncde", longest=119):
        model = build_model("log-ncde", channels=3, outputs=20, time_scale=118.0, **point.settings)
    ```

    Args:
        name: one of `GRIDS`.
        longest: stamps of the longest series, for grids of windows: the paper counts a window's length in stamps, a
            model takes it as a fraction of the time scale.
    """
    check_known("grid", name, GRIDS)
    grid = GRIDS[name]
    if "stamps_per_window" in grid and (longest is None or longest < 2):
        raise ValueError(f"longest is {longest}; the grid {name!r} needs the number of stamps of the longest series")
    for values in product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        rate = settings.pop("learning_rate", None)
        if (tolerance := settings.pop("tolerance", None)) is not None:
            settings |= {"rtol": tolerance, "atol": tolerance}
        if longest is not None and (stamps := settings.pop("stamps_per_window", None)) is not None:
            settings["step"] = stamps / (longest - 1)
        yield GridPoint(rate, settings)
