"""The UEA archive of multivariate series classification, through aeon's reader."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np

from smoothcde.series import SeriesSet

Split = Literal["train", "test", "all"]


def load_uea(name: str, split: Split = "train") -> tuple[SeriesSet, np.ndarray]:
    """A data set of the archive: the series and their labels.

    Looked for under the folder that the environment variable `SMOOTHCDE_DATA` names, as `UEA/<name>/<name>_TRAIN.ts`,
    then among the sets inside aeon's own package (JapaneseVowels and BasicMotions are there, so they need no download).

    Args:
        name: of the data set, such as "JapaneseVowels".
        split: the archive's "train" or "test" part, or "all", train first.
    """
    if split not in ("train", "test", "all"):
        raise ValueError(f"split is {split!r}; use any of: 'train', 'test', 'all'")
    folder = _folder(name)
    parts = [_read(folder / f"{name}_{part.upper()}.ts") for part in ("train", "test") if split in (part, "all")]
    blocks = [block for series, _ in parts for block in series]
    labels = np.concatenate([labels for _, labels in parts])
    return SeriesSet.from_arrays(blocks), labels


def _folder(name: str) -> Path:
    places = [inside_aeon(name)]
    if root := os.environ.get("SMOOTHCDE_DATA"):
        places.insert(0, Path(root) / "UEA" / name)
    for place in places:
        if (place / f"{name}_TRAIN.ts").exists():
            return place
    raise FileNotFoundError(
        f"{name} was found neither in {' nor in '.join(str(p) for p in places)}. Download it from "
        f"https://www.timeseriesclassification.com, put {name}_TRAIN.ts and {name}_TEST.ts into a folder UEA/{name}, "
        "and point the environment variable SMOOTHCDE_DATA at the folder that holds UEA"
    )


def inside_aeon(name: str) -> Path:
    """Where aeon's package keeps a data set, if it comes with it; found without importing aeon, which is slow."""
    package = find_spec("aeon")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "datasets" / "data" / name


def _read(file: Path) -> tuple[list[np.ndarray], np.ndarray]:
    from aeon.datasets import load_from_ts_file  # slow to import

    series, labels = load_from_ts_file(str(file))[:2]
    return list(series), np.asarray(labels)
