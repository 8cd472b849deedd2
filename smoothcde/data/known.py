"""Data sets that are known by name: what they are, where they are looked for, where they come from."""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ARCHIVE = "https://timeseriesclassification.com"
CHALLENGE = "https://physionet.org/content/challenge-2012/1.0.0/"
ETT = "https://github.com/zhouhaoyi/ETDataset"
SPEECH = "https://www.tensorflow.org/datasets/catalog/speech_commands"
DIGITS = "https://github.com/Jakobovski/free-spoken-digit-dataset"


def data_folder() -> Path:
    """Where data sets lie: what the environment variable `SMOOTHCDE_DATA` names, or a cache folder of the user."""
    if root := os.environ.get("SMOOTHCDE_DATA"):
        return Path(root)
    return cache_folder()


def cache_folder() -> Path:
    """The user's cache folder, wherever their system has it."""
    import pooch

    return Path(pooch.os_cache("smoothcde"))


@dataclass(frozen=True)
class Remote:
    """A file to download.

    Attributes:
        address: where it is.
        file: its name in the folder of its set; None for an archive, which is unpacked there.
        sha256: of the file as it is known; None where nobody vouches for one, so that it cannot be checked.
        wanted: which files of an archive are unpacked.
    """

    address: str
    file: str | None = None
    sha256: str | None = None
    wanted: str = "*"


@dataclass(frozen=True)
class KnownData:
    """A data set by name.

    Attributes:
        name: as commands take it.
        about: one line.
        place: its folder, below the data folder.
        files: that must be in it.
        source: a page about them, for people.
        remotes: what to download.
        with_aeon: whether aeon's package holds a copy.
    """

    name: str
    about: str
    place: str
    files: tuple[str, ...]
    source: str
    remotes: tuple[Remote, ...] = ()
    with_aeon: bool = False

    @property
    def own_place(self) -> Path:
        """Its folder below the data folder, there or not."""
        return data_folder() / self.place

    @property
    def places(self) -> list[Path]:
        """Where it is looked for, in this order."""
        return [self.own_place, *([_inside_aeon(self.name)] if self.with_aeon else [])]

    @property
    def folder(self) -> Path | None:
        """Where its files are, None if nowhere."""
        return self._holding(self.files)

    def located(self, *files: str) -> Path:
        """The folder that holds these files, by default all that must be there. Nothing is downloaded."""
        needed = files or self.files
        folder = self._holding(needed)
        if folder is not None:
            return folder
        fetched = {remote.file for remote in self.remotes}
        known = self.name in KNOWN and bool(self.remotes) and (None in fetched or fetched.issuperset(needed))
        fetch = f"`smoothcde datasets {self.name} --download` fetches it from {self.remotes[0].address}, or " * known
        places = " nor in ".join(f"'{place}'" for place in self.places)
        raise FileNotFoundError(
            f"{self.name} was not found in {places}; {fetch}{self.by_hand('there', needed)}. "
            "The environment variable SMOOTHCDE_DATA names another data folder"
        )

    def by_hand(self, there: str = "there", files: tuple[str, ...] = ()) -> str:
        """How to put its files into place without this library."""
        whole = [remote.address for remote in self.remotes if remote.file is None and remote.wanted == "*"]
        if whole:
            return f"unpack {whole[0]} {there}"
        return f"put {' and '.join(files or self.files)} from {self.source} {there}"

    def _holding(self, files: tuple[str, ...]) -> Path | None:
        return next((place for place in self.places if all((place / file).exists() for file in files)), None)


def archived(name: str, about: str = "a set of the archive", with_aeon: bool = False) -> KnownData:
    """A data set of the UEA archive, from its name."""
    # The archive repacks its files now and then, so there is no sum to check them by.
    remote = Remote(f"{ARCHIVE}/aeon-toolkit/{name}.zip", wanted="*.ts")
    files = (f"{name}_TRAIN.ts", f"{name}_TEST.ts")
    return KnownData(name, about, f"UEA/{name}", files, ARCHIVE, (remote,), with_aeon)


def _inside_aeon(name: str) -> Path:
    """Where aeon's package keeps a data set, if it comes with it; found without importing aeon, which is slow."""
    package = find_spec("aeon")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "datasets" / "data" / name


