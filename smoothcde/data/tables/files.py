"""CSV and Parquet files as pandas tables, and back, with what is wrong with a file in words."""

import os
import re
import secrets
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from smoothcde.data.tables.decimals import may_be_thousands, with_decimal_commas
from smoothcde.series.frames import column_of, no_numbers
from smoothcde.series.problems import listed

NOT_OBSERVED = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NAN", "None", "none", "NULL", "null", "?")
"""What an empty cell of numbers may be written as. Names (ids, variables, classes) are only empty when they are."""

PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv", ".txt", ".gz")
_LONG_LINE = 100_000
"""Bytes at the end of a file in which its last line is looked for."""
_NO_TEXT = "is not text in UTF-8; save it as CSV in UTF-8, or give a Parquet file"
_FORMATS = "give a CSV (.csv, .tsv, also .gz) or a Parquet file"


class TableError(ValueError):
    """A file that cannot be read as a table, or a table that does not hold what was asked of it."""


def read_header(file: str | Path) -> list[str]:
    """Names of the columns, without reading the rows."""
    path = _existing(file)
    return _parquet_header(path) if _is_parquet(path) else [name for name in _csv_header(path)[0] if name]


def read_table(
    file: str | Path,
    *,
    text: Collection[str] = (),
    targets: Collection[str] = (),
    columns: Collection[str] | None = None,
) -> pd.DataFrame:
    """A CSV or Parquet file as a table.

    Separators `,` `;` tab and `|` are recognised by the header; with `;`, as spreadsheets of many lands write, numbers
    may have a decimal comma. A column without a name (the row numbers that pandas writes) is left out.

    Args:
        file: CSV or Parquet, told by its name.
        text: columns of names (ids, variables), kept as they are written: `007` stays, and so does `None`. They become
            categoricals of text, whatever the type in the file, so that two files agree on them.
        targets: columns of numbers or classes, kept in the same way but for decimal commas.
        columns: which to read; all by default. Those the file does not have are left out.
    """
    path = _existing(file)
    names = {*text, *targets}
    frame = _read_parquet(path, columns) if _is_parquet(path) else _read_csv(path, names, targets, columns)
    if not len(frame):
        raise TableError(f"'{path}' has a header but no rows; nothing can be read from it")
    for name in frame.columns:
        if name in names:
            frame[name] = _as_text(column_of(frame, name))
    return frame


def check_output(file: str | Path | None, *inputs: str | Path | None) -> None:
    """Refuse a file to be written whose name promises another format, or that is one of those read from."""
    if file is None:
        return
    path = Path(file)
    if path.suffix and path.suffix.lower() not in (*PARQUET, *_TEXT):
        raise TableError(f"'{path}' would be a CSV file, and its name says otherwise; name a .csv or .parquet file")
    if path.exists() and any(other is not None and Path(other).exists() and path.samefile(other) for other in inputs):
        raise TableError(f"'{path}' is the file that is read; choose another one for what is written")


def write_table(frame: pd.DataFrame, file: str | Path) -> None:
    """Write a table, as Parquet or CSV by the file's name, whole or not at all."""
    path = Path(file)
    if path.suffix in PARQUET:
        write_whole(path, lambda part: frame.to_parquet(part, index=False))
    else:
        sep = "\t" if ".tsv" in path.suffixes else ","
        write_whole(path, lambda part: frame.to_csv(part, sep=sep, index=False, compression=_compression(path)))


