"""The three settings of the paper that everything is compared on, with their data and one set of weights."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch

from smoothcde import ChannelScaler, SeriesBatch, SeriesSet, build_model, load_uea
from smoothcde.experiments.footprint import PAPER_DATA
from smoothcde.models import MultiViewCDE

HIDDEN = 128
"""State per view, and width of the field and the encoder."""


@dataclass(frozen=True)
class Setting:
    """One data set as the paper ran mvc-gp on it: dopri5, hidden 128.

    Attributes:
        data: name of the data set.
        series: of a batch.
        noise: sigma of the Gaussian process.
        tolerance: relative and absolute.
    """

    data: str
    series: int
    noise: float
    tolerance: float

    @property
    def length(self) -> int:
        """Stamps per series."""
        return PAPER_DATA[self.data].length

    @property
    def channels(self) -> int:
        """Channels per series."""
        return PAPER_DATA[self.data].channels

    @property
    def classes(self) -> int:
        """Outputs of the model."""
        return PAPER_DATA[self.data].classes

    @property
    def bandwidths(self) -> tuple[float, ...]:
        """One per view, in stamps."""
        return tuple(share * self.length for share in PAPER_DATA[self.data].bandwidths)

    @property
    def views(self) -> int:
        """Views of each series."""
        return len(self.bandwidths)


SETTINGS = {
    "CharacterTrajectories": Setting("CharacterTrajectories", 256, 0.01, 1e-3),
    "SpokenArabicDigits": Setting("SpokenArabicDigits", 2048, 0.01, 1e-3),
    "UWaveGestureLibrary": Setting("UWaveGestureLibrary", 264, 0.05, 1e-4),
}


@dataclass(frozen=True, eq=False)
class Work:
    """What every entry gets: the same series, labels and weights.

    Attributes:
        setting: what it is an example of.
        series: standardised, all of the setting's length.
        labels: class indices.
        model: ours, freshly drawn; peers take its weights.
        source: where the series are from, in words.
    """

    setting: Setting
    series: SeriesSet
    labels: np.ndarray
    model: MultiViewCDE
    source: str

    @classmethod
    def of(cls, setting: Setting, count: int | None = None) -> "Work":
        """The setting's batch, or a smaller one of `count` series."""
        setting = replace(setting, series=count or setting.series)
        series, labels, source = _series(setting)
        torch.manual_seed(0)
        model = build_model(
            "mvc-gp",
            channels=setting.channels,
            outputs=setting.classes,
            time_scale=float(setting.length),
            bandwidths=[h / setting.length for h in setting.bandwidths],
            noise=setting.noise,
            hidden=HIDDEN,
            rtol=setting.tolerance,
            atol=setting.tolerance,
        )
        assert isinstance(model, MultiViewCDE)
        return cls(setting, series, labels, model, source)

    def batch(self, dtype: torch.dtype = torch.float32) -> SeriesBatch:
        """All series as smoothcde takes them."""
        return self.series.batch(dtype=dtype)

    def values(self) -> np.ndarray:
        """`[n, length, channels]` in float32, as the peers take them: all on one regular grid."""
        return self.batch().values.numpy()

    def part(self, chosen: np.ndarray) -> "Work":
        """The same work on some of the series."""
        return replace(self, series=self.series[chosen], labels=self.labels[chosen])


def _series(setting: Setting) -> tuple[SeriesSet, np.ndarray, str]:
    generator = np.random.default_rng(0)
    try:
        every, labels = load_uea(setting.data, "all")
    except FileNotFoundError:
        shape = (setting.series, setting.channels, 6, 1)
        phase = 2 * np.pi * np.arange(1, 7)[:, None] * np.linspace(0, 1, setting.length)
        waves = generator.normal(size=shape) * np.sin(phase + generator.uniform(0, 2 * np.pi, size=shape))
        noise = 0.1 * generator.normal(size=(setting.series, setting.channels, setting.length))
        series, source = SeriesSet.from_arrays(waves.sum(axis=2) + noise), "generated sums of sines"
        return ChannelScaler.fit(series).transform(series), generator.integers(0, setting.classes, len(series)), source
    chosen = generator.permutation(len(every))[: setting.series]
    every, indices = every[chosen], np.unique(labels, return_inverse=True)[1][chosen]
    source = setting.data
    if set(np.diff(every.offsets)) != {setting.length}:
        every = resampled(every, setting.length)
        source += f", each series resampled linearly to {setting.length} stamps as in the archive's equal-length copy"
    return ChannelScaler.fit(every).transform(every), indices, source


def resampled(series: SeriesSet, length: int) -> SeriesSet:
    """Every series on `length` equal steps over its own window, by straight lines."""
    blocks = []
    for begin, end in pairwise(series.offsets):
        values, times = series.values[begin:end], series.times[begin:end]
        grid = np.linspace(times[0], times[-1], length)
        blocks.append(np.stack([np.interp(grid, times, channel) for channel in values.T]))
    return SeriesSet.from_arrays(blocks)
