"""Arrays and lists of arrays, checked and laid one after the other."""

from collections.abc import Hashable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd

from smoothcde.series.duplicates import check_policy, merge
from smoothcde.series.problems import Problems, listed

Flat = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Values `[all stamps, channels]`, times `[all stamps]`, offsets `[n + 1]`."""


def flatten_arrays(
    X: Any,
    times: Any,
    *,
    ids: Sequence[Hashable] | None,
    channel_names: Sequence[str] | None,
    duplicates: str,
) -> Flat:
    """Read what `SeriesSet.from_arrays` documents; raise `SeriesError` with all that is wrong."""
    check_policy(duplicates)
    problems = Problems()
    blocks = _value_blocks(X, ids, problems)
    problems.raise_if_any()
    names = list(ids) if ids is not None else list(range(len(blocks)))
    if len(names) != len(blocks):
        problems.add(f"there are {len(names)} ids for {len(blocks)} series; give one id per series")
    elif len(set(names)) != len(names):
        problems.add("ids are not unique; give every series its own")
    channels = _channel_count(X, blocks, channel_names)
    if channel_names is not None and len(channel_names) != channels:
        problems.add(f"there are {len(channel_names)} channel names for {channels} channels; give one per channel")
    elif channel_names is not None and len(set(channel_names)) != channels:
        problems.add("channel names are not unique; give every channel its own")
    stamps = _time_blocks(times, blocks, names, problems)
    problems.raise_if_any()

    offsets = np.concatenate([[0], np.cumsum([len(b) for b in blocks])]).astype(np.int64)
    values = np.concatenate(blocks) if blocks else np.zeros((0, channels))
    flat_times = np.concatenate(stamps) if stamps else np.zeros(0)
    values, flat_times, offsets = _drop_padding(values, flat_times, offsets)
    labels = list(channel_names) if channel_names is not None else [f"channel {c}" for c in range(channels)]
    owner = _owner(offsets)
    stamp, channel = np.nonzero(np.isinf(values))
    check_stamps(flat_times, owner, names, problems)
    check_values(owner[stamp], channel, names, labels, problems)
    repeated = _check_order(flat_times, offsets, names, duplicates, problems)
    problems.raise_if_any()
    return _merge_repeats(values, flat_times, offsets, repeated, duplicates)


def check_stamps(times: np.ndarray, owner: np.ndarray, names, problems: Problems) -> None:
    """Note which series have stamps that are not finite; `owner` is the series of each stamp."""
    for i in np.unique(owner[~np.isfinite(times)]):
        problems.add(f"series {names[i]}: some time stamps are NaN or infinite; give every observation a finite stamp")


def check_values(owner: np.ndarray, channel: np.ndarray, names, labels, problems: Problems) -> None:
    """Note the series and channel of infinite values, each pair once."""
    for pair in np.unique(owner * len(labels) + channel):
        i, c = divmod(pair, len(labels))
        problems.add(f"series {names[i]}, {labels[c]}: infinite values; use NaN for what was not observed")


def first_in_each(owner: np.ndarray, found: np.ndarray) -> Iterator[tuple[int, int]]:
    """Each series with something found, and the position of its first find."""
    at = np.flatnonzero(found)
    series, first = np.unique(owner[at], return_index=True)
    return zip(series.tolist(), at[first].tolist(), strict=True)


def _owner(offsets: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _channel_count(X: Any, blocks: list[np.ndarray], channel_names: Sequence[str] | None) -> int:
    """Where there is no series to ask, the shape of the empty array or the channel names tell."""
    if blocks:
        return blocks[0].shape[1]
    shape = np.shape(X)
    if len(shape) == 3:
        return shape[1]
    return 1 if len(shape) == 2 else len(channel_names or ())


def _value_blocks(X: Any, ids: Sequence[Hashable] | None, problems: Problems) -> list[np.ndarray]:
    """One `[time, channels]` float64 array per series."""
    X = _without_torch(X)
    if isinstance(X, np.ndarray) and X.dtype != object:
        array = _floats(X, "X", problems)
        if array is None:
            return []
        if array.ndim not in (2, 3):
            problems.add(
                f"X has {array.ndim} dimensions, shape {array.shape}; "
                "expected (series, channels, time) or (series, time)"
            )
            return []
        array = array[:, None, :] if array.ndim == 2 else array
        return list(np.swapaxes(array, 1, 2))
    if not isinstance(X, list | tuple | np.ndarray):
        problems.add(f"X is a {type(X).__name__}; give an array, a list of arrays, or use SeriesSet.from_frame")
        return []
    names = list(ids) if ids is not None and len(ids) == len(X) else range(len(X))
    blocks, readable = [], []
    for name, item in zip(names, X, strict=True):
        array = _floats(item, f"series {name}", problems)
        if array is None:
            continue
        if array.ndim not in (1, 2):
            problems.add(f"series {name} has shape {array.shape}; expected (channels, time) or (time,)")
            continue
        blocks.append(np.atleast_2d(array).T)
        readable.append(name)
    counts = [b.shape[1] for b in blocks]
    if len(set(counts)) > 1:
        usual = np.bincount(counts).argmax()
        odd = [name for name, count in zip(readable, counts, strict=True) if count != usual]
        problems.add(
            f"series {listed(odd)} do not have {usual} channels as the others; "
            "an array is (channels, time): is it transposed?"
        )
    return blocks


def _without_torch(item: Any) -> Any:
    """A tensor as a NumPy array; anything else as it is."""
    return item.detach().cpu().numpy() if hasattr(item, "detach") else item


def _floats(item: Any, where: str, problems: Problems) -> np.ndarray | None:
    try:
        array = np.asarray(_without_torch(item))
        if array.dtype.kind in "cmM":  # complex numbers and dates: NumPy would convert them and lose what they mean
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        what = "something that is not a number, or rows of unequal length"
        problems.add(f"{where} holds {what}; convert it, NaN for what is missing")
        return None


def _time_blocks(times: Any, blocks, names, problems: Problems) -> list[np.ndarray]:
    if times is None:
        return [np.arange(len(b), dtype=np.float64) for b in blocks]
    times = in_seconds(_without_torch(times))
    if not np.iterable(times):
        problems.add(f"times is {times!r}; give shared stamps or one list per series")
        return []
    times = [in_seconds(_without_torch(stamp)) for stamp in times]
    if all(np.ndim(stamp) == 0 for stamp in times):
        shared = _floats(times, "times", problems)
        stamps = [shared] * len(blocks)
    elif len(times) == len(blocks):
        stamps = [_floats(t, f"times of series {n}", problems) for t, n in zip(times, names, strict=False)]
    else:
        problems.add(
            f"times has {len(times)} entries for {len(blocks)} series; give shared stamps or one list per series"
        )
        return []
    for block, stamp, name in zip(blocks, stamps, names, strict=False):
        if stamp is not None and stamp.shape != (len(block),):
            problems.add(
                f"series {name} has {len(block)} stamps of values and times of shape {stamp.shape}; match them"
            )
    return [s for s in stamps if s is not None]


def in_seconds(times: Any) -> Any:
    """Dates as seconds since 1970, as in tables, and spans of time as seconds; anything else as it is.

    One of them, an array, or a list; dates without a zone are in universal time.
    """
    if isinstance(times, (date, timedelta)):
        return float(in_seconds([times])[0])
    kind = getattr(getattr(times, "dtype", None), "kind", "")
    if kind == "O" or (isinstance(times, (list, tuple)) and len(times)):
        if all(isinstance(each, (date, np.datetime64)) for each in times):
            times, kind = pd.to_datetime(list(times), utc=True).tz_localize(None).to_numpy(), "M"
        elif all(isinstance(each, (timedelta, np.timedelta64)) for each in times):
            times, kind = pd.to_timedelta(list(times)).to_numpy(), "m"
    if kind == "M":
        return (np.asarray(times, dtype="datetime64[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "s")
    return np.asarray(times) / np.timedelta64(1, "s") if kind == "m" else times


def span_in_seconds(span: Any, name: str) -> Any:
    """A length of time: a number, or a span such as a Timedelta in seconds; one, or many."""
    try:
        if not isinstance(span, date) and getattr(getattr(span, "dtype", None), "kind", "") != "M":
            length = np.asarray(in_seconds(span), dtype=np.float64)
            return length if length.ndim else length.item()
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} is {span!r}; give a number, or a span of time such as pd.Timedelta('6h')")


def _drop_padding(values, times, offsets) -> Flat:
    """Stamps of NaN without any value are padding of an array that had to be rectangular."""
    padding = np.isnan(times) & np.isnan(values).all(axis=1)
    if not padding.any():
        return values, times, offsets
    kept = np.bincount(_owner(offsets)[~padding], minlength=len(offsets) - 1)
    return values[~padding], times[~padding], np.concatenate([[0], np.cumsum(kept)])


def _check_order(times, offsets, names, duplicates: str, problems: Problems) -> np.ndarray:
    """Note unsorted and refused duplicate stamps; return where a stamp repeats the one before it."""
    before = np.roll(times, 1)
    inside = np.isfinite(times)
    inside[offsets[:-1][offsets[:-1] < len(times)]] = False
    owner = _owner(offsets)
    for i, at in first_in_each(owner, inside & (times < before)):
        problems.add(
            f"series {names[i]}: time stamps go backwards ({before[at]:.15g} then {times[at]:.15g}); "
            "sort stamps and values together, `order = times.argsort()`"
        )
    repeated = inside & (times == before)
    if duplicates == "error":
        for i, at in first_in_each(owner, repeated):
            problems.add(
                f"series {names[i]}: duplicate time stamp {times[at]:.15g}; "
                'merge them, or pass duplicates="mean", "last" or "first"'
            )
    return repeated


def _merge_repeats(values, times, offsets, repeated, duplicates: str) -> Flat:
    if not repeated.any():
        return values, times, offsets
    first = np.flatnonzero(~repeated)
    kept = np.bincount(_owner(offsets)[first], minlength=len(offsets) - 1)
    return merge(values, first, duplicates), times[first], np.concatenate([[0], np.cumsum(kept)])
