"""Known data sets as tables that `smoothcde fit` and `smoothcde forecast` read."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from smoothcde.data.ett import load_ett
from smoothcde.data.known import KnownData
from smoothcde.data.physionet import SETS, read_physionet2012
from smoothcde.data.speech import SETS as VERSIONS
from smoothcde.data.speech import load_speech_commands, load_spoken_digits
from smoothcde.data.uea import load_uea
from smoothcde.series import SeriesSet
from smoothcde.series.frames import column_of
from smoothcde.series.problems import counted

Named = tuple[str, pd.DataFrame, str]


def tables_of(data: KnownData, duplicates: str = "mean") -> Iterator[Named]:
    """Its tables, one after the other: the name of each, the table, and a sentence on it.

    Args:
        data: the set, which must be there.
        duplicates: what becomes of several values at one time (physionet2012).
    """
    folder = data.located()
    if data.name == "physionet2012":
        yield from _physionet(folder, duplicates)
    elif data.place == "ETT":
        series = load_ett(data.name)
        table = _table(series, np.array([data.name])).assign(time=pd.to_datetime(series.times, unit="s"))
        yield data.name, table, f"{counted(len(table), 'row')}, {counted(series.channels, 'channel')}"
    elif data.name == "FreeSpokenDigits":
        series, digits, speakers = load_spoken_digits()
        yield "recordings", _labelled(series, label=digits, speaker=speakers), _counts(series, digits)
    elif data.name in VERSIONS.values():
        version = next(version for version, name in VERSIONS.items() if name == data.name)
        for split in ("train", "validation", "test"):
            series, words = load_speech_commands(split, version)
            yield split, _labelled(series, label=words), _counts(series, words)
    else:
        for split in ("train", "test"):
            series, labels = load_uea(data.name, split)
            yield split, _labelled(series, label=labels), _counts(series, labels)


def _physionet(folder: Path, duplicates: str) -> Iterator[Named]:
    for name in SETS:
        if not (folder / f"set-{name}.tar.gz").exists():
            continue
        found = read_physionet2012(name, folder)
        merged = found.merged(duplicates)
        rows, before, absent = len(merged.observations), len(found.observations), len(found.without_series)
        about = f"{rows:,} observations of {len(found.static) - absent:,} stays"
        if duplicates != "keep":
            about += (
                f"; {before - rows:,} repeated ones merged ({duplicates}), in conflict in {found.conflicting:,} stays"
            )
        yield f"set-{name}", merged.observations, about
        about = f"{int(column_of(found.labels, 'in_hospital_death').sum())} deaths in {len(found.labels):,} stays"
        yield f"set-{name}-labels", found.labels, f"{about}, {absent} of them without any observation"
        yield f"set-{name}-static", found.static, "age, gender, height, weight and unit at admission"


def _table(series: SeriesSet, names: np.ndarray) -> pd.DataFrame:
    """A row per stamp, a column per channel."""
    table = pd.DataFrame({"id": names[series.owner], "time": series.times})
    channels = [channel.replace(" ", "_") for channel in series.channel_names]
    return pd.concat([table, pd.DataFrame(series.values, columns=pd.Index(channels))], axis=1)


def _labelled(series: SeriesSet, **labels: np.ndarray) -> pd.DataFrame:
    table = _table(series, np.array(series.ids))
    return table.assign(**{name: values[series.owner] for name, values in labels.items()})


def _counts(series: SeriesSet, labels: np.ndarray) -> str:
    return f"{len(series):,} series, {counted(series.channels, 'channel')}, {len(set(labels.tolist()))} classes"
