"""What experiments do to series: stamps dropped, noise added, time scaled, equal lengths."""

from dataclasses import replace

import numpy as np

from smoothcde.series import SeriesSet


def drop_stamps(series: SeriesSet, share: float, seed: int = 0) -> SeriesSet:
    """Every series without that share of its stamps, chosen at random; the first and the last stay.

    Of n stamps `round(share * n)` leave, or all n - 2 between the ends where that is fewer. A stamp leaves with all its
    channels. Stamps outside a declared window neither count nor leave, and windows stay as they are.

    ```python
    from smoothcde.data import drop_stamps, load_uea

    series, labels = load_uea("JapaneseVowels", "test")
    sparse = drop_stamps(series, 0.3, seed=1)
    ```
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}; give the share of stamps that leave, from 0 to 1")
    owner, inside = series.owner, series.inside
    between = np.flatnonzero(inside & ~ends_of_windows(series))
    # The stamps of each series in random order: the first so many of them leave.
    draws = np.random.default_rng(seed).random(len(between))
    between = between[np.lexsort((draws, owner[between]))]
    first = np.searchsorted(owner[between], np.arange(len(series)))
    place = np.arange(len(between)) - first[owner[between]]
    leaving = np.rint(share * np.bincount(owner[inside], minlength=len(series)))
    keep = np.ones(len(series.times), dtype=bool)
    keep[between[place < leaving[owner[between]]]] = False
    return series.keeping(keep)


def ends_of_windows(series: SeriesSet) -> np.ndarray:
    """Which stamps are the first or the last inside their series' window, a mask over `series.times`."""
    inside = np.flatnonzero(series.inside)
    seams = np.diff(series.owner[inside], prepend=-1, append=-1) != 0
    ends = np.zeros(len(series.times), dtype=bool)
    ends[inside[seams[:-1] | seams[1:]]] = True
    return ends


def add_noise(series: SeriesSet, level: float, seed: int = 0) -> SeriesSet:
    """White Gaussian noise N(0, level^2) on every observed value; what was not observed stays so.

    The level is in the units of the values: scale the channels first (`ChannelScaler`) for one level to fit them all.
    """
    if not 0 <= level < np.inf:
        raise ValueError(f"level is {level}; give the standard deviation of the noise, a finite number from 0")
    noise = np.random.default_rng(seed).normal(size=series.values.shape)
    return replace(series, values=series.values + level * noise)


def scale_time(series: SeriesSet, factor: float) -> SeriesSet:
    """Stamps and windows times a factor; values as they are."""
    if not 0 < factor < np.inf:
        raise ValueError(f"factor is {factor}; time can be scaled by a positive finite number only")
    return replace(series, times=series.times * factor, start=series.start * factor, end=series.end * factor)


def resample(series: SeriesSet, length: int) -> SeriesSet:
    """Every series at `length` equally spaced moments from its first to its last stamp, which become 0, 1, 2, ...

    Linear between the observations of a channel, and not observed before its first and after its last. The paper's
    CharacterTrajectories has 119 stamps, its SpokenArabicDigits 65: equal-length copies, made like this.
    Of a series with a declared window, what is inside is resampled, and the window becomes first to last stamp.
    """
    if length < 2:
        raise ValueError(f"length is {length}; series can be resampled to two stamps or more")
    series = series.cropped()
    if empty := [str(name) for name, stamps in zip(series.ids, series.lengths, strict=True) if not stamps]:
        raise ValueError(f"series {', '.join(empty)} have no stamps to resample; leave them out")
    values = np.empty((len(series), length, series.channels))
    for i, (first, end) in enumerate(zip(series.offsets[:-1], series.offsets[1:], strict=True)):
        times = series.times[first:end]
        moments = np.linspace(times[0], times[-1], length)
        for channel, column in enumerate(series.values[first:end].T):
            seen = np.flatnonzero(~np.isnan(column))
            values[i, :, channel] = (
                np.interp(moments, times[seen], column[seen], left=np.nan, right=np.nan) if len(seen) else np.nan
            )
    return replace(
        series,
        values=values.reshape(-1, series.channels),
        times=np.tile(np.arange(float(length)), len(series)),
        offsets=np.arange(len(series) + 1) * length,
        start=np.zeros(len(series)),
        end=np.full(len(series), length - 1.0),
    )
