"""The PhysioNet/Computing in Cardiology Challenge 2012: 48 hours of intensive care, and who survived the stay.

Each set holds 4,000 stays: 37 variables, each with its own times, and descriptors known at admission. Two things
about the files are easily missed. A stay can have several values of one variable at one stamp: 1,167 stays of set a
do, with values that differ. And some stays have no measurement at all, three of them in set a: they are in the labels
and in the static table only, so a reader that takes its ids from the observations loses them.
"""

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from smoothcde.checks import check_choice, check_known
from smoothcde.data.known import CHALLENGE, KNOWN
from smoothcde.series.frames import column_of

SETS = ("a", "b", "c")
MERGES = ("mean", "last", "first", "keep")
UNITS = {1: "coronary", 2: "cardiac surgery", 3: "medical", 4: "surgical"}
"""Kinds of intensive care unit, by the challenge's number."""

_DESCRIPTORS = ("Age", "Gender", "Height", "ICUType", "Weight")
_MISSING = -1.0


@dataclass(frozen=True, eq=False)
class PhysioNetSet:
    """One set of the challenge as three tables that share the column `id`.

    Attributes:
        observations: tidy: `id`, `time` (hours since admission), `variable`, `value`, in the order of the files. Values
            are as recorded, implausible ones (a temperature of -17.8) included.
        static: `Age`, `Gender`, `Height`, `Weight` at admission, and `ICUType` in words; empty where the challenge
            writes -1.
        labels: `in_hospital_death`, and the challenge's other outcomes: `length_of_stay` and `survival` in days,
            `saps_i`, `sofa`; empty where it writes -1 (for `survival`: no death on record).
    """

    observations: pd.DataFrame
    static: pd.DataFrame
    labels: pd.DataFrame

    def merged(self, duplicates: str) -> "PhysioNetSet":
        """The same with one value per stay, time and variable: the "mean", "last" or "first"; "keep" keeps all."""
        check_choice("duplicates", duplicates, MERGES)
        if duplicates == "keep":
            return self
        keys = ["id", "time", "variable"]
        table = self.observations
        if duplicates == "mean":
            means = pd.DataFrame(table.groupby(keys, sort=False, observed=True).agg({"value": "mean"}))
            return PhysioNetSet(means.reset_index(), self.static, self.labels)
        kept = table.drop_duplicates(keys, keep=duplicates, ignore_index=True)  # type: ignore[arg-type]
        return PhysioNetSet(kept, self.static, self.labels)

    @property
    def conflicting(self) -> int:
        """Stays in which a variable has different values at one stamp."""
        grouped = self.observations.groupby(["id", "time", "variable"], sort=False, observed=True)
        spread = pd.DataFrame(grouped.agg({"value": "nunique"})).reset_index()
        return int(column_of(spread.loc[column_of(spread, "value") > 1], "id").nunique())

    @property
    def without_series(self) -> list[str]:
        """Stays without any observation."""
        observed = set(column_of(self.observations, "id").unique())
        return [name for name in column_of(self.static, "id") if name not in observed]


def read_physionet2012(name: str, folder: str | Path | None = None) -> PhysioNetSet:
    """Set "a", "b" or "c" of the challenge, from its own files.

    Args:
        name: of the set.
        folder: where `set-a.tar.gz` and `Outcomes-a.txt` lie; by default `PhysioNet2012` below the data folder.
    """
    check_known("set", name, SETS)
    files = f"set-{name}.tar.gz", f"Outcomes-{name}.txt"
    known = KNOWN["physionet2012"]
    archive, outcomes = ((known.located(*files) if folder is None else Path(folder)) / file for file in files)
    if absent := [file.name for file in (archive, outcomes) if not file.exists()]:
        raise FileNotFoundError(
            f"{' and '.join(absent)} not found in {folder}; download from {CHALLENGE} into this folder"
        )
    observations, static = _split(*_records(archive))
    return PhysioNetSet(observations, static, _labels(outcomes, static))


def _records(archive: Path) -> tuple[list[str], pd.DataFrame]:
    """Names of the stays in order, and all their rows as they stand in the files."""
    names, bodies = [], []
    for name, text in _files(archive):
        names.append(name)
        bodies.append(text.partition("\n")[2].rstrip("\n") + "\n")
    if not names:
        raise ValueError(f"{archive} holds no record; download it again from {CHALLENGE}")
    # One long text costs the parser a second, four thousand short ones twenty.
    columns = {"Time": "category", "Parameter": "category", "Value": np.float64}
    text = io.StringIO("".join(bodies))
    rows = pd.read_csv(text, names=list(columns), dtype=columns, skip_blank_lines=False)  # type: ignore[arg-type]
    owner = np.repeat(np.arange(len(names)), [body.count("\n") for body in bodies])
    rows.insert(0, "id", pd.Categorical.from_codes(owner, categories=pd.Index(names)))
    return names, rows.dropna(subset=["Parameter", "Value"])


def _files(archive: Path) -> Iterator[tuple[str, str]]:
    """Name and text of each record; nothing is unpacked."""
    try:
        with tarfile.open(archive, "r:gz") as stream:
            for member in stream:
                content = stream.extractfile(member) if member.name.endswith(".txt") else None
                if content is not None:
                    yield Path(member.name).stem, content.read().decode("ascii")
    except (tarfile.TarError, EOFError, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{archive} is damaged ({error}); download it again from {CHALLENGE}") from error


def _split(names: list[str], rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Observations and static descriptors. A weight at admission is a descriptor, later ones are observations."""
    time, parameter = column_of(rows, "Time"), column_of(rows, "Parameter")
    admission = time == "00:00"
    known = parameter.isin(("RecordID", *_DESCRIPTORS)) & ((parameter != "Weight") | admission)
    hours = {stamp: int(stamp[:-3]) + int(stamp[-2:]) / 60 for stamp in time.cat.categories}
    series = rows.loc[~known]
    observations = pd.DataFrame(
        {
            "id": column_of(series, "id"),
            "time": column_of(series, "Time").map(hours).astype(np.float64),
            "variable": column_of(series, "Parameter").cat.remove_unused_categories(),
            "value": column_of(series, "Value"),
        }
    ).reset_index(drop=True)
    described = rows.loc[known & admission].pivot_table(
        index="id", columns="Parameter", values="Value", aggfunc="first", observed=True
    )
    static = described.reindex(index=names, columns=list(_DESCRIPTORS)).astype(np.float64)
    static = static.mask(static == _MISSING)
    static["ICUType"] = column_of(static, "ICUType").map(UNITS)
    static.index.name, static.columns.name = "id", None
    return observations, static.reset_index()


def _labels(outcomes: Path, static: pd.DataFrame) -> pd.DataFrame:
    table = pd.read_csv(outcomes).rename(columns={"RecordID": "id"})
    table.columns = [str(name).lower().replace("-", "_") for name in table.columns]
    table["id"] = column_of(table, "id").astype(str)
    table = table.set_index("id").reindex(column_of(static, "id"))
    table = table.mask(table == _MISSING).astype("Int64")
    first = ["in_hospital_death", "length_of_stay", "survival"]
    return table[first + [name for name in table.columns if name not in first]].reset_index()
