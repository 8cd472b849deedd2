"""The latest observations of many series, each in the order of its stamps: a rolling window of bounded size."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from smoothcde.series.duplicates import merge
from smoothcde.series.problems import Problems

SMALLEST = 16
"""Stamps there is room for at first."""


class History:
    """What happened in `[newest - window, newest]` of every series.

    A row per series, its stamps increasing in slots `first[row]:last[row]`. New stamps go to the end; a row that has
    reached the end of its slots moves to their beginning, so slots are used again and again. Twice the stamps of the
    fullest window are held at most. Whatever else is known of a stamp lies in `columns` and moves along with it.

    Args:
        series: how many.
        channels: of the values.
        window: how far back a history reaches.
        duplicates: the rule for equal stamps, see `series/duplicates.py`.
        most: stamps that a series may have in its window.
        columns: further columns by name, `(width, dtype)` each; NaN for new and changed stamps.
    """

    def __init__(
        self,
        series: int,
        channels: int,
        window: float,
        duplicates: str,
        most: int,
        columns: Mapping[str, tuple[int, Any]] | None = None,
    ):
        self.window, self.duplicates, self.most = window, duplicates, most
        self.first, self.last = np.zeros(series, dtype=np.int64), np.zeros(series, dtype=np.int64)
        self.newest = np.full(series, -np.inf)
        self.times = np.zeros((series, SMALLEST))
        self.columns: dict[str, np.ndarray] = {"values": np.full((series, SMALLEST, channels), np.nan)}
        if duplicates == "mean":  # how many values a mean is of
            self.columns["repeats"] = np.zeros((series, SMALLEST, channels))
        for name, (width, dtype) in (columns or {}).items():
            self.columns[name] = np.full((series, SMALLEST, width), np.nan, dtype=dtype)

    @property
    def counts(self) -> np.ndarray:
        """Stamps held of each series."""
        return self.last - self.first

    def add(self, rows: np.ndarray, times: np.ndarray, values: np.ndarray, names: Any) -> np.ndarray:
        """Take in stamps, in any order and several per series if there are; nothing changes if any is refused.

        Args:
            rows: the series of each stamp.
            times: finite.
            values: `[stamps, channels]`, NaN where not observed.
            names: of all series, for messages.

        Returns:
            How many stamps of each series were too old for its window, and were dropped.
        """
        newest = self.newest.copy()
        np.maximum.at(newest, rows, times)
        kept = times >= newest[rows] - self.window
        old = np.bincount(rows[~kept], minlength=len(newest)) if not kept.all() else np.zeros(len(newest), dtype=int)
        rows, times, values = rows[kept], times[kept], values[kept]
        fresh = {"values": values, "repeats": np.isfinite(values).astype(np.float64)}
        if len(rows) > 1:
            rows, times, fresh = self._merged(rows, times, fresh, names)
        late = times <= self.newest[rows]
        known = np.zeros(len(rows), dtype=bool)
        slots = np.zeros(len(rows), dtype=np.int64)
        if late.any():
            at = np.flatnonzero(late)
            same = (self.times[rows[at]] == times[at, None]) & self._held(rows[at])
            known[at], slots[at] = same.any(axis=1), same.argmax(axis=1)
            if self.duplicates == "error" and known.any():
                _refuse_duplicates(rows[known], times[known], names)
        added = np.bincount(rows[~known], minlength=len(newest))
        self._check_room(added, newest, names)

        self.newest = newest
        touched = np.unique(rows)
        self._forget(touched)
        self._meet(rows[known], slots[known], {name: column[known] for name, column in fresh.items()})
        self._make_room(touched, added[touched])
        new, end = ~known & ~late, ~known & late
        self._append(rows[new], times[new], {name: column[new] for name, column in fresh.items()})
        if end.any():
            self._insert(rows[end], times[end], {name: column[end] for name, column in fresh.items()})
        return old

    def spans(self, rows: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first slot at or after `start` of each of some series, and how many stamps follow from there."""
        first, count = self.first[rows], self.counts[rows]
        if count.max(initial=0) == 0:
            return first, count
        oldest = self.times[rows, np.minimum(first, self.times.shape[1] - 1)]
        if (oldest < start)[count > 0].any():
            skipped = (self._held(rows) & (self.times[rows] < start[:, None])).sum(axis=1)
            first, count = first + skipped, count - skipped
        return first, count

    def _merged(self, rows, times, fresh, names):
        """Stamps sorted by series and time, equal ones merged."""
        order = np.lexsort((times, rows))
        rows, times, fresh = rows[order], times[order], {name: column[order] for name, column in fresh.items()}
        repeated = np.zeros(len(rows), dtype=bool)
        repeated[1:] = (rows[1:] == rows[:-1]) & (times[1:] == times[:-1])
        if not repeated.any():
            return rows, times, fresh
        if self.duplicates == "error":
            _refuse_duplicates(rows[repeated], times[repeated], names)
        begins = np.flatnonzero(~repeated)
        values = merge(fresh["values"], begins, self.duplicates)
        repeats = np.add.reduceat(fresh["repeats"], begins, axis=0)
        return rows[begins], times[begins], {"values": values, "repeats": repeats}

    def _held(self, rows: np.ndarray) -> np.ndarray:
        slot = np.arange(self.times.shape[1])
        return (slot >= self.first[rows, None]) & (slot < self.last[rows, None])

    def _check_room(self, added: np.ndarray, newest: np.ndarray, names: Any) -> None:
        full = np.flatnonzero(self.counts + added > self.most)
        if not len(full):
            return
        staying = (self._held(full) & (self.times[full] >= newest[full, None] - self.window)).sum(axis=1)
        for row, count in zip(full, staying + added[full], strict=True):
            if count > self.most:
                raise ValueError(
                    f"series {names[row]} has {count:,} stamps in its window of {self.window:g}, more than "
                    f"max_observations={self.most:,}; give a shorter window, fewer stamps, or a larger max_observations"
                )

    def _forget(self, rows: np.ndarray) -> None:
        """Let go of stamps that are older than the window."""
        first, _ = self.spans(rows, self.newest[rows] - self.window)
        self.first[rows] = first

    def _meet(self, rows: np.ndarray, slots: np.ndarray, fresh: dict[str, np.ndarray]) -> None:
        """Merge values into stamps that are there."""
        if not len(rows):
            return
        values = self.columns["values"]
        was, now = values[rows, slots], fresh["values"]
        if self.duplicates == "mean":
            before, more = self.columns["repeats"][rows, slots], fresh["repeats"]
            total = np.where(before > 0, was, 0.0) * before + np.where(more > 0, now, 0.0) * more
            count = before + more
            values[rows, slots] = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
            self.columns["repeats"][rows, slots] = count
        else:
            preferred, other = (now, was) if self.duplicates == "last" else (was, now)
            values[rows, slots] = np.where(np.isfinite(preferred), preferred, other)
        for name, column in self.columns.items():
            if name not in fresh:
                column[rows, slots] = np.nan

    def _make_room(self, rows: np.ndarray, added: np.ndarray) -> None:
        full = rows[self.last[rows] + added > self.times.shape[1]]
        if not len(full):
            return
        needed = int((self.counts[rows] + added).max())
        # Half of the slots stay free after a move, so that a row moves once in as many stamps as its window holds.
        if 2 * needed > self.times.shape[1]:
            self._resize(2 * needed)
            full = full[self.last[full] + added[np.searchsorted(rows, full)] > self.times.shape[1]]
        if len(full):
            length = int(self.counts[full].max())
            source = np.minimum(self.first[full, None] + np.arange(length), self.times.shape[1] - 1)
            for column in (self.times, *self.columns.values()):
                column[full, :length] = column[full[:, None], source]
            self.first[full], self.last[full] = 0, self.counts[full]

    def _resize(self, slots: int) -> None:
        def wider(column: np.ndarray) -> np.ndarray:
            larger = np.full((column.shape[0], slots, *column.shape[2:]), np.nan, dtype=column.dtype)
            larger[:, : column.shape[1]] = column
            return larger

        self.times = wider(self.times)
        self.columns = {name: wider(column) for name, column in self.columns.items()}

    def _append(self, rows: np.ndarray, times: np.ndarray, fresh: dict[str, np.ndarray]) -> None:
        """Stamps later than all others of their series, sorted."""
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        rank = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows)))
        slots = self.last[rows] + rank
        self.times[rows, slots] = times
        for name, column in self.columns.items():
            column[rows, slots] = fresh.get(name, np.nan)
        self.last += np.bincount(rows, minlength=len(self.last))

    def _insert(self, rows: np.ndarray, times: np.ndarray, fresh: dict[str, np.ndarray]) -> None:
        """Late stamps, in their places: behind the others first, then all sorted."""
        self._append(rows, times, fresh)
        rows = np.unique(rows)
        length = int(self.counts[rows].max())
        slots = np.minimum(self.first[rows, None] + np.arange(length), self.times.shape[1] - 1)
        held = np.arange(length) < self.counts[rows, None]
        order = np.argsort(np.where(held, self.times[rows[:, None], slots], np.inf), axis=1, kind="stable")
        source = np.take_along_axis(slots, order, axis=1)
        place = np.nonzero(held)
        for column in (self.times, *self.columns.values()):
            column[rows[place[0]], slots[place]] = column[rows[place[0]], source[place]]


def _refuse_duplicates(rows: np.ndarray, times: np.ndarray, names: Any) -> None:
    problems = Problems()
    for row, time in zip(rows, times, strict=True):
        problems.add(
            f"series {names[row]}: duplicate time stamp {time:.15g}; "
            'merge them, or make the StreamingPredictor with duplicates="mean", "last" or "first"'
        )
    problems.raise_if_any()
