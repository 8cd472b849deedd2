"""Tables, wide or tidy, pandas or polars, checked and laid out series after series."""

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from smoothcde.series.arrays import check_stamps, check_values, first_in_each
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
    if hasattr(frame, "collect") or not hasattr(frame, "columns"):  # polars' LazyFrame has columns, but no rows yet
        problems.add(f"expected a pandas or polars table, got a {type(frame).__name__}; read or collect it into one")
        problems.raise_if_any()
    columns = [str(c) for c in frame.columns]
    channels = [channels] if isinstance(channels, str) else channels
    if (variable is None) != (value is None):
        problems.add("a tidy table needs both `variable` and `value`; give the other column too")
    tidy = variable is not None and value is not None
    needed = [id, time] + ([variable, value] if tidy else list(channels or ()))
    if absent := [c for c in needed if c not in columns]:
        problems.add(f"no column {listed(map(repr, absent))}; the table has {listed(map(repr, columns), most=12)}")
    if twice := sorted({c for c in columns if columns.count(c) > 1}):
        problems.add(f"several columns are called {listed(map(repr, twice))}; rename them")
    if channels is not None and len(set(channels)) < max(len(channels), 1):
        problems.add(f"channels is {list(channels)}; name at least one, each once")
    problems.raise_if_any()

    series, names = _series_codes(column_of(frame, id), id, ids, problems)
    stamps = _stamps(column_of(frame, time), time, problems)
    if variable is not None and value is not None:
        table, label, labels = _tidy_values(frame, variable, value, channels, problems)
    else:
        table, label, labels = _wide_values(frame, {id, time}, channels, problems)
    problems.raise_if_any()

    keep = series >= 0
    if label is not None:
        keep &= (label >= 0) & ~np.isnan(table[:, 0])
        label = label[keep]
    series, stamps, table = series[keep], stamps[keep], table[keep]
    row, column = np.nonzero(np.isinf(table))
    check_stamps(stamps, series, names, problems)
    check_values(series[row], column if label is None else label[row], names, labels, problems)
    problems.raise_if_any()
    if label is not None:
        series, stamps, table = _pivot(series, stamps, label, table, names, labels, duplicates, problems)
    else:
        series, stamps, table = _sorted_wide(series, stamps, table, names, duplicates, problems)
    problems.raise_if_any()
    offsets = np.concatenate([[0], np.cumsum(np.bincount(series, minlength=len(names)))]).astype(np.int64)
    return table, stamps, offsets, tuple(names), tuple(labels)


def column_of(frame: Any, name: str) -> pd.Series:
    """A column by its name as text: tables made from arrays have numbers for names."""
    if isinstance(frame, pd.DataFrame):
        return frame.iloc[:, [str(c) for c in frame.columns].index(name)]
    return frame[name].to_pandas()


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
        return np.full(len(column), -1), names
    codes = pd.Index(names).get_indexer(column)
    if (codes < 0).all() and set(map(str, names)) & set(map(str, column.unique())):
        problems.add(f"none of the ids is in column {id!r}, but their text is; give `ids` as {column.dtype}, as there")
    return codes, names


def holds_dates(column: pd.Series) -> bool:
    """Whether a column of stamps is of dates, and not of numbers or spans of time."""
    column = column.infer_objects()
    return not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_timedelta64_dtype(column))


def no_numbers(column: pd.Series) -> pd.Series:
    """Where a column holds something, and it is no number."""
    return column.notna() & pd.Series(pd.to_numeric(column, errors="coerce"), index=column.index).isna()


def _stamps(column: pd.Series, time: str, problems: Problems) -> np.ndarray:
    """Stamps as float64; dates and ISO 8601 text become seconds since 1970."""
    column = column.infer_objects()
    if pd.api.types.is_numeric_dtype(column):
        stamps = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if (first := _first_written_date(stamps)) is not None:
            warnings.warn(
                f"column {time!r} holds numbers such as {first:%Y%m%d}, taken as they are; if they are dates, write "
                f"them as {first:%Y-%m-%d}",
                stacklevel=4,
            )
        return stamps
    if pd.api.types.is_timedelta64_dtype(column):
        return column.dt.total_seconds().to_numpy()
    # Only ISO 8601: otherwise "00:07" would be seven minutes past midnight today, and 01/02 January or February.
    dates = pd.to_datetime(column, utc=True, format="ISO8601", errors="coerce")
    wrong = column.notna() & dates.isna()
    if wrong.any():
        odd = wrong & no_numbers(column)  # among numbers, what is none
        example = repr(column.loc[odd if odd.any() else wrong].iloc[0])
        problems.add(f"column {time!r} holds {example}; write stamps as numbers, dates, or ISO 8601 text")
        return np.full(len(column), np.nan)
    epoch = pd.Timestamp("1970-01-01", tz="UTC")
    return ((dates - epoch) / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64)


