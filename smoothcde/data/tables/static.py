"""Static features of series: numbers with gaps and categories, made into numbers the same way every time."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from smoothcde.data.tables.files import TableError, plain_text
from smoothcde.series.frames import column_of, no_numbers
from smoothcde.series.problems import listed

MOST_CATEGORIES = 20
"""Text of more kinds than this is a name or a note, not a category."""


@dataclass(frozen=True)
class _Column:
    """A number with what fills its gaps, or a text with its categories."""

    name: str
    fill: float = 0.0
    gaps: bool = False
    categories: tuple[str, ...] = ()

    @property
    def features(self) -> list[str]:
        if self.categories:
            return [f"{self.name}={category}" for category in self.categories]
        return [self.name, f"{self.name} missing"] if self.gaps else [self.name]


@dataclass(frozen=True)
class StaticEncoder:
    """Makes a table of static features into numbers, by what the training table taught.

    A column of numbers stays one; where training had gaps they become the training median, and a second feature says
    so. A column of text becomes one feature per category; a category that training did not have is none of them.
    """

    columns: tuple[_Column, ...]

    @classmethod
    def fit(cls, frame: pd.DataFrame, id: str, targets: Collection[str] = ()) -> tuple["StaticEncoder", list[str]]:
        """Learn from a table with an `id` column; also tells what was left out, as sentences.

        Columns that are `targets` are: one file may hold all that is known of each series, the answer included.
        """
        columns, notes = [], []
        for name in (str(c) for c in frame.columns if c != id):
            if name in targets:
                notes.append(f"static column {name!r} is what is to be predicted: left out")
                continue
            column = column_of(frame, name)
            numbers, kinds = _numbers(column), int(column.nunique())
            if not kinds:
                notes.append(f"static column {name!r} is empty: left out")
            elif kinds == 1 and bool(column.notna().all()):
                notes.append(f"static column {name!r} is always {column.iloc[0]}: left out")
            elif numbers is not None:
                columns.append(_Column(name, fill=float(numbers.median()), gaps=bool(numbers.isna().any())))
            elif _is_of_numbers(column, kinds):
                odd = column.loc[no_numbers(column)]
                others = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
                notes.append(
                    f"static column {name!r} holds numbers, but for {str(odd.iloc[0])!r}{others}: left out; to use it, "
                    "empty such cells"
                )
            elif kinds > MOST_CATEGORIES:
                notes.append(f"static column {name!r} holds {kinds} different texts: left out")
            else:
                columns.append(_Column(name, categories=tuple(sorted(map(plain_text, column.dropna().unique())))))
                if column.dtype.kind not in "mM" and not no_numbers(column.dropna()).all():
                    notes.append(f"static column {name!r} holds numbers and text: taken as {kinds} categories")
        if not columns:
            said = f" ({'; '.join(notes)})" if notes else ""
            raise TableError(f"the static table has no column to learn from besides {id!r}{said}")
        return cls(tuple(columns)), notes

    @property
    def needed(self) -> list[str]:
        """Columns of the table."""
        return [column.name for column in self.columns]

    def encode(self, frame: pd.DataFrame, id: str, ids: Sequence[Hashable]) -> tuple[pd.DataFrame, list[str]]:
        """The features of the series in `ids`, with the `id` column; also tells what is new, as sentences."""
        if absent := [name for name in (id, *self.needed) if name not in frame.columns]:
            found = listed(map(repr, frame.columns), most=12)
            raise TableError(f"the static table has no column {listed(map(repr, absent))}; its columns are {found}")
        wanted = frame.loc[column_of(frame, id).isin(list(ids))]
        features, notes = {id: column_of(wanted, id).astype(object)}, []
        for column in self.columns:
            cells = column_of(wanted, column.name)
            if column.categories:
                text = pd.Series(
                    [None if pd.isna(cell) else plain_text(cell) for cell in cells], index=cells.index, dtype=object
                )
                if new := sorted(set(text.dropna()) - set(column.categories)):
                    notes.append(f"static column {column.name!r} holds {listed(map(repr, new))}, unknown to the model")
                for category, feature in zip(column.categories, column.features, strict=True):
                    features[feature] = (text == category).astype(np.float64)
                continue
            numbers = _numbers(cells)
            if numbers is None:
                raise TableError(f"static column {column.name!r} holds text; the model was trained on numbers there")
            features[column.name] = numbers.fillna(column.fill)
            if column.gaps:
                features[column.features[1]] = numbers.isna().astype(np.float64)
            elif numbers.isna().any():
                count = int(numbers.isna().sum())
                notes.append(f"static column {column.name!r} is empty for {count} series: the training median is used")
        return pd.DataFrame(features), notes

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> "StaticEncoder":
        """What `as_dict` gave."""
        columns = ({**column, "categories": tuple(column["categories"])} for column in entry["columns"])
        return cls(tuple(_Column(**column) for column in columns))


def _is_of_numbers(column: pd.Series, kinds: int) -> bool:
    """Whether a column with some text in it is of numbers, rather than of codes such as 1, 2 and x."""
    if column.dtype.kind in "mM":
        return False
    numbers = pd.Series(pd.to_numeric(column.astype(object), errors="coerce")).dropna().to_numpy(dtype=np.float64)
    if 2 * len(numbers) <= int(column.notna().sum()):
        return False
    return kinds > MOST_CATEGORIES or bool(np.any(numbers % 1))


def _numbers(column: pd.Series) -> pd.Series | None:
    """The column as numbers, or None if it holds anything else."""
    numbers = pd.Series(pd.to_numeric(column.astype(object), errors="coerce"), index=column.index)
    return numbers if (numbers.notna() | column.isna()).all() else None
