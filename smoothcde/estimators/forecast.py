"""`Forecast`: what a forecaster says."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class Forecast:
    """Forecasts of several series.

    Attributes:
        ids: of the series.
        channel_names: of the channels.
        times: `[n, horizon]`, in the series' own time.
        values: `[n, horizon, channels]`, in their own units; medians where there are quantiles.
        quantiles: levels of `bands`; empty without.
        bands: `[levels, n, horizon, channels]`, rising from level to level.
    """

    ids: tuple[Hashable, ...]
    channel_names: tuple[str, ...]
    times: np.ndarray
    values: np.ndarray
    quantiles: tuple[float, ...] = ()
    bands: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The lowest and the highest quantile, None without quantiles."""
        return None if self.bands is None else (self.bands[0], self.bands[-1])

    def to_frame(self, id: str = "id", time: str = "time") -> pd.DataFrame:
        """A row per series and time, a column per channel, and one per channel and quantile (`load_q0.1`)."""
        n, horizon, _ = self.values.shape
        owner = np.repeat(np.arange(n), horizon)
        columns: dict[str, np.ndarray] = {id: np.array(list(self.ids), dtype=object)[owner], time: self.times.ravel()}
        for place, name in enumerate(self.channel_names):
            columns[name] = self.values[:, :, place].ravel()
            if self.bands is not None:
                for level, band in zip(self.quantiles, self.bands, strict=True):
                    columns[f"{name}_q{level:g}"] = band[:, :, place].ravel()
        return pd.DataFrame(columns)
