"""Arrays and lists of arrays, checked and laid one after the other."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

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
    blocks = _value_blocks(X, problems)
    problems.raise_if_any()
    names = list(ids) if ids is not None else list(range(len(blocks)))
    if len(names) != len(blocks):
        problems.add(f"there are {len(names)} ids for {len(blocks)} series; give one id per series")
    elif len(set(names)) != len(names):
        problems.add("ids are not unique; give every series its own")
    channels = blocks[0].shape[1] if blocks else len(channel_names or ())
    if channel_names is not None and len(channel_names) != channels:
        problems.add(f"there are {len(channel_names)} channel names for {channels} channels; give one per channel")
    stamps = _time_blocks(times, blocks, names, problems)
    problems.raise_if_any()

    offsets = np.concatenate([[0], np.cumsum([len(b) for b in blocks])]).astype(np.int64)
    values = np.concatenate(blocks) if blocks else np.zeros((0, channels))
    flat_times = np.concatenate(stamps) if stamps else np.zeros(0)
    values, flat_times, offsets = _drop_padding(values, flat_times, offsets, names, problems)
    labels = list(channel_names) if channel_names is not None else [f"channel {c}" for c in range(channels)]
    check_finite(values, flat_times, offsets, names, labels, problems)
    repeated = _check_order(flat_times, offsets, names, duplicates, problems)
    problems.raise_if_any()
    return _merge_repeats(values, flat_times, offsets, repeated, duplicates)


def check_finite(values, times, offsets, names, labels, problems: Problems) -> None:
    """Note infinite values and non-finite stamps, series by series and channel by channel."""
    bad_stamp = ~np.isfinite(times)
    for i in np.unique(_owner(offsets)[bad_stamp]):
        problems.add(f"series {names[i]}: some time stamps are NaN or infinite; give every observation a finite stamp")
    stamp, channel = np.nonzero(np.isinf(values))
    pairs = np.stack([_owner(offsets)[stamp], channel], axis=1)
    for i, c in np.unique(pairs, axis=0):
        problems.add(f"series {names[i]}, {labels[c]}: infinite values; use NaN for what was not observed")


def _owner(offsets: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _value_blocks(X: Any, problems: Problems) -> list[np.ndarray]:
    """One `[time, channels]` float64 array per series."""
    if hasattr(X, "detach"):
        X = X.detach().cpu().numpy()
    if isinstance(X, np.ndarray) and X.dtype != object:
        array = _floats(X, "X", problems)
        if array is None:
            return []
        if array.ndim not in (2, 3):
            problems.add(
                f"X has {array.ndim} dimensions, shape {array.shape}; expected (series, channels, time) or (series, time)"
            )
            return []
        array = array[:, None, :] if array.ndim == 2 else array
        return list(np.swapaxes(array, 1, 2))
    if not isinstance(X, list | tuple | np.ndarray):
        problems.add(f"X is a {type(X).__name__}; give an array, a list of arrays, or use SeriesSet.from_frame")
        return []
    blocks = []
    for i, item in enumerate(X):
        item = item.detach().cpu().numpy() if hasattr(item, "detach") else item
        array = _floats(item, f"series {i}", problems)
        if array is None:
            continue
        if array.ndim not in (1, 2):
            problems.add(f"series {i} has shape {array.shape}; expected (channels, time) or (time,)")
            continue
        blocks.append(np.atleast_2d(array).T)
    counts = {b.shape[1] for b in blocks}
    if len(counts) > 1:
        usual = np.bincount([b.shape[1] for b in blocks]).argmax()
        odd = [i for i, b in enumerate(blocks) if b.shape[1] != usual]
        problems.add(
            f"series {listed(odd)} do not have {usual} channels as the others; "
            "an array is (channels, time): is it transposed?"
        )
    return blocks


def _floats(item: Any, where: str, problems: Problems) -> np.ndarray | None:
    try:
        return np.asarray(item, dtype=np.float64)
    except (TypeError, ValueError):
        problems.add(f"{where} holds something that is not a number; convert it, NaN for what is missing")
        return None


def _time_blocks(times: Any, blocks, names, problems: Problems) -> list[np.ndarray]:
    if times is None:
        return [np.arange(len(b), dtype=np.float64) for b in blocks]
    if hasattr(times, "detach"):
        times = times.detach().cpu().numpy()
    try:
        array = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        array = None  # ragged: one array per series
    if array is not None and array.ndim == 1 and not _is_ragged(times):
        stamps = [array] * len(blocks)
    elif len(times) == len(blocks):
        stamps = [_floats(t, f"times of series {n}", problems) for t, n in zip(times, names, strict=False)]
    else:
        problems.add(f"times has {len(times)} entries for {len(blocks)} series; give shared stamps or one list per series")
        return []
    for block, stamp, name in zip(blocks, stamps, names, strict=False):
        if stamp is not None and stamp.shape != (len(block),):
            problems.add(f"series {name} has {len(block)} stamps of values and times of shape {stamp.shape}; match them")
    return [s for s in stamps if s is not None]


def _is_ragged(times: Any) -> bool:
    return len(times) > 0 and np.ndim(times[0]) > 0


def _drop_padding(values, times, offsets, names, problems: Problems) -> Flat:
    """Stamps of NaN without any value are padding of an array that had to be rectangular."""
    padding = np.isnan(times) & np.isnan(values).all(axis=1)
    if not padding.any():
        return values, times, offsets
    kept = np.bincount(_owner(offsets)[~padding], minlength=len(offsets) - 1)
    return values[~padding], times[~padding], np.concatenate([[0], np.cumsum(kept)])


def _check_order(times, offsets, names, duplicates: str, problems: Problems) -> np.ndarray:
    """Note unsorted and refused duplicate stamps; return where a stamp repeats the one before it."""
    step = np.diff(times, prepend=-np.inf)
    inside = np.ones(len(times), dtype=bool)
    inside[offsets[:-1][offsets[:-1] < len(times)]] = False
    owner = _owner(offsets)
    for i in np.unique(owner[inside & (step < 0)]):
        at = int(np.flatnonzero((owner == i) & inside & (step < 0))[0])
        problems.add(
            f"series {names[i]}: time stamps go backwards ({times[at - 1]:g} then {times[at]:g}); "
            "sort stamps and values together, `order = times.argsort()`"
        )
    repeated = inside & (step == 0)
    if duplicates == "error":
        for i in np.unique(owner[repeated]):
            at = int(np.flatnonzero((owner == i) & repeated)[0])
            problems.add(
                f"series {names[i]}: duplicate time stamp {times[at]:g}; "
                'merge them, or pass duplicates="mean", "last" or "first"'
            )
    return repeated


def _merge_repeats(values, times, offsets, repeated, duplicates: str) -> Flat:
    if not repeated.any():
        return values, times, offsets
    first = np.flatnonzero(~repeated)
    kept = np.bincount(_owner(offsets)[first], minlength=len(offsets) - 1)
    return merge(values, first, duplicates), times[first], np.concatenate([[0], np.cumsum(kept)])
