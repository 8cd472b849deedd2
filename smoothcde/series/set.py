"""`SeriesSet`: irregular multivariate series as users hold them."""

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from smoothcde.checks import check_choice
from smoothcde.series.arrays import flatten_arrays, in_seconds, span_in_seconds
from smoothcde.series.batch import SeriesBatch
from smoothcde.series.duplicates import Duplicates
from smoothcde.series.frames import column_of, flatten_frame, numbers_of
from smoothcde.series.padding import pad_with_last
from smoothcde.series.problems import Problems, counted, listed

Padding = Literal["own", "last"]


@dataclass(frozen=True, eq=False)
class SeriesSet:
    """Irregular series: own stamps and own length each, NaN where a channel was not observed.

    Build one with `from_arrays` or `from_frame`; both check everything and tell all problems at once.

    ```python
    import numpy as np
    from smoothcde import SeriesSet

    heart = np.array([[71.0, np.nan, 88.0], [0.97, 0.95, np.nan]])   # two channels, three stamps
    pulse = np.array([[64.0, 66.0], [0.99, 0.99]])
    series = SeriesSet.from_arrays([heart, pulse], times=[[0.0, 1.5, 7.0], [0.0, 2.0]])
    batch = series.batch()                                           # values [2, 3, 2], times, mask, lengths
    ```

    The series lie one after the other in `values` and `times`; `offsets[i]:offsets[i + 1]` are series i's.

    Attributes:
        values: `[all stamps, channels]`, NaN where not observed.
        times: `[all stamps]`, float64, increasing within a series.
        offsets: `[n + 1]`.
        start: where each series' window begins: its first stamp unless declared.
        end: where each window ends: the last stamp unless declared.
        ids: the user's name of each series.
        channel_names: the user's name of each channel.
        static: `[n, features]` or None.
        static_names: the user's name of each static feature.
    """

    values: np.ndarray
    times: np.ndarray
    offsets: np.ndarray
    start: np.ndarray
    end: np.ndarray
    ids: tuple[Hashable, ...]
    channel_names: tuple[str, ...]
    static: np.ndarray | None = None
    static_names: tuple[str, ...] = ()

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        times: Any = None,
        *,
        static: Any = None,
        window: tuple[Any, Any] | None = None,
        ids: Sequence[Hashable] | None = None,
        channel_names: Collection[Any] | None = None,
        duplicates: Duplicates = "error",
    ) -> "SeriesSet":
        """Series from arrays.

        Args:
            X: `(n, channels, time)`, or `(n, time)` for one channel, or a list with one `(channels, time_i)` or
                `(time_i,)` per series. NaN means not observed.
            times: None for 0, 1, 2, ...; `(time,)` shared by all; `(n, time)`; or a list with one array per series.
                A stamp of NaN where nothing is observed is padding and dropped. Dates become seconds since 1970.
            static: `(n, features)`, what does not change with time.
            window: `(start, end)`, each a number or one per series: the prediction moment and the beginning of its
                history. Observations outside are kept, but no batch shows them. Without it, first and last stamp.
            ids: names of the series for messages and tables; 0, 1, 2, ... without.
            channel_names: names of the channels, taken as text; "channel 0", ... without.
            duplicates: what to do with equal stamps in one series: "error", "mean", "last" or "first".
        """
        labels = None if channel_names is None else [str(name) for name in channel_names]
        flat = flatten_arrays(X, times, ids=ids, channel_names=labels, duplicates=duplicates)
        return cls(*flat, *_first_and_last(flat[1], flat[2]), *_names(flat, ids, labels))._finish(static, window)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        id: str,
        time: str,
        channels: Sequence[str] | None = None,
        variable: str | None = None,
        value: str | None = None,
        static: Any = None,
        window: tuple[Any, Any] | None = None,
        ids: Sequence[Hashable] | None = None,
        duplicates: Duplicates = "error",
    ) -> "SeriesSet":
        """Series from a pandas or polars table, its rows in any order.

        Two forms are read. *Wide*: one row per series and time, one column per channel (`channels`, or every other
        numeric column). *Tidy*: one row per observation, with columns that name the `variable` and hold its `value`;
        `channels` then picks variables and their order. A tidy row without a value is no observation, nor a stamp.

        Args:
            frame: the table.
            id: column that names the series.
            time: column of stamps: numbers, dates, or ISO 8601 text. Dates become seconds since 1970.
            channels: see above.
            variable: column naming the variable of a tidy table.
            value: column holding the value of a tidy table.
            static: a table with the `id` column and one numeric column per static feature.
            window: as in `from_arrays`.
            ids: which series, in this order. Names without any row give series without observations.
            duplicates: what to do where one channel has several values at one stamp of one series.
        """
        values, stamps, offsets, names, columns = flatten_frame(
            frame, id, time, channels, variable, value, ids=ids, duplicates=duplicates
        )
        series = cls(values, stamps, offsets, *_first_and_last(stamps, offsets), names, columns)
        if static is None:
            return series._finish(None, window)
        features, feature_names = _static_columns(static, id, names)
        return replace(series, static_names=feature_names)._finish(features, window)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        lengths = self.lengths
        span = f", {lengths.min()} to {lengths.max()} stamps" if len(self) else ""
        observed = f", {np.isfinite(self.values).mean():.0%} observed" if self.values.size else ""
        return f"SeriesSet({len(self)} series, {counted(self.channels, 'channel')}{span}{observed})"

    def __getitem__(self, indices) -> "SeriesSet":
        """The series at the given indices (an integer gives a set of one), a slice or a boolean mask."""
        picked = np.atleast_1d(np.arange(len(self))[indices])
        lengths = self.lengths[picked]
        stamps = _ranges(self.offsets[picked], lengths)
        return replace(
            self,
            values=self.values[stamps],
            times=self.times[stamps],
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            start=self.start[picked],
            end=self.end[picked],
            ids=tuple(self.ids[i] for i in picked),
            static=None if self.static is None else self.static[picked],
        )

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self.values.shape[1]

    @property
    def lengths(self) -> np.ndarray:
        """Stamps per series."""
        return np.diff(self.offsets)

    @property
    def longest_span(self) -> float:
        """The longest window of the set: the time scale that bandwidths are fractions of."""
        return float((self.end - self.start).max(initial=0.0))

    @property
    def median_step(self) -> float:
        """The median time between neighbouring stamps of a series, 1 where no series has two."""
        steps, rounding = self._steps()
        if not len(steps):
            return 1.0
        middle = np.median(steps)
        alike = steps[np.abs(steps - middle) <= rounding]
        mean = float(np.mean(alike)) if middle > rounding and len(alike) else float(middle)
        plain = float(f"{mean:.6g}")
        return plain if abs(plain - mean) <= rounding else mean

    @property
    def even(self) -> bool:
        """Whether all stamps are equally far from the next of their series."""
        steps, rounding = self._steps()
        return not len(steps) or bool(np.ptp(steps) <= max(1e-6 * np.median(steps), rounding))

    def _steps(self) -> tuple[np.ndarray, float]:
        """Times from stamp to stamp inside series, and by how much they may differ though they are meant to be equal.

        On a regular grid steps differ by the rounding of large times: dates in tenths of a second are such.
        """
        seams = self.offsets[(self.offsets > 0) & (self.offsets < len(self.times))]
        return np.delete(np.diff(self.times), seams - 1), 4 * np.spacing(np.abs(self.times).max(initial=0.0))

    @property
    def has_missing(self) -> bool:
        """True if any channel is unobserved at any stamp."""
        return bool(np.isnan(self.values).any())

    def with_window(self, start: Any = None, end: Any = None, *, history: Any = None) -> "SeriesSet":
        """The same series seen through another window.

        Args:
            start: a number or a date, or one per series; the present start where None.
            end: the prediction moment, likewise.
            history: instead of `start`: the window is `[end - history, end]`; a number or a span of time.
        """
        if history is not None and start is not None:
            raise ValueError("give `start` or `history`, not both: history means start = end - history")
        last = self.end if end is None else in_seconds(end)
        first = self.start if start is None else start
        if history is not None:
            first = np.asarray(last) - span_in_seconds(history, "history")
        return self._finish(self.static, (first, last))

    def batch(
        self, indices=None, *, padding: Padding = "own", device=None, dtype: torch.dtype = torch.float32
    ) -> SeriesBatch:
        """The series (or those at `indices`) as padded tensors.

        Args:
            indices: which series, in this order; all by default.
            padding: "own" keeps every series to its own window. "last" continues each series to the length of the
                set's longest with its last observation, as the paper does (rectilinear padding); the continued stamps
                are a median step of the set apart. What a window hides neither counts nor comes back.
            device: where the tensors go.
            dtype: of values and static features; times stay float64.
        """
        check_choice("padding", padding, ("own", "last"))
        series = self if indices is None else self[indices]
        if padding == "last":
            longest = int(self._inside_window()[1].max(initial=0))
            series = pad_with_last(series.cropped(), length=longest, step=self.median_step)
        first, lengths = series._inside_window()
        position = np.arange(max(int(lengths.max(initial=0)), 1))
        stamped = position < lengths[:, None]
        # Padding repeats the last stamp; a series with no stamp in its window sits at its start.
        place = first[:, None] + np.minimum(position, np.maximum(lengths - 1, 0)[:, None])
        place = np.minimum(place, max(len(series.times) - 1, 0))
        origin = series.start
        if len(series.times):
            values = np.where(stamped[:, :, None], series.values[place], np.nan)
            times = np.where(lengths[:, None] > 0, series.times[place] - origin[:, None], 0.0)
        else:
            values, times = np.full((*stamped.shape, self.channels), np.nan), np.zeros(stamped.shape)
        mask = ~np.isnan(values)
        static = None if series.static is None else torch.tensor(series.static, dtype=dtype)
        batch = SeriesBatch(
            values=torch.as_tensor(np.where(mask, values, 0.0), dtype=dtype),
            times=torch.as_tensor(times),
            mask=torch.as_tensor(mask),
            lengths=torch.as_tensor(lengths),
            start=torch.zeros(len(series), dtype=torch.float64),
            end=torch.as_tensor(series.end - origin),
            origin=torch.tensor(origin),
            static=static,
        )
        return batch if device is None else batch.to(device)

    @property
    def inside(self) -> np.ndarray:
        """Which stamps lie inside their series' window, a mask over `times`."""
        owner = self.owner
        return (self.times >= self.start[owner]) & (self.times <= self.end[owner])

    @property
    def owner(self) -> np.ndarray:
        """The number of the series that each stamp belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def cropped(self) -> "SeriesSet":
        """The same series without the stamps outside their windows."""
        return self.keeping(self.inside)

    def keeping(self, stamps: np.ndarray) -> "SeriesSet":
        """The same series and windows with these stamps only, given as a mask over `times`."""
        lengths = np.bincount(self.owner[stamps], minlength=len(self))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return replace(self, values=self.values[stamps], times=self.times[stamps], offsets=offsets)

    def _inside_window(self) -> tuple[np.ndarray, np.ndarray]:
        """Index of the first stamp inside each window, and how many are inside (they are contiguous)."""
        owner = self.owner
        before = np.bincount(owner[self.times < self.start[owner]], minlength=len(self))
        return self.offsets[:-1] + before, np.bincount(owner[self.inside], minlength=len(self))

    def _finish(self, static: Any, window: tuple[Any, Any] | None) -> "SeriesSet":
        """Attach and check what is said per series rather than per stamp."""
        problems = Problems()
        start, end = _declared_window(self, window, problems)
        features, names = _checked_static(self, static, problems)
        problems.raise_if_any()
        return replace(self, start=start, end=end, static=features, static_names=names)


def _first_and_last(times: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    filled = np.diff(offsets) > 0
    start, end = np.zeros(len(filled)), np.zeros(len(filled))
    start[filled], end[filled] = times[offsets[:-1][filled]], times[offsets[1:][filled] - 1]
    return start, end


def _names(flat, ids, channel_names) -> tuple[tuple[Hashable, ...], tuple[str, ...]]:
    values, _, offsets = flat
    names = tuple(ids) if ids is not None else tuple(range(len(offsets) - 1))
    channels = (
        tuple(channel_names) if channel_names is not None else tuple(f"channel {c}" for c in range(values.shape[1]))
    )
    return names, channels


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The indices `starts[i] .. starts[i] + lengths[i]`, one range after the other."""
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(int(lengths.sum())) + shift


