"""Tables, wide or tidy, pandas or polars, checked and laid out series after series."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from smoothcde.series.arrays import check_finite
from smoothcde.series.duplicates import check_policy, merge
from smoothcde.series.problems import Problems, listed

FlatFrame = tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Hashable, ...], tuple[str, ...]]
"""Values, times, offsets, ids, channel names."""


def flatten_frame(
    frame: Any,
    id: str,
    time: str,
    channels: Sequence[str] | None,
    variable: str | None,
    value: str | None,
    *,
    ids: Sequence[Hashable] | None,
    duplicates: str,
) -> FlatFrame:
    """Read what `SeriesSet.from_frame` documents; raise `SeriesError` with all that is wrong."""
    check_policy(duplicates)
    problems = Problems()
    if not hasattr(frame, "columns"):
        problems.add(f"expected a pandas or polars table, got a {type(frame).__name__}")
        problems.raise_if_any()
    columns = [str(c) for c in frame.columns]
    if (variable is None) != (value is None):
        problems.add("a tidy table needs both `variable` and `value`; give the other column too")
    tidy = variable is not None and value is not None
    needed = [id, time] + ([variable, value] if tidy else list(channels or ()))
    if absent := [c for c in needed if c not in columns]:
        problems.add(f"no column {listed(map(repr, absent))}; the table has {listed(map(repr, columns), most=12)}")
    problems.raise_if_any()

    series, names = _series_codes(_column(frame, id), id, ids, problems)
    stamps = _stamps(_column(frame, time), time, problems)
    if tidy:
        table, label, labels = _tidy_values(frame, variable, value, channels, problems)
    else:
        table, label, labels = _wide_values(frame, {id, time}, channels, problems)
    problems.raise_if_any()

    keep = series >= 0
    if label is not None:
        keep &= (label >= 0) & np.isfinite(table[:, 0])
        label = label[keep]
    series, stamps, table = series[keep], stamps[keep], table[keep]
    problems_at = np.concatenate([[0], np.cumsum(np.bincount(series, minlength=len(names)))])
    order = np.lexsort((stamps, series))
    sorted_labels = labels if label is None else [str(value)]
    check_finite(table[order], stamps[order], problems_at, names, sorted_labels, problems)
    problems.raise_if_any()
    if label is not None:
        series, stamps, table = _pivot(series, stamps, label, table, names, labels, duplicates, problems)
    else:
        series, stamps, table = _sorted_wide(series, stamps, table, names, duplicates, problems)
    problems.raise_if_any()
    offsets = np.concatenate([[0], np.cumsum(np.bincount(series, minlength=len(names)))]).astype(np.int64)
    return table, stamps, offsets, tuple(names), tuple(labels)


def _column(frame: Any, name: str) -> pd.Series:
    column = frame[name]
    return column if isinstance(column, pd.Series) else column.to_pandas()


def _series_codes(column: pd.Series, id: str, ids, problems: Problems) -> tuple[np.ndarray, list[Hashable]]:
    """Which series each row belongs to (-1: none asked for), and the names in order."""
    if (absent := int(column.isna().sum())) > 0:
        problems.add(f"{absent} rows have no {id!r}; drop them or fill in which series they belong to")
    if ids is None:
        codes, names = pd.factorize(column)
        return codes, list(names)
    names = list(ids)
    if len(set(names)) != len(names):
        problems.add("ids are not unique; name every series once")
    return pd.Index(names).get_indexer(column) if len(set(names)) == len(names) else np.full(len(column), -1), names


def _stamps(column: pd.Series, time: str, problems: Problems) -> np.ndarray:
    """Stamps as float64; dates and ISO 8601 text become seconds since 1970."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_timedelta64_dtype(column):
        return column.dt.total_seconds().to_numpy()
    try:
        dates = pd.to_datetime(column, utc=True, format=None if column.dtype != object else "ISO8601")
    except (ValueError, TypeError) as error:
        problems.add(f"column {time!r} is neither numbers nor dates ({error}); write stamps as numbers or ISO 8601")
        return np.zeros(len(column))
    epoch = pd.Timestamp("1970-01-01", tz="UTC")
    return ((dates - epoch) / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64)


