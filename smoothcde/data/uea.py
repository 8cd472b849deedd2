"""The UEA archive of multivariate series classification, through aeon's reader."""

from pathlib import Path
from typing import Literal

import numpy as np

from smoothcde.checks import check_choice
from smoothcde.data.known import KNOWN, archived
from smoothcde.series import SeriesSet

Split = Literal["train", "test", "all"]


def load_uea(name: str, split: Split = "train") -> tuple[SeriesSet, np.ndarray]:
    """A data set of the archive: the series and their labels.

    Looked for below the data folder, as `UEA/<name>/<name>_TRAIN.ts`, then inside aeon's own package (JapaneseVowels
    and BasicMotions are there, so they need no download).

    Args:
        name: of the data set, such as "JapaneseVowels".
        split: the archive's "train" or "test" part, or "all", train first.
    """
    check_choice("split", split, ("train", "test", "all"))
    files = [f"{name}_{part.upper()}.ts" for part in ("train", "test") if split in (part, "all")]
    folder = (KNOWN.get(name) or archived(name)).located(*files)
    parts = [_read(folder / file) for file in files]
    blocks = [block for series, _ in parts for block in series]
    labels = np.concatenate([labels for _, labels in parts])
    return SeriesSet.from_arrays(blocks), labels


def _read(file: Path) -> tuple[list[np.ndarray], np.ndarray]:
    from aeon.datasets import load_from_ts_file  # slow to import

    series, labels = load_from_ts_file(str(file))[:2]
    return list(series), np.asarray(labels)