def _challenge(file: str, sha256: str) -> Remote:
    return Remote(f"https://physionet.org/files/challenge-2012/1.0.0/{file}", file, sha256)


def _transformer(name: str, minutes: int, sha256: str) -> KnownData:
    about = f"a transformer's load and oil temperature over two years, 7 channels, every {minutes} minutes"
    address = f"https://raw.githubusercontent.com/zhouhaoyi/ETDataset/main/ETT-small/{name}.csv"
    return KnownData(name, about, "ETT", (f"{name}.csv",), ETT, (Remote(address, f"{name}.csv", sha256),))


def _speech(name: str, version: str, about: str, sha256: str) -> KnownData:
    folder = f"speech_commands_{version}"
    address = f"https://storage.googleapis.com/download.tensorflow.org/data/{folder}.tar.gz"
    files = ("validation_list.txt", "testing_list.txt", "yes")
    return KnownData(name, about, f"SpeechCommands/{folder}", files, SPEECH, (Remote(address, sha256=sha256),))


# Sums of ETT and the challenge are those that several public collections agree on; Speech Commands has torchaudio's.
KNOWN = {
    data.name: data
    for data in (
        KnownData(
            "physionet2012",
            "4,000 intensive care stays per set, 37 variables at their own times, in-hospital death",
            "PhysioNet2012",
            ("set-a.tar.gz", "Outcomes-a.txt"),
            CHALLENGE,
            (
                _challenge("set-a.tar.gz", "8cb250f179cd0952b4b9ebcf8954b63d70383131670fac1cfee13deaa13ca920"),
                _challenge("Outcomes-a.txt", "2613ea60ccda29f87571a7d6b09ad130858a8ccd66325bd073365925026883c2"),
                _challenge("set-b.tar.gz", "b1637a2a423a8e76f8f087896cfc5fdf28f88519e1f4e874fbda69b2a64dac30"),
                _challenge("Outcomes-b.txt", "1305f29734da374a809483229a99f33a9230aa8d4fa74b1a2d6ad788136423d5"),
            ),
        ),
        archived("JapaneseVowels", "640 utterances of a vowel, 12 channels, 9 speakers", with_aeon=True),
        archived("BasicMotions", "80 recordings of a watch, 6 channels, 4 motions", with_aeon=True),
        archived("CharacterTrajectories", "2,858 pen movements, 3 channels, 20 letters"),
        archived("SpokenArabicDigits", "8,798 spoken digits, 13 channels, 10 digits"),
        archived("UWaveGestureLibrary", "440 gestures, 3 channels, 8 kinds"),
        archived("PEMS-SF", "440 days of freeway occupancy, 963 channels, 7 days of the week"),
        _speech(
            "SpeechCommands",
            "v0.02",
            "34,975 spoken commands of one second, 20 channels (MFCC), 10 words; 2.4 GB",
            "af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
        ),
        _speech(
            "SpeechCommands-v0.01",
            "v0.01",
            "the earlier and smaller version of SpeechCommands; 1.5 GB",
            "743935421bb51cccdb6bdd152e04c5c70274e935c82119ad7faeec31780d811d",
        ),
        KnownData(
            "FreeSpokenDigits",
            "3,000 spoken digits of own lengths, 20 channels (MFCC), 10 digits, 6 speakers",
            "",
            ("FreeSpokenDigits.tar.gz",),
            DIGITS,
            # GitHub makes archives of tags on demand, and does not promise the same bytes each time.
            (Remote(f"{DIGITS}/archive/refs/tags/v1.0.10.tar.gz", "FreeSpokenDigits.tar.gz"),),
        ),
        _transformer("ETTm1", 15, "6ce1759b1a18e3328421d5d75fadcb316c449fcd7cec32820c8dafda71986c9e"),
        _transformer("ETTm2", 15, "db973ca252c6410a30d0469b13d696cf919648d0f3fd588c60f03fdbdbadd1fd"),
        _transformer("ETTh1", 60, "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066"),
        _transformer("ETTh2", 60, "a3dc2c597b9218c7ce1cd55eb77b283fd459a1d09d753063f944967dd6b9218b"),
    )
}
