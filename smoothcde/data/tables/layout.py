"""Where the series are in a table: which columns, which form, which channels."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from smoothcde.data.tables.files import TableError
from smoothcde.series import SeriesSet
from smoothcde.series.duplicates import check_policy
from smoothcde.series.frames import column_of
from smoothcde.series.problems import listed


@dataclass(frozen=True)
class TableLayout:
    """How a table is to be read: remembered with a model, so that later tables need no explanation.

    Attributes:
        id: column that names the series.
        time: column of stamps: numbers, dates or ISO 8601 text.
        variable: column that names the variable of a tidy table; None for one column per channel.
        value: column that holds its value.
        channels: columns, or variables, in the order of the model; empty until learned.
        duplicates: what to do with several values at one stamp: "error", "mean", "last" or "first".
        start: where every series' window begins; None for its first stamp.
        end: where it ends: the moment that predictions are made for; None for the last stamp.
    """

    id: str = "id"
    time: str = "time"
    variable: str | None = None
    value: str | None = None
    channels: tuple[str, ...] = ()
    duplicates: str = "error"
    start: float | None = None
    end: float | None = None

    def __post_init__(self):
        check_policy(self.duplicates)
        if (self.variable is None) != (self.value is None):
            raise TableError("a tidy table needs both its variable and its value column; name the other too")
        named = [name for name in (self.id, self.time, self.variable, self.value) if name is not None]
        if len(set(named)) < len(named):
            raise TableError(f"id, time, variable and value are {listed(map(repr, named))}; name different columns")

    @property
    def tidy(self) -> bool:
        """One row per observation, rather than one per stamp."""
        return self.variable is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that hold names rather than numbers."""
        return (self.id,) if self.variable is None else (self.id, self.variable)

    def columns(self, header: Collection[str], without: Collection[str] = ()) -> list[str]:
        """Columns to read; refuses a table that lacks one, but for those it may be `without`."""
        needed = [self.id, self.time, *([self.variable, self.value] if self.tidy else self.channels)]
        needed = [name for name in needed if name not in without]
        if absent := [name for name in needed if name not in header]:
            raise TableError(
                f"no column {listed(map(repr, absent))}; the table has {listed(map(repr, header), most=12)}"
            )
        return [str(name) for name in needed] if self.tidy or self.channels else list(header)

    def series(self, frame: pd.DataFrame, ids: Sequence[Hashable] | None = None, static: Any = None) -> SeriesSet:
        """The series of a table, or those named by `ids`, in that order; names without rows are empty series."""
        series = SeriesSet.from_frame(
            frame,
            id=self.id,
            time=self.time,
            channels=list(self.channels) or None,
            variable=self.variable,
            value=self.value,
            static=static,
            ids=None if ids is None else list(ids),
            duplicates=self.duplicates,  # type: ignore[arg-type]
        )
        return self.windowed(series)

    def windowed(self, series: SeriesSet) -> SeriesSet:
        """Series seen through the declared window, if there is one."""
        if self.start is None and self.end is None:
            return series
        start = np.full(len(series), self.start) if self.start is not None else series.start
        end = np.full(len(series), self.end) if self.end is not None else series.end
        # A series wholly before or after the window shows nothing inside it, rather than a window turned round.
        if self.start is None:
            start = np.minimum(start, end)
        if self.end is None:
            end = np.maximum(start, end)
        return series.with_window(start, end)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"channels": list(self.channels)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> "TableLayout":
        """What `as_dict` gave."""
        return cls(**{**entry, "channels": tuple(entry["channels"])})


