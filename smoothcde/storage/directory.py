"""The model directory: three files, each with its checksum.

    model/
      manifest.json         what the directory is, its format version, size and SHA-256 of the files, and of itself
      model.json            architecture, preprocessing, labels, versions, training record
      weights.safetensors   the weights

Reading parses JSON and safetensors only: neither can hold code. The names of the files are fixed; nothing that stands
in a file is ever used as a path, a module or a class to import.
"""

import hashlib
import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from smoothcde.storage.atomic import replace_directory
from smoothcde.storage.errors import ModelFileError

FORMAT = "smoothcde model"
FORMAT_VERSION = 1
MANIFEST, DOCUMENT, WEIGHTS = "manifest.json", "model.json", "weights.safetensors"
_AGAIN = "copy the directory again from where it was saved, or save the model again"


@dataclass(frozen=True, eq=False)
class Contents:
    """What a model directory holds: a JSON document and named tensors."""

    document: dict[str, Any]
    tensors: dict[str, Tensor]


def write_directory(directory: str | PathLike[str], contents: Contents) -> None:
    """Write a model directory, whole or not at all; one that is there already is replaced.

    Anything else in the way is left alone: a directory with other files in it is refused.
    """
    refuse_strangers(directory)
    target = Path(directory).expanduser().absolute()
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in contents.tensors.items()}
    try:
        document = _canonical(contents.document)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"the model cannot be written as JSON ({error}); use numbers, text and lists") from error
    files = {DOCUMENT: document, WEIGHTS: safetensors.torch.save(tensors)}
    try:
        replace_directory(target, files | {MANIFEST: _manifest(files)})
    except OSError as error:
        raise ModelFileError(f"the model cannot be saved in '{directory}': {error.strerror or error}") from error


def read_directory(directory: str | PathLike[str]) -> Contents:
    """Read a model directory after checking every byte of it; `ModelFileError` says what is wrong with it."""
    folder = Path(directory).expanduser()
    if not folder.is_dir():
        what = "is a file; give the directory that holds it" if folder.exists() else "does not exist"
        raise ModelFileError(f"the model directory '{directory}' {what}")
    listed = _read_manifest(folder)
    files = {name: _checked(folder, name, listed[name]) for name in (DOCUMENT, WEIGHTS)}
    document = _parse(files[DOCUMENT], folder / DOCUMENT)
    try:
        tensors = safetensors.torch.load(files[WEIGHTS])
    except (safetensors.SafetensorError, ValueError, KeyError, RuntimeError) as error:
        raise ModelFileError(f"'{folder / WEIGHTS}' is not a safetensors file ({error}); {_AGAIN}") from error
    return Contents(document, tensors)


def refuse_strangers(directory: str | PathLike[str]) -> None:
    """Refuse a place for a model directory that holds anything but one."""
    target = Path(directory).expanduser().absolute()
    if not target.exists() and not target.is_symlink():
        return
    if not target.is_dir() or target.is_symlink():
        raise ModelFileError(f"'{directory}' exists and is not a directory; save the model under another name")
    if others := sorted(p.name for p in target.iterdir() if p.name not in (MANIFEST, DOCUMENT, WEIGHTS)):
        raise ModelFileError(
            f"'{directory}' holds other files ({', '.join(others[:3])}{', ...' if len(others) > 3 else ''}); "
            "save the model in a directory of its own"
        )


def _manifest(files: dict[str, bytes]) -> bytes:
    listed = {name: {"bytes": len(content), "sha256": _digest(content)} for name, content in files.items()}
    manifest: dict[str, Any] = {"format": FORMAT, "format_version": FORMAT_VERSION, "files": listed}
    return _canonical(manifest | {"sha256": _digest(_canonical(manifest))})


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    content = _bytes(path)
    manifest = _parse(content, path)
    if manifest.get("format") != FORMAT:
        raise ModelFileError(f"'{path}' does not describe a smoothcde model; is '{folder}' the right directory?")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"'{path}' gives no format version; {_AGAIN}")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"'{folder}' was saved by a newer smoothcde (format {version}; this one reads up to {FORMAT_VERSION}); "
            "upgrade with: pip install --upgrade smoothcde"
        )
    body = {key: value for key, value in manifest.items() if key != "sha256"}
    # Byte for byte as it was written: no flipped bit, however harmless to a JSON parser, goes unnoticed.
    if content != _canonical(manifest) or manifest.get("sha256") != _digest(_canonical(body)):
        raise ModelFileError(f"'{path}' does not match its own checksum: it was damaged or changed; {_AGAIN}")
    files = manifest.get("files")
    if not isinstance(files, dict) or set(files) != {DOCUMENT, WEIGHTS}:
        raise ModelFileError(f"'{path}' must list the files {DOCUMENT} and {WEIGHTS}, and no other; {_AGAIN}")
    return files


def _checked(folder: Path, name: str, expected: Any) -> bytes:
    path = folder / name
    content = _bytes(path)
    if not isinstance(expected, dict) or expected.get("sha256") != _digest(content):
        raise ModelFileError(f"'{path}' does not match its checksum: it was damaged or changed; {_AGAIN}")
    return content


def _bytes(path: Path) -> bytes:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ModelFileError(f"'{path}' is not a plain file; a model directory holds no links and no directories")
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ModelFileError(
            f"'{path.parent}' has no file {path.name}, so the model is incomplete; {_AGAIN}"
        ) from error
    except OSError as error:
        raise ModelFileError(f"'{path}' cannot be read: {error.strerror or error}") from error


def _parse(content: bytes, path: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(content.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"'{path}' is not JSON ({error}); {_AGAIN}") from error
    if not isinstance(parsed, dict):
        raise ModelFileError(f"'{path}' holds {type(parsed).__name__} where an object was expected; {_AGAIN}")
    return parsed


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _canonical(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n").encode("utf-8")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