def write_whole(file: str | Path, write: Callable[[Path], Any]) -> None:
    """Let `write` make a sibling file, then move it into place: whoever looks finds the old file or the new one."""
    path = Path(file)
    part = path.parent / f".{path.name}.{secrets.token_hex(6)}.tmp"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        os.replace(part, path)
    except OSError as error:
        raise TableError(f"'{path}' cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink()


def _compression(path: Path) -> Any:
    return "gzip" if path.suffix.lower() == ".gz" else None


def _existing(file: str | Path) -> Path:
    path = Path(file)
    if path.is_dir():
        raise TableError(f"'{path}' is a folder; {_FORMATS}")
    if not path.exists():
        raise TableError(f"there is no file '{path}'; check its name and folder")
    try:
        with open(path, "rb") as opened:
            start = opened.read(4)
    except OSError as error:
        raise TableError(f"'{path}' cannot be read: {error.strerror or error}") from error
    if not start:
        raise TableError(f"'{path}' is empty; {_FORMATS}")
    if path.suffix == ".xlsx" or start == b"PK\x03\x04":
        raise TableError(f"'{path}' is a spreadsheet or a zip archive; export the sheet as CSV")
    return path


def _is_parquet(path: Path) -> bool:
    if path.suffix in PARQUET:
        return True
    with open(path, "rb") as opened:
        return opened.read(4) == b"PAR1"


def _csv_header(path: Path) -> tuple[list[str], str]:
    """Names of the columns ("" for none), and what separates them."""
    try:
        line = pd.read_csv(path, header=None, nrows=1, dtype=str, sep="\0", encoding="utf-8-sig", quoting=3).iloc[0, 0]
    except pd.errors.EmptyDataError as error:
        raise TableError(f"'{path}' is empty; {_FORMATS}") from error
    except (UnicodeDecodeError, pd.errors.ParserError, OSError, ValueError, EOFError) as error:
        raise TableError(f"'{path}' {_NO_TEXT}") from error
    line = str(line)
    if re.match(r'\s*(\{\s*"|\[\s*[\[{])', line):
        raise TableError(f"'{path}' looks like JSON; {_FORMATS}")
    if line.lstrip().startswith("#") and not any(separator in line for separator in ",;\t|"):
        raise TableError(f"'{path}' begins with a comment; remove what stands before the names of the columns")
    if any(ord(letter) < 32 and letter != "\t" for letter in line):
        raise TableError(f"'{path}' {_NO_TEXT}")
    separator = max(",;\t|", key=line.count)
    options: dict[str, Any] = {"sep": separator, "skipinitialspace": True, "encoding": "utf-8-sig"}
    header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **options)
    names = [str(name).strip() for name in header.iloc[0]]
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        raise TableError(f"'{path}' has several columns called {listed(map(repr, twice))}; rename them")
    if all(re.fullmatch(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?", name) for name in names):
        raise TableError(f"the first row of '{path}' holds only numbers; give the columns names in a header")
    return names, separator


def _read_csv(
    path: Path, text: Collection[str], targets: Collection[str], columns: Collection[str] | None
) -> pd.DataFrame:
    names, separator = _csv_header(path)
    wanted = [name for name in names if name and (columns is None or name in columns)]
    options: dict[str, Any] = {
        "sep": separator,
        "header": 0,
        "names": [name or f"\0{position}" for position, name in enumerate(names)],
        "index_col": False,
        "skipinitialspace": True,
        "encoding": "utf-8-sig",
        "low_memory": False,
    }
    irregular = f"'{path}' is no regular CSV: "
    remedy = f"; quote fields that hold '{separator}'"
    try:
        with warnings.catch_warnings():
            # Where all rows are longer than the header, pandas drops their ends with no more than a warning; where
            # some columns are chosen (`usecols`), without one.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path,
                dtype={name: "category" for name in wanted if name in text},  # type: ignore[arg-type]
                keep_default_na=False,
                na_values={name: [""] if name in text else list(NOT_OBSERVED) for name in wanted},
                **options,
            )
    except pd.errors.ParserError as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        where = f"line {found[2]} has {found[3]} fields where the header has {found[1]}" if found else str(error)
        raise TableError(irregular + where + remedy) from error
    except pd.errors.ParserWarning as error:
        raise TableError(irregular + "its rows have more fields than the header" + remedy) from error
    except UnicodeDecodeError as error:
        raise TableError(f"'{path}' {_NO_TEXT}") from error
    frame = frame.loc[:, wanted]
    for name in (name for name in wanted if name not in text):
        frame[name] = _trimmed(column_of(frame, name))
    if separator == ";":
        converted = []
        for name in (name for name in wanted if name in targets or name not in text):
            if (numbers := _from_decimal_commas(column_of(frame, name))) is not None:
                frame[name] = numbers
                converted.append(name)
        floats = [name for name in wanted if name not in converted and column_of(frame, name).dtype.kind == "f"]
        if converted and floats:
            places = [position for position, name in enumerate(names) if name in floats]
            written = pd.read_csv(path, dtype=str, keep_default_na=False, usecols=places, **options)
            for name in floats:
                _refuse_doubtful_points(column_of(written, name), path, name, converted[0])
    _check_last_line(path, len(names), separator)
    return frame


def _check_last_line(path: Path, fields: int, separator: str) -> None:
    """Say so if the file ends in the middle of a line: it may have been cut off."""
    if path.suffix.lower() == ".gz":
        return
    with open(path, "rb") as opened:
        opened.seek(max(0, path.stat().st_size - _LONG_LINE))
        end = opened.read()
    last = end.rpartition(b"\n")[2].decode("utf-8", errors="replace")
    if last.strip() and b"\n" in end and '"' not in last and last.count(separator) + 1 < fields:
        warnings.warn(
            f"the last line of '{path}' has {last.count(separator) + 1} fields where the header has {fields}, and no "
            "end of line: was the file cut off?",
            stacklevel=2,
        )


def _trimmed(column: pd.Series) -> pd.Series:
    """A column of text without the spaces that pad cells to a width, which hide that a cell says nothing."""
    if column.dtype != object and not pd.api.types.is_string_dtype(column):
        return column
    if pd.api.types.infer_dtype(column, skipna=True) == "boolean":  # truth values and gaps
        return column.map({True: 1.0, False: 0.0}).astype(float)
    told = column.astype(object).str.strip()
    told = told.mask(told.isin(NOT_OBSERVED))
    return told if no_numbers(told).any() else pd.Series(pd.to_numeric(told))


def _from_decimal_commas(column: pd.Series) -> pd.Series | None:
    if pd.api.types.is_numeric_dtype(column):
        return None
    numbers = with_decimal_commas(_observed(column.dropna()))
    return None if numbers is None else numbers.reindex(column.index)


def _refuse_doubtful_points(written: pd.Series, path: Path, name: str, other: str) -> None:
    if example := may_be_thousands(_observed(written)):
        raise TableError(
            f"column {name!r} of '{path}' holds {example!r}, and column {other!r} has decimal commas: is that a point "
            "between thousands? Leave such points out, or write a decimal comma there, too"
        )


def _observed(column: pd.Series) -> pd.Series:
    told = column.astype(str).str.strip()
    return told[~told.isin(NOT_OBSERVED)]


def _parquet_header(path: Path) -> list[str]:
    import pyarrow
    import pyarrow.parquet

    try:
        return [str(name) for name in pyarrow.parquet.read_schema(path).names]
    except (pyarrow.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise TableError(f"'{path}' is no readable Parquet file ({reason}); {_FORMATS}") from error


def _read_parquet(path: Path, columns: Collection[str] | None) -> pd.DataFrame:
    names = [name for name in _parquet_header(path) if not name.startswith("__index_level_")]
    wanted = [name for name in names if columns is None or name in columns]
    try:
        frame = pd.read_parquet(path, columns=wanted)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise TableError(f"'{path}' is no readable Parquet file ({reason}); {_FORMATS}") from error
    # A named index is a column to whoever wrote it.
    return frame.reset_index() if any(name in wanted for name in frame.index.names) else frame.reset_index(drop=True)


def _as_text(column: pd.Series) -> pd.Series:
    """Names as a categorical of text: 3, 3.0 and "3" are the same name, "3.0" too where all names are whole numbers."""
    codes, found = pd.factorize(column)
    texts = [plain_text(name).strip() for name in found]
    if texts and all(re.fullmatch(r"-?(0|[1-9]\d*)(\.0+)?", text) for text in texts):
        texts = [text.partition(".")[0] for text in texts]
    names = list(dict.fromkeys(texts))
    position = {name: index for index, name in enumerate(names)}
    renamed = pd.Series([position[name] for name in texts] + [-1]).to_numpy()
    return pd.Series(pd.Categorical.from_codes(renamed[codes], categories=pd.Index(names, dtype=str)))


def plain_text(name: Any) -> str:
    """A cell as text, whole numbers without a fraction whatever their type."""
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)
