"""Rolling windows: a history up to a moment, and what was observed after it."""

from dataclasses import dataclass, replace

import numpy as np

from smoothcde.series.set import SeriesSet

ROUNDING = 1e-6
"""Share of a step by which stamps may miss the edge of a window and still be in it."""


@dataclass(frozen=True)
class Rolling:
    """Histories of `context` steps, each with the `horizon` steps that follow.

    ```python
    rolling = Rolling(context=24, horizon=24, step=900.0)
    owner, moments = rolling.origins(series)
    histories, futures = rolling.histories(series, owner, moments), rolling.futures(series, owner, moments)
    ```

    An *origin* is the moment a forecast is made at. Its history is what was observed from `origin - (context - 1) *
    step` to `origin`: on a regular grid, `context` stamps. Its future has a value at each `origin + k * step`, k = 1
    ... horizon: the mean of what was observed within half a step of it, NaN where nothing was. The two never share a
    stamp.

    Attributes:
        context: steps of a history.
        horizon: steps of a future.
        step: time between them.
    """

    context: int
    horizon: int
    step: float

    @property
    def span(self) -> float:
        """Time from the start of a history to its origin."""
        return max(self.context - 1, 1) * self.step * (1 + ROUNDING)

    def origins(self, series: SeriesSet, every: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """All origins whose history and future lie inside a series' window, `every` so many steps.

        Returns:
            The number of the series of each origin, and its moment. A moment that rounding puts beside a stamp is moved
            onto it.
        """
        owners, moments = [np.zeros(0, dtype=int)], [np.zeros(0)]
        for i, (start, end) in enumerate(zip(series.start, series.end, strict=True)):
            first, last = start + (self.context - 1) * self.step, end - self.horizon * self.step
            slack = max(ROUNDING * self.step, 8 * np.spacing(max(abs(start), abs(end))))
            count = int(np.floor((last - first + slack) / (every * self.step))) + 1
            if count > 0:
                owners.append(np.full(count, i))
                stamps = series.times[series.offsets[i] : series.offsets[i + 1]]
                moments.append(_snapped(first + np.arange(count) * (every * self.step), stamps, slack))
        return np.concatenate(owners), np.concatenate(moments)

    def histories(self, series: SeriesSet, owner: np.ndarray, moments: np.ndarray) -> SeriesSet:
        """The history of each origin as a series of its own, which holds no stamp after it."""
        # Not read from the windows of `series`: whoever wants those kept crops it first.
        starts = moments - self.span
        first, last = self._between(series, owner, starts, moments, "right")
        lengths = last - first
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        stamps = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], lengths)
        return replace(
            series,
            values=series.values[stamps],
            times=series.times[stamps],
            offsets=offsets,
            start=starts,
            end=np.array(moments, dtype=np.float64),
            ids=tuple(f"{series.ids[i]} at {moment:.15g}" for i, moment in zip(owner, moments, strict=True)),
            static=None if series.static is None else series.static[owner],
        )

    def futures(self, series: SeriesSet, owner: np.ndarray, moments: np.ndarray) -> np.ndarray:
        """`[origins, horizon, channels]`: what was observed after each origin."""
        points = moments[:, None] + np.arange(1, self.horizon + 1) * self.step
        owners = np.repeat(owner, self.horizon)
        lowest, highest = (points - self.step / 2).ravel(), (points + self.step / 2).ravel()
        first, last = self._between(series, owners, lowest, highest, "left")
        total, count = np.zeros((len(first), series.channels)), np.zeros((len(first), series.channels))
        for place in range(int((last - first).max(initial=0))):
            inside = np.flatnonzero(first + place < last)
            found = series.values[first[inside] + place]
            count[inside] += np.isfinite(found)
            total[inside] += np.nan_to_num(found, nan=0.0)
        mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
        return mean.reshape(len(moments), self.horizon, series.channels)

    @staticmethod
    def _between(series: SeriesSet, owner, lowest, highest, side) -> tuple[np.ndarray, np.ndarray]:
        """Indices into all stamps: the first from `lowest`, and the first beyond `highest`."""
        first, last = np.zeros(len(owner), dtype=int), np.zeros(len(owner), dtype=int)
        for i in np.unique(owner):
            own = owner == i
            begin, end = series.offsets[i], series.offsets[i + 1]
            stamps = series.times[begin:end]
            first[own] = begin + np.searchsorted(stamps, lowest[own], side="left")
            last[own] = begin + np.searchsorted(stamps, highest[own], side=side)
        return first, np.maximum(first, last)


def _snapped(moments: np.ndarray, stamps: np.ndarray, slack: float) -> np.ndarray:
    if not len(stamps):
        return moments
    after = np.clip(np.searchsorted(stamps, moments), 0, len(stamps) - 1)
    for near in (stamps[after], stamps[np.maximum(after - 1, 0)]):
        moments = np.where(np.abs(near - moments) <= slack, near, moments)
    return moments
