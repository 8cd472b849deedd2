"""Files and directories that appear whole or not at all."""

import ctypes
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def replace_file(target: Path, content: bytes) -> None:
    """Make `target` a file of these bytes: written beside it, flushed to the disk, and renamed.

    The temporary name is fixed: what a killed process leaves there, the next one overwrites.
    """
    fresh = target.with_name(f".{target.name}.tmp")
    try:
        with open(fresh, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)


def replace_directory(target: Path, files: Mapping[str, bytes]) -> None:
    """Make `target` a directory of exactly these files.

    They are written to a temporary sibling, flushed to the disk, and moved into place by one rename. Whoever looks, or
    whatever crashes, meanwhile finds the old directory or the new one.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.parent / f".{target.name}.{secrets.token_hex(6)}.tmp"
    fresh.mkdir()
    try:
        for name, content in files.items():
            with open(fresh / name, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _flush_directory(fresh)
        if target.exists():
            _exchange(fresh, target)
        else:
            os.rename(fresh, target)
        _flush_directory(target.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # what is left there: an unfinished attempt, or what was replaced


def _exchange(fresh: Path, target: Path) -> None:
    """Swap two directories, in one step where the system can (Linux)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        done = rename(_AT_FDCWD, os.fsencode(fresh), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE) == 0
    except (AttributeError, OSError, TypeError):
        done = False
    if done:
        return
    # Elsewhere in two: for a moment there is no `target`, and a crash then leaves the old one beside it.
    old = fresh.with_suffix(".old")
    os.rename(target, old)
    try:
        os.rename(fresh, target)
    except OSError:
        os.rename(old, target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _flush_directory(directory: Path) -> None:
    if os.name == "nt":  # Windows cannot open directories, and flushes renames itself
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
