"""Data sets that are known by name: what they are, where they are looked for, how to get them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from smoothcde.data.physionet import FOLDER, PAGE, read_physionet2012
from smoothcde.data.uea import inside_aeon, load_uea
from smoothcde.series.frames import column_of

ARCHIVE = "https://www.timeseriesclassification.com"
WITH_AEON = "comes with aeon"


@dataclass(frozen=True)
class KnownData:
    """A data set by name.

    Attributes:
        name: as commands take it.
        about: one line.
        place: folder below that of `SMOOTHCDE_DATA`.
        files: that must be in it.
        source: where to get them, or that they are here already.
    """

    name: str
    about: str
    place: str
    files: tuple[str, ...]
    source: str

    @property
    def folder(self) -> Path | None:
        """Where the files are, None if nowhere."""
        return next((place for place in self.places if all((place / file).exists() for file in self.files)), None)

    @property
    def places(self) -> list[Path]:
        """Where they are looked for, in this order."""
        root = os.environ.get("SMOOTHCDE_DATA")
        own = [Path(root) / self.place] if root is not None else []
        return own + ([inside_aeon(self.name)] if self.source == WITH_AEON else [])

    def tables(self, duplicates: str) -> Iterator[tuple[str, pd.DataFrame, str]]:
        """Tables as `smoothcde fit` reads them: the name of each, the table, and a sentence on it."""
        if self.folder is None:
            places = " nor in ".join(f"'{place}'" for place in self.places)
            looked = f"was not found in {places}" if places else "has no folder yet"
            raise FileNotFoundError(
                f"{self.name} {looked}; put {' and '.join(self.files)} from {self.source} into a folder {self.place}, "
                "and point the environment variable SMOOTHCDE_DATA at the folder that holds it"
            )
        return _physionet(self.folder, duplicates) if self.place == FOLDER else _uea(self.name)


def _archived(name: str, about: str, source: str = ARCHIVE) -> KnownData:
    return KnownData(name, about, f"UEA/{name}", (f"{name}_TRAIN.ts", f"{name}_TEST.ts"), source)


KNOWN = {
    data.name: data
    for data in (
        KnownData(
            "physionet2012",
            "4,000 intensive care stays per set, 37 variables at their own times, in-hospital death",
            FOLDER,
            ("set-a.tar.gz", "Outcomes-a.txt"),
            PAGE,
        ),
        _archived("JapaneseVowels", "640 utterances of a vowel, 12 channels, 9 speakers", WITH_AEON),
        _archived("BasicMotions", "80 recordings of a watch, 6 channels, 4 motions", WITH_AEON),
        _archived("CharacterTrajectories", "2,858 pen movements, 3 channels, 20 letters"),
        _archived("SpokenArabicDigits", "8,798 spoken digits, 13 channels, 10 digits"),
        _archived("UWaveGestureLibrary", "440 gestures, 3 channels, 8 kinds"),
    )
}


def _physionet(folder: Path, duplicates: str) -> Iterator[tuple[str, pd.DataFrame, str]]:
    for name in ("a", "b", "c"):
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


def _uea(name: str) -> Iterator[tuple[str, pd.DataFrame, str]]:
    for split in ("train", "test"):
        series, labels = load_uea(name, split)
        owner = series.owner
        table = pd.DataFrame({"id": owner, "time": series.times})
        for channel, column in zip(series.channel_names, series.values.T, strict=True):
            table[channel.replace(" ", "_")] = column
        table["label"] = labels[owner]
        yield split, table, f"{len(series):,} series, {series.channels} channels, {len(set(labels))} classes"