def _declared_window(series: SeriesSet, window, problems: Problems) -> tuple[np.ndarray, np.ndarray]:
    if window is None:
        return series.start, series.end
    bounds = []
    for name, bound in zip(("start", "end"), window, strict=True):
        try:
            array = np.asarray(in_seconds(bound), dtype=np.float64)
        except (TypeError, ValueError):
            problems.add(f"window {name} is {bound!r}; give numbers, or dates such as pd.Timestamp('2024-05-17')")
            return series.start, series.end
        if array.ndim > 1 or (array.ndim == 1 and len(array) != len(series)):
            problems.add(f"window {name} has shape {array.shape}; give one number, or one per series ({len(series)})")
            return series.start, series.end
        bounds.append(np.broadcast_to(array, (len(series),)).copy())
    start, end = bounds
    wrong = np.flatnonzero(~(np.isfinite(start) & np.isfinite(end) & (start <= end)))
    for i in wrong:
        window = f"[{start[i]:.15g}, {end[i]:.15g}]"
        problems.add(f"series {series.ids[i]}: window {window} is not finite with start <= end; correct it")
    return start, end


def _checked_static(series: SeriesSet, static, problems: Problems) -> tuple[np.ndarray | None, tuple[str, ...]]:
    if static is None:
        return None, ()
    try:
        features = np.array(static)
        if features.dtype.kind in "cmM":
            raise TypeError
        features = features.astype(np.float64)
    except (TypeError, ValueError):
        problems.add("static features are not numbers; encode categories and dates as numbers first")
        return None, ()
    features = features[:, None] if features.ndim == 1 else features
    if features.ndim != 2 or len(features) != len(series):
        problems.add(f"static features have shape {features.shape}; expected ({len(series)}, features)")
        return None, ()
    named = getattr(static, "columns", None)
    numbered = tuple(f"static {j}" for j in range(features.shape[1]))
    names = series.static_names or (numbered if named is None else tuple(str(name) for name in named))
    for i, j in np.argwhere(~np.isfinite(features)):
        problems.add(f"series {series.ids[i]}: {names[j]} is {features[i, j]}; fill in a number (the mean, say)")
    return features, names


def _static_columns(frame: Any, id: str, names: tuple[Hashable, ...]) -> tuple[np.ndarray, tuple[str, ...]]:
    problems = Problems()
    if not hasattr(frame, "columns"):
        problems.add(f"static is a {type(frame).__name__}; give a table with the column {id!r} and one per feature")
        problems.raise_if_any()
    columns = [str(c) for c in frame.columns]
    if id not in columns:
        problems.add(f"the static table has no column {id!r}; its columns are {listed(columns)}")
        problems.raise_if_any()
    row_names = column_of(frame, id).to_list()
    row_of = {name: row for row, name in enumerate(row_names)}
    if twice := [name for name, count in Counter(row_names).items() if count > 1 and name in names]:
        problems.add(f"the static table has several rows for series {listed(twice)}; keep one of each")
    if absent := [name for name in names if name not in row_of]:
        problems.add(f"the static table has no row for series {listed(absent)}; add them")
    features = [c for c in columns if c != id]
    table = [numbers_of(column_of(frame, c), c, problems) for c in features]
    problems.raise_if_any()
    rows = [row_of[name] for name in names]
    table = [column[rows] for column in table]
    return np.stack(table, axis=1) if table else np.zeros((len(names), 0)), tuple(features)
