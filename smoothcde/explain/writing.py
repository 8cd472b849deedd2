"""A text file that appears whole or not at all."""

import os
import secrets
from pathlib import Path


def write_text(target: Path, text: str) -> Path:
    """Write to a temporary sibling, flush it to the disk, and rename: a crash leaves the old file, if there was one."""
    if target.is_dir():
        raise IsADirectoryError(f"'{target}' is a directory; give the name of a file, such as '{target / 'page.html'}'")
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.parent / f".{target.name}.{secrets.token_hex(6)}.tmp"
    try:
        with open(fresh, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)
    return target