def _numbers(column: pd.Series, name: str, problems: Problems) -> np.ndarray:
    try:
        return pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError):
        text = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
        problems.add(f"column {name!r} holds {text.iloc[0]!r}, not a number; convert it or leave it out of the channels")
        return np.full(len(column), np.nan)


def _wide_values(frame, other: set[str], channels, problems: Problems):
    if channels is None:
        candidates = [str(c) for c in frame.columns if str(c) not in other]
        channels = [c for c in candidates if pd.api.types.is_numeric_dtype(_column(frame, c))]
        if not channels:
            problems.add(f"no numeric column besides {listed(sorted(other))}; name the channels with `channels`")
            return np.zeros((len(frame), 0)), None, []
    labels = [str(c) for c in channels]
    return np.stack([_numbers(_column(frame, c), c, problems) for c in labels], axis=1), None, labels


def _tidy_values(frame, variable: str, value: str, channels, problems: Problems):
    column = _column(frame, variable)
    labels = [str(c) for c in channels] if channels is not None else sorted(column.dropna().astype(str).unique())
    unknown = [c for c in labels if c not in set(column.dropna().astype(str))] if channels is not None else []
    if unknown:
        problems.add(f"column {variable!r} never names {listed(unknown)}; correct `channels`")
    label = pd.Index(labels).get_indexer(column.astype(str))
    return _numbers(_column(frame, value), value, problems)[:, None], label, labels


def _sorted_wide(series, stamps, table, names, duplicates: str, problems: Problems):
    order = np.lexsort((stamps, series))  # stable: equal stamps keep the table's order
    series, stamps, table = series[order], stamps[order], table[order]
    repeated = np.zeros(len(series), dtype=bool)
    repeated[1:] = (np.diff(series) == 0) & (np.diff(stamps) == 0)
    if not repeated.any():
        return series, stamps, table
    if duplicates == "error":
        for i in np.unique(series[repeated]):
            at = np.flatnonzero(repeated & (series == i))[0]
            problems.add(f"series {names[i]}: duplicate time stamp {stamps[at]:g}; {_REMEDY}")
        return series, stamps, table
    first = np.flatnonzero(~repeated)
    return series[first], stamps[first], merge(table, first, duplicates)


_REMEDY = 'merge the rows, or pass duplicates="mean", "last" or "first"'


def _pivot(series, stamps, label, table, names, labels, duplicates: str, problems: Problems):
    """One row per series and stamp, one column per variable."""
    order = np.lexsort((label, stamps, series))
    series, stamps, label, table = series[order], stamps[order], label[order], table[order]
    new_stamp = np.ones(len(series), dtype=bool)
    new_stamp[1:] = (np.diff(series) != 0) | (np.diff(stamps) != 0)
    repeated = np.zeros(len(series), dtype=bool)
    repeated[1:] = ~new_stamp[1:] & (np.diff(label) == 0)
    if repeated.any():
        if duplicates == "error":
            for i in np.unique(series[repeated]):
                at = np.flatnonzero(repeated & (series == i))[0]
                problems.add(f"series {names[i]}, {labels[label[at]]}: several values at time {stamps[at]:g}; {_REMEDY}")
            return series, stamps, table
        first = np.flatnonzero(~repeated)
        table = merge(table, first, duplicates)
        series, stamps, label, new_stamp = series[first], stamps[first], label[first], new_stamp[first]
    row = np.cumsum(new_stamp) - 1
    pivoted = np.full((int(new_stamp.sum()), len(labels)), np.nan)
    pivoted[row, label] = table[:, 0]
    return series[new_stamp], stamps[new_stamp], pivoted
