"""What is raised when a model directory cannot be read or written."""


class ModelFileError(ValueError):
    """A model directory that is missing, damaged, of a newer format, or not one at all; the message says which."""
