"""What is to be predicted: one value per series, from the table itself or from a file of labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from smoothcde.data.tables.files import NOT_OBSERVED, TableError, plain_text
from smoothcde.series.frames import column_of
from smoothcde.series.problems import listed

TASKS = ("classification", "regression")
MOST_CLASSES = 20
"""More different whole numbers than this are a quantity."""


def target_columns(header: Sequence[str], id: str, target: Sequence[str], where: str) -> list[str]:
    """Names of the target columns: those asked for, or the only one a file of labels has besides the id."""
    if id not in header:
        raise TableError(f"{where} has no column {id!r}; its columns are {listed(map(repr, header), most=12)}")
    if absent := [name for name in target if name not in header]:
        raise TableError(
            f"{where} has no column {listed(map(repr, absent))}; its columns are {listed(map(repr, header), most=12)}"
        )
    if target:
        return list(target)
    others = [name for name in header if name != id]
    if len(others) != 1:
        found = f"the columns {listed(map(repr, others), most=12)}" if others else "no column"
        raise TableError(f"{where} has {found} besides {id!r}; choose what to predict with --target")
    return others


def targets_by_series(frame: pd.DataFrame, id: str, target: Sequence[str], where: str) -> pd.DataFrame:
    """One row per series, indexed by its id: the one value that each target has in the rows of the series.

    Numbers are numbers, whole ones integers; anything else is text. Series without a value have NaN or None.

    Args:
        frame: has the `id` and `target` columns, as text.
        id: names the series.
        target: columns.
        where: the file, for messages.
    """
    names = column_of(frame, id).to_numpy()
    if nameless := int(pd.isna(names).sum()):
        raise TableError(f"{nameless} rows of {where} have no {id!r}; fill it in or drop the rows")
    columns = {}
    for name in target:
        values = _values(column_of(frame, name))
        grouped = values.groupby(names, sort=False)
        if (varying := grouped.nunique() > 1).any():
            series = varying.index[varying]
            several = listed(map(str, values.loc[names == series[0]].dropna().unique()), most=3)
            raise TableError(
                f"{name!r} varies within series {listed(series)} ({several} in the first); "
                "give each series one value, or name another target"
            )
        columns[name] = grouped.first()
    return pd.DataFrame(columns)


def labels_like(found: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    """Labels of one table as those of another: text where these are text, numbers where these are and it can be."""
    if all(isinstance(label, str) for label in known):
        return [plain_text(label) for label in found]
    return [_number(label) if isinstance(label, str) else label for label in found]


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def guessed_task(targets: pd.DataFrame) -> str:
    """Text, or one column of at most 20 different whole numbers: classification. Anything else: regression."""
    if targets.shape[1] != 1:
        return "regression"
    values = targets.iloc[:, 0].dropna()
    if not pd.api.types.is_numeric_dtype(values):
        return "classification"
    whole = bool((np.mod(values.to_numpy(dtype=np.float64), 1) == 0).all())
    return "classification" if whole and values.nunique() <= MOST_CLASSES else "regression"


def _values(column: pd.Series) -> pd.Series:
    """Text as numbers where all of it are numbers, empty where it is; otherwise as it is, as are codes such as 01."""
    text = column.astype(object)
    missing = column.isna()
    numbers = pd.Series(pd.to_numeric(text, errors="coerce"), index=column.index)
    coded = text.loc[~missing].astype(str).str.fullmatch(r"0\d+").any()
    if not coded and (numbers.notna() | missing | text.isin(NOT_OBSERVED)).all():
        if not np.isfinite(numbers.dropna()).all():
            raise TableError(f"column {column.name!r} holds infinite values; give finite targets")
        whole = (np.mod(numbers.dropna(), 1) == 0).all()
        return numbers.astype("Int64") if whole else numbers
    return text.where(~missing, None)
