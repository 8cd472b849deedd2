"""Channel-wise standardisation with statistics of the training series only."""

from dataclasses import dataclass, replace

import numpy as np

from smoothcde.series import SeriesSet
from smoothcde.series.problems import counted


@dataclass(frozen=True, eq=False)
class ChannelScaler:
    """(x - mean) / scale per channel, over what was observed.

    A channel that never varies, or was never observed, is only centred.
    """

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, series: SeriesSet) -> "ChannelScaler":
        """Statistics of a set of series."""
        observed = np.isfinite(series.values)
        count = np.maximum(observed.sum(axis=0), 1)
        mean = np.where(observed, series.values, 0.0).sum(axis=0) / count
        with np.errstate(over="ignore"):
            variance = (np.where(observed, series.values - mean, 0.0) ** 2).sum(axis=0) / count
        scale = np.sqrt(variance)
        if len(beyond := np.flatnonzero(~np.isfinite(scale))):
            name, largest = series.channel_names[beyond[0]], np.nanmax(np.abs(series.values[:, beyond[0]]))
            raise ValueError(
                f"channel {name!r} holds {largest:g}, too large a number to work with; make it NaN if it stands for "
                "'not observed', or give the channel in another unit"
            )
        # A constant channel has a spread of rounding size, not exactly zero.
        return cls(mean, np.where(scale > 1e-12 * np.maximum(np.abs(mean), 1e-300), scale, 1.0))

    def transform(self, series: SeriesSet) -> SeriesSet:
        """Standardised series."""
        self._check(series)
        return replace(series, values=(series.values - self.mean) / self.scale)

    def inverse(self, series: SeriesSet) -> SeriesSet:
        """Series in their original units."""
        self._check(series)
        return replace(series, values=series.values * self.scale + self.mean)

    def _check(self, series: SeriesSet) -> None:
        if series.channels != len(self.mean):
            raise ValueError(
                f"the scaler knows {counted(len(self.mean), 'channel')}; the series have {series.channels}"
            )
