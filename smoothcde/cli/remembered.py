"""What a model directory remembers of the tables it was trained on, so that later ones need no explanation."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from smoothcde.cli.telling import Teller
from smoothcde.data.tables import (
    StaticEncoder,
    TableError,
    TableLayout,
    labels_like,
    read_header,
    read_table,
    seconds_of,
    target_columns,
    targets_by_series,
)
from smoothcde.estimators import Predictor
from smoothcde.explain.times import look_like_dates
from smoothcde.series import SeriesSet
from smoothcde.series.frames import column_of, holds_dates, no_numbers
from smoothcde.series.problems import counted, listed

KEY = "table"
"""Where it stands in the record of a predictor."""
FAR_LONGER = 20.0
"""Times the longest window of training, beyond which a window may well be in another unit of time."""


@dataclass(frozen=True)
class Remembered:
    """How tables become series and targets.

    Attributes:
        layout: columns, channels, duplicates, window.
        targets: columns that are predicted.
        static: what makes static columns into features; None without.
        dates: whether times were dates, or seconds since 1970; None if that was not noted.
        longest: window of a series; None if that was not noted.
        variables: all that a tidy training table named, also those that are not used; None if that was not noted.
    """

    layout: TableLayout
    targets: tuple[str, ...]
    static: StaticEncoder | None = None
    dates: bool | None = None
    longest: float | None = None
    variables: tuple[str, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        static = self.static and self.static.as_dict()
        seen = {"dates": self.dates, "longest": self.longest, "variables": self.variables and list(self.variables)}
        return {"layout": self.layout.as_dict(), "targets": list(self.targets), "static": static, **seen}

    @classmethod
    def of(cls, predictor: Predictor) -> "Remembered":
        """That of a model which `smoothcde fit` saved."""
        entry = predictor.record.get(KEY)
        try:
            static = entry["static"] and StaticEncoder.from_dict(entry["static"])  # type: ignore[index]
            layout, targets = TableLayout.from_dict(entry["layout"]), tuple(entry["targets"])  # type: ignore[index]
            dates, longest, known = (entry.get(name) for name in ("dates", "longest", "variables"))  # type: ignore[union-attr]
            return cls(layout, targets, static, dates, longest, known and tuple(known))
        except (KeyError, TypeError) as error:
            raise TableError(
                "this model was not trained by `smoothcde fit`, so it does not know how to read a table; "
                "use it from Python, or train it again with `smoothcde fit`"
            ) from error

    def with_options(
        self, start: str | None = None, end: str | None = None, duplicates: str | None = None
    ) -> "Remembered":
        """The same, looking at another window (numbers or dates) or by another rule; None for what is remembered."""
        chosen: dict[str, Any] = {
            name: seconds_of(text) for name, text in (("start", start), ("end", end)) if text is not None
        }
        if duplicates is not None:
            chosen["duplicates"] = duplicates
        return replace(self, layout=replace(self.layout, **chosen))

    def with_times_of(self, frame: pd.DataFrame, series: SeriesSet) -> "Remembered":
        """The same, knowing what kind of times and which variables a training table has."""
        dates = holds_dates(column_of(frame, self.layout.time)) or look_like_dates(series.start, series.end)
        known = None
        if self.layout.tidy:
            known = tuple(str(name) for name in column_of(frame, str(self.layout.variable)).dropna().unique())
        return replace(self, dates=dates, longest=series.longest_span, variables=known)

    def attached(self, predictor: Predictor) -> Predictor:
        """A predictor that remembers this."""
        return replace(predictor, record={**predictor.record, KEY: self.as_dict()})

    def table(self, file: Path, *, with_targets: bool = False) -> pd.DataFrame:
        """The rows of a table: ids, variables and targets as text, all else as numbers."""
        header = read_header(file)
        columns = self.layout.columns(header)
        if with_targets:
            columns = list(
                dict.fromkeys([*columns, *target_columns(header, self.layout.id, self.targets, f"'{file}'")])
            )
        return read_table(file, text=self.layout.names, targets=self.targets, columns=columns)

    def series(
        self, frame: pd.DataFrame, static_file: Path | None, teller: Teller, ids: Sequence[Hashable] | None = None
    ) -> SeriesSet:
        """The series of a table, or those of `ids` in that order, with static features if the model has them."""
        names = list(ids) if ids is not None else list(column_of(frame, self.layout.id).dropna().unique())
        static = None
        if self.static is not None:
            if static_file is None:
                needed = listed(self.static.needed, most=12)
                raise TableError(f"this model was trained with the static columns {needed}; give --static FILE")
            static, notes = self.static.encode(read_static(static_file, self.layout.id), self.layout.id, names)
            teller.note(*notes)
        check_times(frame, self.layout.time, self.dates)
        self._note_strangers(frame, teller)
        series = self.layout.series(frame, names, static)
        self._check_window(series, teller)
        self._check_span(series, teller)
        return series

    def _note_strangers(self, frame: pd.DataFrame, teller: Teller) -> None:
        """Say which rows are about variables that the training table did not have."""
        if self.variables is None:
            return
        variables = column_of(frame, str(self.layout.variable))
        strange = variables.loc[variables.notna() & ~variables.isin(self.variables)]
        if len(strange):
            some = listed([repr(str(name)) for name in strange.unique()], most=3)
            teller.note(f"{counted(len(strange), 'row')} of variables that training did not have are left out: {some}")

    def _check_span(self, series: SeriesSet, teller: Teller) -> None:
        """Say which series are so much longer than those of training that times may be in another unit."""
        spans = series.end - series.start
        if self.longest and len(spans) and spans.max() > FAR_LONGER * self.longest:
            where = int(np.argmax(spans))
            teller.note(
                f"series {series.ids[where]} lasts {spans[where]:g}, and the longest in training lasted "
                f"{self.longest:g}; are times in the same unit?"
            )

    def _check_window(self, series: SeriesSet, teller: Teller) -> None:
        """Say which series a declared window hides; refuse one that hides them all."""
        hidden = (series.cropped().lengths == 0) & (series.lengths > 0)
        if not hidden.any():
            return
        if hidden.all():
            edges = [_moment(bound) for bound in (series.start.min(), series.end.max())]
            times = [_moment(bound) for bound in (series.times.min(), series.times.max())]
            raise TableError(
                f"no time of the table lies in the window from {edges[0]} to {edges[1]}; its times go from {times[0]} "
                f"to {times[1]}: give --start and --end as the table has them, dates as in 2024-05-17T08:30"
            )
        some = listed([series.ids[i] for i in np.flatnonzero(hidden)], most=3)
        teller.note(f"{hidden.sum()} of {len(series)} series have no time inside the window: {some}")


def check_times(frame: pd.DataFrame, time: str, dates: bool | None) -> None:
    """Refuse times of another kind than a model was trained on; `dates` tells which, None if that was not noted."""
    column = column_of(frame, time)
    if dates is None:
        return
    if holds_dates(column):
        # Text in a few cells of a column of numbers is no date, and told in better words when it is read.
        stray = column.dtype.kind != "M" and no_numbers(column).sum() <= len(column) / 2
        if not dates and not stray:
            raise TableError(
                f"column {time!r} holds dates, and the model was trained on numbers; write times in the unit and from "
                "the origin that they had there"
            )
        return
    spans = pd.api.types.is_timedelta64_dtype(column)
    numbers = column.dropna().dt.total_seconds() if spans else pd.Series(pd.to_numeric(column, errors="coerce"))
    numbers = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = numbers[np.isfinite(numbers)]
    if dates and len(numbers) and not look_like_dates(numbers.min(keepdims=True), numbers.max(keepdims=True)):
        found = "spans of time" if spans else f"numbers such as {numbers[0]:g}"
        raise TableError(f"column {time!r} holds {found}, and the model was trained on dates; write dates there, too")


def _moment(seconds: float) -> str:
    """A time as tables write it, as a date too where it looks like seconds since 1970."""
    number, only = f"{seconds:.15g}", np.array([seconds])
    return f"{pd.Timestamp(seconds, unit='s').isoformat()} ({number})" if look_like_dates(only, only) else number


def read_static(file: Path, id: str) -> pd.DataFrame:
    """A table of static features, its ids as text."""
    if id not in (header := read_header(file)):
        raise TableError(f"'{file}' has no column {id!r}; its columns are {listed(map(repr, header), most=12)}")
    return read_table(file, text=[id])


def read_ids(file: Path, id: str) -> list[Hashable]:
    """The names of the series in a file, each once, in its order."""
    if id not in (header := read_header(file)):
        raise TableError(f"'{file}' has no column {id!r}; its columns are {listed(map(repr, header), most=12)}")
    return list(column_of(read_table(file, text=[id], columns=[id]), id).dropna().unique())


def read_labels(file: Path, id: str, target: Sequence[str]) -> pd.DataFrame:
    """The targets in a file of labels, by series."""
    where = f"'{file}'"
    columns = target_columns(read_header(file), id, target, where)
    frame = read_table(file, text=[id], targets=columns, columns=[id, *columns])
    return targets_by_series(frame, id, columns, where)


def matched(
    frame: pd.DataFrame, targets: pd.DataFrame, id: str, teller: Teller, *, keep_empty: bool
) -> tuple[list[Hashable], pd.DataFrame]:
    """The series that have targets, and these.

    Args:
        frame: the table.
        targets: by series.
        id: column that names the series.
        teller: told what is left out.
        keep_empty: whether series with a label but without a row count, as series without observations: they do when
            predictions are judged, since something must be said about them too; nothing can be learned from them.
    """
    present = list(column_of(frame, id).dropna().unique())
    known = set(targets.dropna().index)
    labelled = [name for name in present if name in known]
    if not known:
        empty = listed(map(repr, targets.columns))
        raise TableError(f"target {empty} is empty for every series; fill it in, or name another column")
    if not labelled:
        some = f"series {listed(present, most=3)} in the table; {listed(targets.index, most=3)} in the labels"
        raise TableError(f"no series of the table has a target ({some}); do the ids mean the same?")
    if bare := [name for name in present if name not in known]:
        lacking = "have no target" if targets.shape[1] == 1 else f"lack one of the {targets.shape[1]} targets or more"
        teller.note(f"{len(bare)} of {len(present)} series {lacking} and are left out: {listed(bare, most=3)}")
    found = set(present)
    if empty := [name for name in targets.index if name in known and name not in found]:
        said = f"{len(empty)} of {len(known)} series with a target have no row in the table: {listed(empty, most=3)}"
        teller.note(f"{said}; {'judged as series without observations' if keep_empty else 'left out of training'}")
        if keep_empty:
            labelled += empty
    return labelled, targets.loc[labelled]


def answers_of(targets: pd.DataFrame, task: str) -> np.ndarray | pd.DataFrame:
    """Targets as estimators take them: `[n]` labels, or a table of numbers."""
    if task == "classification":
        column = targets.iloc[:, 0]
        return np.array(column.tolist()) if pd.api.types.is_numeric_dtype(column) else column.to_numpy(dtype=str)
    numbers = {}
    for name in targets.columns:
        column = column_of(targets, name)
        numbers[name] = pd.Series(pd.to_numeric(column, errors="coerce")).astype(np.float64)
        if (wrong := numbers[name].isna()).any():
            refuse_odd_cells(targets, str(name))
            example = repr(str(column.loc[wrong].iloc[0]))
            raise TableError(f"target {name!r} holds text such as {example}, no numbers; use --task classification")
    return pd.DataFrame(numbers)


def refuse_odd_cells(targets: pd.DataFrame, name: str) -> None:
    """Name the cell that is no number in a column of numbers, if most of it are."""
    column = column_of(targets, name)
    odd = column.loc[no_numbers(column)]
    if 0 < len(odd) < len(column) / 2:
        cell, series = repr(str(odd.iloc[0])), odd.index.tolist()[0]
        others = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
        raise TableError(
            f"target {name!r} holds numbers, but for {cell} of series {series}{others}; correct such cells, or empty "
            "them to leave their series out"
        )


def labels_of(targets: pd.DataFrame, known: Sequence[Any]) -> list[Any]:
    """Classes as a model knows them; refuses those that it does not."""
    found = labels_like(np.asarray(answers_of(targets, "classification")).tolist(), known)
    if unknown := sorted({str(label) for label in found if label not in known}):
        raise TableError(
            f"target {targets.columns[0]!r} holds {listed(unknown)}, which the model does not know; "
            f"it was trained on {listed(known, most=12)}"
        )
    return found