def learned_channels(
    frame: pd.DataFrame, layout: TableLayout, other: Collection[str] = ()
) -> tuple[TableLayout, list[str]]:
    """Choose the channels of a table to learn from.

    Wide: every numeric column that is not named otherwise, unless it says nothing: empty, or one and the same value at
    every row. Tidy: every variable. A channel of one value that is not observed everywhere is kept: *when* it was
    measured may matter.

    Args:
        frame: the table.
        layout: which columns are id, time, variable and value; its `channels`, if any, are taken as they are.
        other: columns that are no channels: targets.

    Returns:
        The layout with its channels, and what was left out or is odd, as sentences.
    """
    if layout.tidy:
        return _variables(frame, layout)
    if layout.channels:
        return layout, []
    notes, chosen, text, wrongs = [], [], {}, []
    for name in (c for c in frame.columns if c not in (layout.id, layout.time, *other)):
        column = column_of(frame, name)
        numbers = pd.Series(pd.to_numeric(column, errors="coerce"))
        numbers = pd.Series(numbers.to_numpy(dtype=np.float64, na_value=np.nan), index=column.index)
        wrong = column.notna() & numbers.isna()
        if not column.notna().any():
            notes.append(f"column {name!r} is empty: left out")
        elif not pd.api.types.is_numeric_dtype(column) and (wrong.any() or column.dtype.kind in "mM"):
            if numbers.notna().any() and column.dtype.kind not in "mM":
                example = repr(column.loc[wrong].iloc[0])
                wrongs.append(f"column {name!r} holds {example}, not a number, in {wrong.sum()} of {len(frame)} rows")
            else:
                text[name] = str(column.dropna().iloc[0])
        elif np.isfinite(numbers).all() and numbers.nunique() == 1:
            notes.append(f"column {name!r} is always {numbers.iloc[0]:g}: left out")
        else:
            chosen.append(name)
    if wrongs:
        raise TableError(
            f"{'; '.join(wrongs)}; correct them, empty them where nothing was observed, or choose the channels with "
            "--channels"
        )
    if text:
        one = len(text) == 1
        examples = listed([f"{name!r} ({_shortened(example)!r})" for name, example in text.items()])
        notes.insert(0, f"column{'' if one else 's'} {examples} {'holds' if one else 'hold'} no numbers: left out")
    if not chosen:
        said = f" ({'; '.join(notes)})" if notes else ""
        raise TableError(f"no column is left to learn from besides {layout.id!r} and {layout.time!r}{said}")
    return replace(layout, channels=tuple(chosen)), notes


def _shortened(text: str, most: int = 24) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _variables(frame: pd.DataFrame, layout: TableLayout) -> tuple[TableLayout, list[str]]:
    values = pd.Series(pd.to_numeric(column_of(frame, str(layout.value)), errors="coerce"))
    spread = values.groupby(column_of(frame, str(layout.variable)), observed=True).agg(["min", "max", "count"])
    if spread.empty:
        raise TableError(f"column {layout.variable!r} names no variable; is it the right one?")
    present = sorted(str(name) for name, count in column_of(spread, "count").items() if int(count))
    if not present:
        raise TableError(f"column {layout.value!r} holds no number; is it the right one?")
    if absent := [name for name in layout.channels if name not in present]:
        known = listed(map(repr, present), most=12)
        raise TableError(f"column {layout.variable!r} never names {listed(map(repr, absent))}; it names {known}")
    chosen = layout.channels or tuple(present)
    constant = spread.loc[spread["min"] == spread["max"], "min"]
    notes = [
        f"variable {name!r} is always {value:g}: kept, since when it was observed may matter"
        for name, value in constant.items()
        if name in chosen
    ]
    return replace(layout, channels=chosen), notes


def seconds_of(moment: str) -> float:
    """A moment as tables hold it: a number as it is, an ISO 8601 date as seconds since 1970."""
    try:
        return float(moment)
    except ValueError:
        pass
    date = pd.to_datetime(pd.Series([moment]), utc=True, format="ISO8601", errors="coerce").iloc[0]
    if pd.isna(date):
        raise TableError(f"{moment!r} is neither a number nor an ISO 8601 date; write 48 or 2024-05-17T08:30")
    return float(date.timestamp())
