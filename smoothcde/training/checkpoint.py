"""Checkpoints: where a run stands, in one file that is replaced whole.

A safetensors file with the tensors (weights, the best weights so far, the optimiser's moments) and, as JSON in its
header, everything else. One file, because two could disagree after a crash between them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from smoothcde.series import SeriesSet
from smoothcde.storage import replace_file
from smoothcde.training.errors import CheckpointError
from smoothcde.training.recipes import Recipe

FILE = "checkpoint.safetensors"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where a run stands.

    Attributes:
        run: what the run is, by `identity_of`; only the same run goes on from here.
        state: what is not a tensor, as JSON knows it.
        tensors: by name.
    """

    run: dict[str, Any]
    state: dict[str, Any]
    tensors: dict[str, Tensor]

    def save(self, directory: Path) -> None:
        """Replace the directory's checkpoint; a crash meanwhile leaves the old one."""
        tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in self.tensors.items()}
        header = {"run": self.run, "state": self.state, "sha256": _digest(tensors)}
        replace_file(directory / FILE, safetensors.torch.save(tensors, {"smoothcde": json.dumps(header)}))

    @classmethod
    def load(cls, directory: Path) -> "Checkpoint | None":
        """The directory's checkpoint, None if it has none."""
        file = directory / FILE
        if not file.exists():
            return None
        try:
            with safetensors.safe_open(file, framework="pt") as opened:
                header = json.loads(opened.metadata()["smoothcde"])
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (not a mapping)
            found = cls(header["run"], header["state"], tensors)
            whole = header["sha256"] == _digest(tensors)
        except (safetensors.SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"'{file}' is no checkpoint of a training run; delete it to start anew") from error
        if not whole:
            raise CheckpointError(f"'{file}' is damaged (its checksum does not match); delete it to start anew")
        return found

    def check_run(self, run: Mapping[str, Any], directory: Path) -> None:
        """Refuse to go on with a run that began otherwise."""
        differences = [
            f"{name} was {old!r} and is {run[name]!r}" if name.startswith("recipe.") else f"{name} differ"
            for name, old in self.run.items()
            if run.get(name) != old
        ]
        if differences:
            raise CheckpointError(
                f"'{directory}' holds a run that began otherwise: {'; '.join(differences)}; "
                "give the arguments of that run to go on with it, or another directory, or delete this one"
            )


def identity_of(
    model: nn.Module,
    recipe: Recipe,
    objective: Any,
    data: Mapping[str, tuple[SeriesSet, np.ndarray, np.ndarray | None] | None],
) -> dict[str, Any]:
    """What makes a run this run: recipe, shapes and settings of the model, objective, and fingerprints of all data."""
    settings = json.loads(json.dumps(asdict(recipe), default=str))
    shapes = [(name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in model.state_dict().items()]
    identity = {f"recipe.{name}": value for name, value in settings.items()}
    identity["weights of the model"] = hashlib.sha256(repr(shapes).encode()).hexdigest()
    identity["settings of the model"] = hashlib.sha256(repr(_settings(model)).encode()).hexdigest()
    identity["objectives"] = f"{type(objective).__name__} {objective.metric}"
    identity["settings of the objective"] = repr(_plain_attributes(objective))
    return identity | {f"{name} data": None if part is None else fingerprint(*part) for name, part in data.items()}


def _settings(model: nn.Module) -> list[Any]:
    """What the weights do not tell of a model: kinds of its parts, their attributes, and constant tensors."""
    parts = [(name, type(part).__qualname__, _plain_attributes(part)) for name, part in model.named_modules()]
    return [*parts, *((name, buffer.detach().cpu().tolist()) for name, buffer in model.named_buffers())]


def _plain_attributes(thing: Any) -> list[tuple[str, str]]:
    """Public attributes that are numbers, text, or made of these: they look the same in every process."""
    attributes = vars(thing) if hasattr(thing, "__dict__") else {}
    return sorted(
        (name, repr(value))
        for name, value in attributes.items()
        if not name.startswith("_") and name != "training" and _is_plain(value)
    )


def _is_plain(value: Any) -> bool:
    if is_dataclass(value):
        return all(_is_plain(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def fingerprint(series: SeriesSet, targets: Any, weights: np.ndarray | None = None) -> str:
    """A name for series with their targets and weights that no others have."""
    digest = hashlib.sha256(repr((series.ids, series.channel_names, series.static_names)).encode())
    arrays = [getattr(series, field.name) for field in fields(series)]
    for array in (*arrays, np.asarray(targets), None if weights is None else np.asarray(weights)):
        if isinstance(array, np.ndarray):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(
                np.ascontiguousarray(array).tobytes() if array.dtype != object else repr(array.tolist()).encode()
            )
    return digest.hexdigest()


def _digest(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
