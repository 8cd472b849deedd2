"""The paper's protocol: merge, resample, split, standardise by the training part, drop."""

from dataclasses import dataclass

import numpy as np

from smoothcde.checks import check_choice
from smoothcde.data import (
    ChannelScaler,
    drop_stamps,
    load_speech_commands,
    load_spoken_digits,
    load_uea,
    resample,
    scale_time,
    split_three,
)
from smoothcde.reproduce.generated import GENERATED, generated_traffic
from smoothcde.reproduce.settings import Setting
from smoothcde.series import SeriesSet


@dataclass(frozen=True, eq=False)
class Part:
    """Standardised series with class numbers."""

    series: SeriesSet
    targets: np.ndarray


@dataclass(frozen=True, eq=False)
class Task:
    """A data set as one trial sees it.

    Attributes:
        train: fits the weights, and the statistics of the standardisation.
        validation: picks the epoch.
        test: is looked at once.
        classes: how many.
        time_scale: the unit of bandwidths: stamps per series, as in the paper.
    """

    train: Part
    validation: Part
    test: Part
    classes: int
    time_scale: float

    @classmethod
    def of(cls, data: str, setting: Setting, seed: int) -> "Task":
        """Read and cut a data set."""
        series, labels = load_series(data)
        names, targets = np.unique(labels, return_inverse=True)
        parts = _parts(data, setting, seed, targets)
        if setting.length is not None:
            series = resample(series, setting.length)
        series = scale_time(series, setting.time_factor)
        scale = float(setting.length or series.lengths.max())
        scaler = ChannelScaler.fit(series[parts[0]])

        def part(number: int) -> Part:
            chosen = parts[number]
            sparse = drop_stamps(scaler.transform(series[chosen]), setting.drop, 3 * seed + number)
            return Part(sparse, targets[chosen])

        return cls(part(0), part(1), part(2), len(names), scale * setting.time_factor)


def load_series(data: str) -> tuple[SeriesSet, np.ndarray]:
    """All series of a data set by name, and their labels."""
    if data == GENERATED:
        return generated_traffic()
    if data == "FreeSpokenDigits":
        series, digits, _ = load_spoken_digits()
        return series, digits
    return load_speech_commands() if data == "SpeechCommands" else load_uea(data, "all")


def _parts(data: str, setting: Setting, seed: int, targets: np.ndarray) -> list[np.ndarray]:
    """Indices of training, validation and test series."""
    check_choice("split", setting.split, ("random", "archive"))
    if setting.split == "random":
        parts = list(split_three(len(targets), seed=seed))
    else:
        known = len(load_uea(data, "train")[1])
        order = np.random.default_rng(seed).permutation(known)
        held = round(0.2 * known)
        parts = [np.sort(order[held:]), np.sort(order[:held]), np.arange(known, len(targets))]
    if setting.series is None:
        return parts
    share = setting.series / len(targets)
    # Not the first: the archive's series come class by class.
    chosen = np.random.default_rng(seed)
    return [np.sort(chosen.permutation(part)[: max(1, round(share * len(part)))]) for part in parts]
