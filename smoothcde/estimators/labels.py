"""Class labels as JSON and back, with the types they had."""

from typing import Any

import numpy as np

from smoothcde.storage import ModelFileError

_NUMBERS = ("bool", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)), "float16", "float32", "float64")
_PLAIN = (bool, int, float, str)


def labels_to_json(labels: np.ndarray) -> dict[str, Any]:
    """Labels with their type; text, whole numbers, booleans and floating-point numbers can be written."""
    if labels.dtype.kind == "U":
        return {"dtype": "str", "values": labels.tolist()}
    if labels.dtype.name in _NUMBERS:
        return {"dtype": labels.dtype.name, "values": labels.tolist()}
    values = [label.item() if isinstance(label, np.generic) else label for label in labels.tolist()]
    if wrong := [label for label in values if type(label) not in _PLAIN]:
        raise ModelFileError(
            f"label {wrong[0]!r} is a {type(wrong[0]).__name__}; labels in a model file are text or numbers: "
            "convert them before `fit`"
        )
    return {"dtype": "object", "values": values}


def labels_from_json(entry: Any) -> np.ndarray:
    """The labels that `labels_to_json` wrote."""
    values, dtype = entry["values"], entry["dtype"]
    if dtype not in (*_NUMBERS, "str", "object") or not isinstance(values, list) or not values:
        raise ValueError(f"labels of type {dtype!r}")
    if any(type(value) not in _PLAIN for value in values):
        raise ValueError("labels that are neither text nor numbers")
    if dtype == "object":
        labels = np.empty(len(values), dtype=object)
        labels[:] = values
        return labels
    labels = np.array(values, dtype=dtype)
    if labels.tolist() != values:
        raise ValueError(f"labels that are not of type {dtype}")
    return labels
