"""Mel-frequency cepstral coefficients of audio clips, computed once and kept."""

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from smoothcde.data.known import cache_folder
from smoothcde.storage import replace_file

_TOGETHER = 64
_DECIBELS = 80.0
"""How far below its loudest a clip is heard; librosa's own choice."""


@dataclass(frozen=True)
class MFCC:
    """Settings of librosa's MFCC, whatever is not said here as librosa has it.

    A clip is padded by half a window of silence at both ends, so that frames are centred on samples 0, hop, 2 hop, ...:
    n samples give `n // hop + 1` frames, one second at 16 kHz with a hop of 100 gives 161.

    Attributes:
        sample_rate: samples per second.
        window: samples per frame (`n_fft`).
        hop: samples from frame to frame.
        mels: bands of the mel filter bank.
        coefficients: how many of the cepstrum are kept.
    """

    sample_rate: int = 16_000
    window: int = 400
    hop: int = 100
    mels: int = 23
    coefficients: int = 20

    def frames(self, samples: int) -> int:
        """How many frames a clip of so many samples has."""
        return samples // self.hop + 1

    def of(self, clips: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The coefficients of each clip, `[frames, coefficients]` in float32, as librosa has them of each alone.

        Clips are taken together, neighbours in length, which is several times as fast: silence behind a clip changes
        none of its frames.
        """
        require_audio()
        import librosa

        found: list[np.ndarray] = [np.empty(0)] * len(clips)
        order = np.argsort([len(clip) for clip in clips], kind="stable")
        for chosen in np.split(order, range(_TOGETHER, len(order), _TOGETHER)):
            longest = max((len(clips[i]) for i in chosen), default=0)
            padded = np.zeros((len(chosen), longest), dtype=np.float32)
            for row, i in zip(padded, chosen, strict=True):
                row[: len(clips[i])] = clips[i]
            power = librosa.feature.melspectrogram(
                y=padded, sr=self.sample_rate, n_fft=self.window, hop_length=self.hop, n_mels=self.mels
            )
            # The floor is that of each clip, not of all that are taken together.
            loudness = librosa.power_to_db(power, top_db=None)
            for i, own in zip(chosen, loudness, strict=True):
                own = own[:, : self.frames(len(clips[i]))]
                own = np.maximum(own, own.max() - _DECIBELS)
                found[i] = librosa.feature.mfcc(S=own, n_mfcc=self.coefficients).T.astype(np.float32)
        return found

    @property
    def channel_names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return tuple(f"mfcc {i}" for i in range(self.coefficients))


def require_audio() -> None:
    """Raise with the remedy where the packages for audio are missing."""
    if absent := [name for name in ("librosa", "soundfile") if find_spec(name) is None]:
        raise ImportError(f'audio needs {" and ".join(absent)}; install them with: pip install "smoothcde[audio]"')


def read_clip(file: Any, settings: MFCC, name: str) -> np.ndarray:
    """Samples of a sound file with one channel, from -1 to 1."""
    require_audio()
    import soundfile

    try:
        samples, rate = soundfile.read(file, dtype="float32")
    except soundfile.LibsndfileError as error:
        raise ValueError(f"{name} cannot be read as audio ({error}); download the data again") from error
    if rate != settings.sample_rate or samples.ndim != 1:
        raise ValueError(
            f"{name} has {rate} samples per second in {np.ndim(samples)} channels; "
            f"expected {settings.sample_rate} in one"
        )
    return samples


def kept_features(
    source: Any, settings: MFCC, compute: Callable[[], tuple[Sequence[str], list[np.ndarray]]], folder: Path | None
) -> tuple[list[str], list[np.ndarray]]:
    """Names of clips and their coefficients: what `compute` gives, or gave before for the same source and settings.

    Args:
        source: anything JSON can hold that changes when the clips do.
        settings: of the features; others are kept in another file.
        compute: the work, done where nothing (readable) is kept.
        folder: where to keep it; `features` in the user's cache folder by default.
    """
    said = json.dumps([source, asdict(settings)], sort_keys=True)
    folder = cache_folder() / "features" if folder is None else folder
    file = folder / f"mfcc-{hashlib.sha256(said.encode()).hexdigest()[:20]}.npz"
    try:
        with np.load(file, allow_pickle=False) as kept:
            return kept["names"].tolist(), np.split(kept["values"], np.cumsum(kept["lengths"])[:-1])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        pass  # not there, or damaged: made anew
    names, features = compute()
    content = io.BytesIO()
    np.savez(content, names=names, values=np.concatenate(features), lengths=[len(part) for part in features])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(file, content.getvalue())
    except OSError as error:
        warnings.warn(
            f"features could not be kept in '{folder}' ({error.strerror}); they will be made anew", stacklevel=3
        )
    return list(names), features