def _first_written_date(stamps: np.ndarray) -> pd.Timestamp | None:
    """The first of numbers that are all dates as in 20240517; None if they are not."""
    numbers = stamps[np.isfinite(stamps)]
    if not len(numbers) or numbers.min() < 1900_01_01 or numbers.max() > 2100_12_31 or (numbers % 1).any():
        return None
    whole = np.unique(numbers).astype(np.int64)
    dates = pd.to_datetime(pd.Series(whole.astype(str)), format="%Y%m%d", errors="coerce")
    return dates.iloc[0] if len(whole) > 2 and bool(dates.notna().all()) else None


def numbers_of(column: pd.Series, name: str, problems: Problems) -> np.ndarray:
    """A column as float64, NaN where it is empty; note what is not a number."""
    numbers = pd.Series(pd.to_numeric(column, errors="coerce"))
    wrong = column.notna()
    if column.dtype.kind not in "mM":  # pandas would turn dates into counts of their unit
        wrong &= numbers.isna()
    if wrong.any():
        example = repr(column.loc[wrong].iloc[0])
        problems.add(
            f"column {name!r} holds {example}, not a number, in {wrong.sum()} rows; convert it or leave it out"
        )
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _holds_numbers(column: pd.Series) -> bool:
    """Whether a column is of numbers or truth values, gaps or not; objects are asked one by one."""
    if column.dtype != object:
        return pd.api.types.is_numeric_dtype(column)
    return pd.api.types.infer_dtype(column) in ("boolean", "integer", "floating", "mixed-integer-float", "decimal")


def _wide_values(frame, other: set[str], channels, problems: Problems):
    if channels is None:
        candidates = [str(c) for c in frame.columns if str(c) not in other]
        channels = [c for c in candidates if _holds_numbers(column_of(frame, c))]
        if not channels:
            problems.add(f"no numeric column besides {listed(sorted(other))}; name the channels with `channels`")
            return np.zeros((len(frame), 0)), None, []
    labels = [str(c) for c in channels]
    return np.stack([numbers_of(column_of(frame, c), c, problems) for c in labels], axis=1), None, labels


def _tidy_values(frame, variable: str, value: str, channels, problems: Problems):
    codes, variables = pd.factorize(column_of(frame, variable))
    present = [str(v) for v in variables]
    labels = [str(c) for c in channels] if channels is not None else sorted(set(present))
    if unknown := [c for c in labels if c not in set(present)]:
        # One patient's table need not hold every lab a model was trained on; a mistyped name should still show.
        warnings.warn(
            f"column {variable!r} never names {listed(unknown)}: never observed, unless misspelt", stacklevel=4
        )
    numbers = numbers_of(column_of(frame, value), value, problems)
    if nameless := int(((codes < 0) & ~np.isnan(numbers)).sum()):
        problems.add(f"{nameless} rows have a value but no {variable!r}; name their variable or drop them")
    label = np.append(pd.Index(labels, dtype=object).get_indexer(present), -1)[codes]  # code -1: the appended -1
    return numbers[:, None], label, labels


def _sorted_wide(series, stamps, table, names, duplicates: str, problems: Problems):
    order = np.lexsort((stamps, series))  # stable: equal stamps keep the table's order
    series, stamps, table = series[order], stamps[order], table[order]
    repeated = np.zeros(len(series), dtype=bool)
    repeated[1:] = (np.diff(series) == 0) & (np.diff(stamps) == 0)
    if not repeated.any():
        return series, stamps, table
    if duplicates == "error":
        for i, at in first_in_each(series, repeated):
            problems.add(f"series {names[i]}: duplicate time stamp {stamps[at]:.15g}; {_REMEDY}")
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
            for i, at in first_in_each(series, repeated):
                where = f"series {names[i]}, {labels[label[at]]}"
                problems.add(f"{where}: several values at time {stamps[at]:.15g}; {_REMEDY}")
            return series, stamps, table
        first = np.flatnonzero(~repeated)
        table = merge(table, first, duplicates)
        series, stamps, label, new_stamp = series[first], stamps[first], label[first], new_stamp[first]
    row = np.cumsum(new_stamp) - 1
    pivoted = np.full((int(new_stamp.sum()), len(labels)), np.nan)
    pivoted[row, label] = table[:, 0]
    return series[new_stamp], stamps[new_stamp], pivoted
