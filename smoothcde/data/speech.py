"""Spoken words as series of cepstral coefficients: Speech Commands and Free Spoken Digits."""

import io
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from smoothcde.checks import check_choice, check_known
from smoothcde.data.known import KNOWN
from smoothcde.data.mfcc import MFCC, kept_features, read_clip
from smoothcde.series import SeriesSet

WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
"""The ten commands that the paper tells apart."""

SETS = {"v0.02": "SpeechCommands", "v0.01": "SpeechCommands-v0.01"}
DIGITS = MFCC(sample_rate=8_000, window=200, hop=50)
"""Half the samples per second, so half the window and hop: frames of 25 ms, 6.25 ms apart, as at 16 kHz."""

CommandSplit = Literal["train", "validation", "test", "all"]
_RECORDING = re.compile(r"(?P<digit>\d)_(?P<speaker>[^_/]+)_\d+\.wav")
_LISTS = {"validation": "validation_list.txt", "test": "testing_list.txt"}


def load_speech_commands(
    split: CommandSplit = "all",
    version: str = "v0.02",
    words: Sequence[str] = WORDS,
    features: MFCC | None = None,
    cache: str | Path | None = None,
) -> tuple[SeriesSet, np.ndarray]:
    """Clips of one second, 161 frames of 20 coefficients each, and the word spoken in each.

    Looked for as `SpeechCommands/speech_commands_<version>/<word>/*.wav` below the data folder. Clips of another length
    than one second are left out: the original Neural CDE did so with version 0.02, and its public code asserts the
    34,975 clips of the ten words that the paper speaks of. Version 0.01, with 64,727 clips of 30 words, has fewer.

    Features take a while, once: they are kept. Stamps count frames (0 to 160), 6.25 ms apart.

    Args:
        split: by the data's own lists, in which no speaker is in two parts; or "all" (the paper splits at random).
        version: "v0.02" or "v0.01".
        words: which.
        features: other settings of the coefficients.
        cache: folder to keep features in; one in the user's cache folder by default.
    """
    check_choice("split", split, ("train", "validation", "test", "all"))
    check_known("version", version, SETS)
    folder = KNOWN[SETS[version]].located()
    if absent := [word for word in words if not (folder / word).is_dir()]:
        known = sorted(place.name for place in folder.iterdir() if place.is_dir() and not place.name.startswith("_"))
        raise ValueError(f"nobody says {', '.join(absent)} in '{folder}'; the words are {', '.join(known)}")
    settings = MFCC() if features is None else features
    files = {word: sorted((folder / word).glob("*.wav")) for word in words}
    source = [[f"{word}/{file.name}", file.stat().st_size] for word in files for file in files[word]]

    def compute() -> tuple[list[str], list[np.ndarray]]:
        names: list[str] = []
        found: list[np.ndarray] = []
        for word in words:  # one at a time: all clips together take gigabytes
            clips = {f"{word}/{file.name}": read_clip(file, settings, f"'{file}'") for file in files[word]}
            whole = {name: clip for name, clip in clips.items() if len(clip) == settings.sample_rate}
            names += whole
            found += settings.of(list(whole.values()))
        if not names:
            raise ValueError(f"no clip in '{folder}' lasts one second; is it {SETS[version]}?")
        return names, found

    names, found = kept_features([SETS[version], source], settings, compute, _folder(cache))
    listed = {part: set((folder / file).read_text().split()) for part, file in _LISTS.items()}
    part_of = [next((part for part, members in listed.items() if name in members), "train") for name in names]
    chosen = [i for i, part in enumerate(part_of) if split in (part, "all")]
    labels = np.array([names[i].split("/")[0] for i in chosen], dtype=str)
    return _series([names[i] for i in chosen], [found[i] for i in chosen], settings), labels


def load_spoken_digits(
    features: MFCC = DIGITS, cache: str | Path | None = None
) -> tuple[SeriesSet, np.ndarray, np.ndarray]:
    """Free Spoken Digits: 3,000 clips of own lengths, the digit spoken in each, and who spoke.

    Read from `FreeSpokenDigits.tar.gz` in the data folder; nothing is unpacked. Ordered by name, as
    `7_jackson_32.wav`. Features take a while, once: they are kept. Stamps count frames, 6.25 ms apart.

    ```python
    from smoothcde.data import load_spoken_digits

    series, digits, speakers = load_spoken_digits()
    test = speakers == "jackson"            # a voice that training has not heard
    ```

    Args:
        features: settings of the coefficients.
        cache: folder to keep features in; one in the user's cache folder by default.
    """
    known = KNOWN["FreeSpokenDigits"]
    archive = known.located() / known.files[0]
    about = archive.stat()

    def compute() -> tuple[list[str], list[np.ndarray]]:
        clips = _recordings(archive, features)
        names = sorted(clips)
        return names, features.of([clips[name] for name in names])

    source = [known.name, about.st_size, about.st_mtime]
    names, found = kept_features(source, features, compute, _folder(cache))
    parts = [_RECORDING.fullmatch(name) for name in names]
    digits = np.array([int(part["digit"]) for part in parts if part])
    speakers = np.array([part["speaker"] for part in parts if part])
    return _series(names, found, features), digits, speakers


def _recordings(archive: Path, settings: MFCC) -> dict[str, np.ndarray]:
    clips = {}
    try:
        with tarfile.open(archive, "r:gz") as stream:
            for member in stream:
                name = member.name.rpartition("/")[2]
                content = stream.extractfile(member) if _RECORDING.fullmatch(name) else None
                if content is not None:
                    clips[name] = read_clip(io.BytesIO(content.read()), settings, f"{name} in '{archive}'")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ValueError(f"'{archive}' is damaged ({error}); delete it and download it again") from error
    if not clips:
        raise ValueError(f"'{archive}' holds no recording named like 7_jackson_32.wav; is it the right archive?")
    return clips


def _series(names: Sequence[str], found: Sequence[np.ndarray], settings: MFCC) -> SeriesSet:
    return SeriesSet.from_arrays([part.T for part in found], ids=names, channel_names=settings.channel_names)


def _folder(cache: str | Path | None) -> Path | None:
    return None if cache is None else Path(cache)
