"""MSE, MAE, MASE and coverage of forecasts, added up window by window."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd


class ForecastTally:
    """Errors of forecasts, added up over windows; targets that were not observed (NaN) count for nothing.

    ```python
    tally = ForecastTally(channels=2)
    tally.add(truth, forecast)                       # [windows, horizon, channels], as often as there are windows
    tally.scores(naive=naive_error)["MASE"]
    ```
    """

    def __init__(self, channels: int):
        self.count, self.squared, self.absolute = (np.zeros(channels) for _ in range(3))
        self.inside: np.ndarray | None = None

    def add(
        self,
        truth: np.ndarray,
        forecast: np.ndarray,
        lower: np.ndarray | None = None,
        upper: np.ndarray | None = None,
    ) -> None:
        """Windows more, with the ends of an interval where the forecast has one."""
        if truth.shape != forecast.shape:
            raise ValueError(f"targets have shape {truth.shape}, forecasts {forecast.shape}; give both alike")
        seen = np.isfinite(truth)
        error = np.where(seen, forecast - truth, 0.0)
        self.count += seen.sum(axis=(0, 1))
        self.squared += (error**2).sum(axis=(0, 1))
        self.absolute += np.abs(error).sum(axis=(0, 1))
        if lower is not None and upper is not None:
            met = (seen & (lower <= truth) & (truth <= upper)).sum(axis=(0, 1))
            self.inside = met if self.inside is None else self.inside + met

    def scores(
        self, *, scale: np.ndarray | None = None, naive: np.ndarray | None = None, channel: int | None = None
    ) -> dict[str, float]:
        """The mean over all observed targets, or over those of one channel; NaN where there were none.

        Args:
            scale: what errors are divided by for MSE and MAE, per channel; 1 without.
            naive: the mean error of "as one step before" on the training series, per channel, which MASE divides by;
                channels that never moved are left out of it.
            channel: which, all by default.
        """
        own = slice(None) if channel is None else slice(channel, channel + 1)
        unit = np.ones(len(self.count)) if scale is None else scale
        count = self.count[own]
        found = {
            "MSE": _ratio((self.squared / unit**2)[own], count),
            "MAE": _ratio((self.absolute / unit)[own], count),
        }
        if naive is not None:
            moved = naive[own] > 0
            found["MASE"] = _ratio(self.absolute[own][moved] / naive[own][moved], count[moved])
        found["coverage"] = np.nan if self.inside is None else _ratio(self.inside[own], count)
        return found


@dataclass(frozen=True, eq=False)
class Backtest:
    """Forecasts from rolling origins, judged by what came.

    Attributes:
        tallies: by the name of the model.
        channel_names: of the series.
        scale: of each channel, in the training series.
        naive: error of "as one step before" in the training series, per channel.
        origins: moments that forecasts were made at.
        skipped: origins without any observation in their history, or without any target.
        interval: share of targets that the quantiles mean to hold; None without quantiles.
    """

    tallies: Mapping[str, ForecastTally]
    channel_names: tuple[str, ...]
    scale: np.ndarray
    naive: np.ndarray
    origins: int
    skipped: int
    interval: float | None = None

    @property
    def table(self) -> pd.DataFrame:
        """A row per model, over all channels; MSE and MAE in standard deviations of the training series."""
        rows = {name: tally.scores(scale=self.scale, naive=self.naive) for name, tally in self.tallies.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")

    @property
    def by_channel(self) -> pd.DataFrame:
        """A row per model and channel; MSE and MAE in the channel's own units."""
        rows = {
            (name, channel): tally.scores(naive=self.naive, channel=place)
            for name, tally in self.tallies.items()
            for place, channel in enumerate(self.channel_names)
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["model", "channel"])


def _ratio(total: np.ndarray, count: np.ndarray) -> float:
    return float(total.sum() / count.sum()) if count.sum() else np.nan
