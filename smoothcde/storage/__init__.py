"""Model directories: safetensors and JSON with checksums, written whole or not at all, never pickle."""

from smoothcde.storage.atomic import replace_file
from smoothcde.storage.directory import FORMAT_VERSION, Contents, read_directory, refuse_strangers, write_directory
from smoothcde.storage.errors import ModelFileError, rebuilding

__all__ = [
    "FORMAT_VERSION",
    "Contents",
    "ModelFileError",
    "read_directory",
    "rebuilding",
    "refuse_strangers",
    "replace_file",
    "write_directory",
]
