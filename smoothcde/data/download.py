"""Downloads of known data sets: checked, unpacked with suspicion, there whole or not at all."""

import logging
import os
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import pooch
import requests
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from smoothcde.checks import check_known
from smoothcde.data.known import KNOWN, KnownData, Remote, data_folder

_SECONDS = 30
"""Without a word from the other side, before a download is given up."""


class DownloadError(OSError):
    """A data set that could not be downloaded, or is not what it should be."""


def fetch(name: str, progress: bool = True) -> Path:
    """The folder of a known data set, downloaded if it is not there yet.

    What is there already is neither downloaded nor checked again. Files of known SHA-256 are checked; of others a
    warning says that they were not.

    ```python
    from smoothcde.data import fetch, load_ett

    fetch("ETTm1")                          # 10 MB into the data folder, once
    recording = load_ett("ETTm1")
    ```

    Args:
        name: as `smoothcde datasets` lists it.
        progress: whether a bar is shown on standard error.
    """
    check_known("data set", name, KNOWN)
    data = KNOWN[name]
    place, folder = data.own_place, data.folder
    needed = [remote for remote in data.remotes if remote.file and not (place / remote.file).exists()]
    if folder is None:
        needed += [remote for remote in data.remotes if remote.file is None]
    for remote in needed if folder in (None, place) else ():
        _bring(data, remote, place, progress)
    return data.located()


def _bring(data: KnownData, remote: Remote, place: Path, progress: bool) -> None:
    """Download into the data folder, so that what comes out right can be moved into place in one step."""
    root = data_folder()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        work = tempfile.TemporaryDirectory(prefix=".download-", dir=root)
    except OSError as error:
        remedy = "point the environment variable SMOOTHCDE_DATA at a folder of yours"
        raise DownloadError(f"the data folder '{root}' cannot be written ({error.strerror}); {remedy}") from error
    with work as folder:
        fresh = Path(folder) / PurePosixPath(remote.address).name
        _download(data, remote, fresh, place, progress)
        if remote.file is not None:
            place.mkdir(parents=True, exist_ok=True)
            os.replace(fresh, place / remote.file)
            return
        unpacked = Path(folder) / "unpacked"
        unpacked.mkdir()
        try:
            unpack(fresh, unpacked, remote.wanted)
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError, OSError) as error:
            raise DownloadError(
                f"the archive of {data.name} from {remote.address} could not be unpacked ({error}); nothing was kept"
            ) from error
        _move_in(_holding(data, unpacked, remote), place)


def _download(data: KnownData, remote: Remote, fresh: Path, place: Path, progress: bool) -> None:
    there = f"in '{place}'"
    by_hand = f"or {data.by_hand(there)}"
    try:
        with _bar(fresh.name, progress) as bar, _quiet():
            downloader: Any = pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 16, timeout=_SECONDS)
            pooch.retrieve(remote.address, remote.sha256, fresh.name, fresh.parent, downloader=downloader)
    except requests.RequestException as error:
        reason = f"answer {error.response.status_code}" if error.response is not None else "no connection"
        raise DownloadError(
            f"{data.name} could not be downloaded from {remote.address} ({reason}); "
            f"check the connection and try again, {by_hand}"
        ) from error
    except ValueError as error:  # of pooch, when the sum is another
        raise DownloadError(
            f"what came from {remote.address} does not have the SHA-256 {remote.sha256}, so it was changed or damaged; "
            f"nothing was kept. Try again, {by_hand}"
        ) from error
    if remote.sha256 is None:
        found = pooch.file_hash(str(fresh))
        warnings.warn(f"{fresh.name} was not checked: no SHA-256 is known for it. It has {found}", stacklevel=4)


def unpack(archive: Path, folder: Path, wanted: str = "*") -> None:
    """Unpack a zip or tar archive below a folder; an archive that reaches outside of it is refused."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as stream:
            for member in stream.infolist():
                if not (folder / member.filename).resolve().is_relative_to(folder.resolve()):
                    raise ValueError(f"it holds {member.filename!r}, which leads outside")
                if fnmatch(member.filename, wanted):
                    stream.extract(member, folder)
        return
    with tarfile.open(archive) as stream:
        for member in stream:
            if fnmatch(member.name, wanted):
                stream.extract(member, folder, filter="data")


def _holding(data: KnownData, unpacked: Path, remote: Remote) -> Path:
    """Where in an unpacked archive the files of the set are: at its top, or in a folder of it."""
    for folder in (unpacked, *sorted(path for path in unpacked.rglob("*") if path.is_dir())):
        if all((folder / file).exists() for file in data.files):
            return folder
    raise DownloadError(f"the archive from {remote.address} does not hold {' and '.join(data.files)}; nothing was kept")


def _move_in(found: Path, place: Path) -> None:
    if not place.exists():
        os.replace(found, place)
        return
    for entry in found.iterdir():  # a folder with something in it keeps what it has
        if not (place / entry.name).exists():
            os.replace(entry, place / entry.name)


class _Bar:
    """A bar of rich's, as pooch moves it."""

    def __init__(self, name: str):
        columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
        self.shown = Progress(*columns, console=Console(stderr=True))
        self._task = self.shown.add_task(name, total=None)

    @property
    def total(self) -> float:
        return self.shown.tasks[0].total or 0

    @total.setter
    def total(self, total: int) -> None:
        self.shown.update(self._task, total=total or None)

    def update(self, size: int) -> None:
        self.shown.advance(self._task, size)

    def reset(self) -> None:
        self.shown.reset(self._task)

    def close(self) -> None:
        self.shown.stop()


@contextmanager
def _bar(name: str, progress: bool) -> Iterator[Any]:
    if not progress:
        yield False
        return
    bar = _Bar(name)
    with bar.shown:
        yield bar


@contextmanager
def _quiet() -> Iterator[None]:
    """Without pooch's own messages, which speak of its arguments."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
