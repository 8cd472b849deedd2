"""A stream as a document and tensors, and back."""

from collections.abc import Hashable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from smoothcde.estimators.predictor import Predictor
from smoothcde.storage import Contents, ModelFileError, rebuilding

if TYPE_CHECKING:
    from smoothcde.streaming.predictor import StreamingPredictor

SETTINGS = ("window", "duplicates", "late", "max_observations", "method")
_MODEL, _STATE = "model.", "stream."


def contents_of(stream: "StreamingPredictor") -> Contents:
    """All there is to know about a stream, in the form of a model directory."""
    if odd := [name for name in stream.series if not isinstance(name, str | int) or isinstance(name, bool)]:
        raise ModelFileError(f"series {odd[0]!r} has a name that JSON cannot keep; name series by text or integers")
    about: dict[str, Any] = {name: getattr(stream, name) for name in SETTINGS} | {"series": list(stream.series)}
    if stream._incremental is not None:
        about["anchor"] = stream._incremental.anchor
    model = stream.model.contents()
    tensors = {_MODEL + name: tensor for name, tensor in model.tensors.items()}
    tensors |= {_STATE + name: torch.as_tensor(array) for name, array in _arrays(stream).items()}
    return Contents({"stream": about, "predictor": model.document}, tensors)


def restore(kind: type["StreamingPredictor"], contents: Contents, directory: str | PathLike[str]):
    """The stream of a directory's contents."""
    document = contents.document
    if not isinstance(document.get("stream"), dict) or not isinstance(document.get("predictor"), dict):
        raise ModelFileError(f"'{directory}' holds a model but no stream; load it with Predictor.load")
    tensors = {name.removeprefix(_MODEL): t for name, t in contents.tensors.items() if name.startswith(_MODEL)}
    model = Predictor.of_contents(Contents(document["predictor"], tensors), directory)
    state = {name.removeprefix(_STATE): t for name, t in contents.tensors.items() if name.startswith(_STATE)}
    about = document["stream"]
    with rebuilding("a stream", directory):
        names: list[Hashable] = list(about["series"])
        static = state["static"].numpy() if "static" in state else None
        stream = kind(model, series=names, static=static, **{name: about[name] for name in SETTINGS})
        _fill(stream, {name: tensor.numpy() for name, tensor in state.items()}, about)
    return stream


def _arrays(stream: "StreamingPredictor") -> dict[str, Any]:
    history, incremental = stream._history, stream._incremental
    arrays: dict[str, Any] = {"dropped": stream.dropped, "first": history.first, "last": history.last}
    arrays |= {"newest": history.newest, "times": history.times}
    arrays |= {f"column.{name}": column for name, column in history.columns.items()}
    if stream.static is not None:
        arrays["static"] = stream.static
    if incremental is not None and incremental.scores is not None:
        arrays["edge"] = incremental.scores.edge
    if incremental is not None and incremental.panels is not None:
        panels = incremental.panels
        arrays |= {"panels.index": panels.index, "panels.sums": panels.sums, "panels.peak": panels.peak}
    return arrays


def _fill(stream: "StreamingPredictor", state: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """Put saved arrays in the place of a fresh stream's, after checking that they belong there."""
    history, incremental = stream._history, stream._incremental
    slots = state["times"].shape[1]
    _check(state["times"], (len(stream.series), slots), np.float64, "times")
    for name, fresh in (("dropped", stream.dropped), ("first", history.first), ("last", history.last)):
        _check(state[name], fresh.shape, fresh.dtype, name)
    _check(state["newest"], history.newest.shape, np.float64, "newest")
    first, last = state["first"], state["last"]
    if not ((first >= 0) & (first <= last) & (last <= slots)).all():
        raise ValueError("stamps outside their slots")
    for name, fresh in history.columns.items():
        _check(state[f"column.{name}"], (len(stream.series), slots, fresh.shape[2]), fresh.dtype, name)
    # Copies: what was read from a file may lie in memory that cannot be written to.
    stream.dropped = state["dropped"].copy()
    history.first, history.last, history.newest = first.copy(), last.copy(), state["newest"].copy()
    history.times = state["times"].copy()
    history.columns = {name: state[f"column.{name}"].copy() for name in history.columns}
    if incremental is None:
        return
    incremental.anchor = float(about["anchor"])
    if incremental.scores is not None:
        _check(state["edge"], incremental.scores.edge.shape, np.float64, "edge")
        incremental.scores.edge = state["edge"].copy()
    if "panels.index" in state:
        panels = incremental.start_panels()
        _check(state["panels.index"], panels.index.shape, np.int64, "panels")
        for name, fresh in (("sums", panels.sums), ("peak", panels.peak)):
            _check(state[f"panels.{name}"], tuple(fresh.shape), np.float64, name)
        panels.index = state["panels.index"].copy()
        panels.sums = torch.from_numpy(state["panels.sums"].copy()).to(panels.sums.device)
        panels.peak = torch.from_numpy(state["panels.peak"].copy()).to(panels.peak.device)


def _check(array: np.ndarray, shape: tuple[int, ...], dtype: Any, name: str) -> None:
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name} has shape {array.shape} of {array.dtype}, expected {shape} of {np.dtype(dtype)}")
