"""What the documents of saved models share: statistics, names, versions and weights, as JSON and back."""

import platform
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import numpy as np
import torch

from smoothcde.data import ChannelScaler
from smoothcde.estimators.scaling import ColumnScaler
from smoothcde.models import SeriesModel

Built = TypeVar("Built", bound=SeriesModel)


def versions() -> dict[str, str]:
    """What is running: Python and the packages that decide a result."""
    found = {"python": platform.python_version()}
    for package in ("smoothcde", "torch", "numpy", "scipy", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    return found


def rebuilt(build: Callable[[], Built], dtype: Any, tensors: Mapping[str, torch.Tensor]) -> Built:
    """A model with the weights it was saved with.

    Args:
        build: makes it, with any weights.
        dtype: "float32" or "float64".
        tensors: the weights.
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"there are no models of type {dtype!r}")
    with torch.device("meta"):  # shapes only: a description that asks for terabytes fails before it takes them
        _check_fit(build(), tensors)
    with torch.random.fork_rng(devices=[]):  # whoever loads a model keeps their own random numbers
        model = build()
    if dtype != "float32":  # what is made in float64, such as bandwidths, must not pass through float32
        model.to(getattr(torch, dtype))
    model.load_state_dict(tensors)
    model.eval()
    return model


def _check_fit(model: SeriesModel, tensors: Mapping[str, torch.Tensor]) -> None:
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            raise ValueError(f"weight {name} has shape {found.get(name)}, the architecture asks for {wanted.get(name)}")


def plain(value: Any) -> Any:
    """A value as JSON knows it; what is not a finite number becomes null, other objects their text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def scaler_to_json(scaler: ChannelScaler | ColumnScaler) -> dict[str, Any]:
    """Statistics as JSON."""
    return {"mean": scaler.mean.tolist(), "scale": scaler.scale.tolist()}


def scaler_from_json(entry: Mapping[str, Any], kind: Callable[[np.ndarray, np.ndarray], Any]) -> Any:
    """What `scaler_to_json` wrote, checked."""
    mean, scale = (np.array(entry[key], dtype=np.float64) for key in ("mean", "scale"))
    if mean.ndim != 1 or mean.shape != scale.shape or not (np.isfinite(mean).all() and (scale > 0).all()):
        raise ValueError("statistics that cannot standardise anything")
    return kind(mean, scale)


def names_from_json(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Names, checked to be text."""
    if not all(isinstance(name, str) for name in entry["names"]):
        raise ValueError("names that are not text")
    return tuple(entry["names"])
