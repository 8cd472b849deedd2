"""What is raised when a model directory cannot be read or written."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike


class ModelFileError(ValueError):
    """A model directory that is missing, damaged, of a newer format, or not one at all; the message says which."""


@contextmanager
def rebuilding(what: str, directory: str | PathLike[str]) -> Iterator[None]:
    """Turns whatever goes wrong between a directory's contents and `what` they describe into a `ModelFileError`.

    Checksums held by then, so somebody wrote it like this: a model of other code, or of ill will.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ModelFileError(
            f"'{directory}' does not describe {what} that this version of smoothcde can build ({reason}); "
            "load it with the version it was saved with, which its model.json tells"
        ) from error
