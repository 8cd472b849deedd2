"""A scoring graph as a torch program (`torch.export`), and as a .pt2 file."""

import io
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smoothcde.estimators import Predictor
from smoothcde.estimators.documents import versions
from smoothcde.estimators.labels import labels_to_json
from smoothcde.export.graph import ScoringGraph
from smoothcde.series import SeriesSet
from smoothcde.series.problems import counted
from smoothcde.storage import replace_file

OUTPUTS = ("answers", "error_ratio", "outside")


def example_inputs(graph: ScoringGraph, n: int = 3) -> dict[str, Tensor]:
    """Inputs of the right shapes, to trace with."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(n, graph.length, graph.model.channels, generator=generator, dtype=torch.float64)
    times = torch.linspace(0, graph.longest, graph.length, dtype=torch.float64).expand(n, -1).contiguous()
    found = {
        "values": values,
        "times": times,
        "mask": torch.ones(values.shape[:2] if graph.together else values.shape, dtype=torch.bool),
        "lengths": torch.full((n,), graph.length),
        "start": torch.zeros(n, dtype=torch.float64),
        "end": torch.full((n,), graph.longest, dtype=torch.float64),
    }
    if graph.model.static:
        found["static"] = torch.randn(n, graph.model.static, generator=generator, dtype=torch.float64)
    return {name: tensor.to(graph.channel_mean.device) for name, tensor in found.items()}


def graph_inputs(graph: ScoringGraph, series: SeriesSet) -> dict[str, np.ndarray]:
    """Series as a graph takes them, in their own units; `SeriesSet` has them in the model's channels and order."""
    batch = series.batch(dtype=torch.float64)
    _, stamps, channels = batch.values.shape
    if stamps > graph.length:
        raise ValueError(
            f"a series has {stamps} stamps and the graph was made for {graph.length}; thin it out, shorten its window, "
            "or export again with a larger length"
        )
    if channels != graph.model.channels:
        raise ValueError(
            f"the graph was made for {counted(graph.model.channels, 'channel')}; the series have {channels}"
        )
    if graph.together and not batch.together:
        raise ValueError(
            "the graph was made for channels that are observed together, and these are not; "
            "export again with together=False"
        )
    pad = graph.length - stamps
    values = torch.nn.functional.pad(batch.values, (0, 0, 0, pad))
    mask = torch.nn.functional.pad(batch.mask, (0, 0, 0, pad))
    found = {
        "values": values,
        "times": torch.nn.functional.pad(batch.times + batch.origin[:, None], (0, pad)),
        "mask": mask[:, :, 0] if graph.together else mask,
        "lengths": batch.lengths.long(),
        "start": batch.origin,
        "end": batch.origin + batch.end,
    }
    if graph.model.static:
        if batch.static is None:
            raise ValueError(
                f"the graph needs {counted(graph.model.static, 'static feature')}; give them with the series"
            )
        found["static"] = batch.static
    return {name: tensor.numpy() for name, tensor in found.items()}


def traced(graph: ScoringGraph) -> torch.export.ExportedProgram:
    """The graph, traced for any number of series."""
    inputs = example_inputs(graph)
    batch = torch.export.Dim("batch", min=1)
    with torch.no_grad():
        return torch.export.export(
            graph.eval(),
            (),
            kwargs=inputs,
            dynamic_shapes={name: {0: batch} for name in inputs},
            prefer_deferred_runtime_asserts_over_guards=True,
        )


def export_torch(
    predictor: Predictor,
    file: str | PathLike[str],
    *,
    length: int,
    longest: float | None = None,
    together: bool = False,
) -> ScoringGraph:
    """Write a predictor on frozen steps as a torch program; see `export_onnx` for what it takes and gives.

    ```python
    export_torch(predictor.frozen(train), "model.pt2", length=315)
    program = torch.export.load("model.pt2").module()
    ```
    """
    graph = ScoringGraph(predictor, length, longest, together)
    program = io.BytesIO()
    about = {"smoothcde.json": json.dumps(described(predictor, graph))}
    torch.export.save(traced(graph), program, extra_files=about)
    replace_file(Path(file), program.getvalue())
    return graph


def described(predictor: Predictor, graph: ScoringGraph) -> dict[str, str]:
    """What whoever runs a graph needs to know, for its file: text by name, lists as JSON."""
    assert predictor.plan is not None  # or there were no graph
    together = "[batch, length]" if graph.together else "[batch, length, channels]"
    about: dict[str, Any] = {
        "producer": f"smoothcde {versions()['smoothcde']}",
        "task": predictor.task,
        "labels": None if predictor.labels is None else labels_to_json(predictor.labels),
        "targets": list(predictor.target_names),
        "channels": list(predictor.channel_names),
        "static": list(predictor.static_names),
        "length": graph.length,
        "longest_window": graph.longest,
        "channels_observed_together": graph.together,
        "solver": predictor.plan.solver,
        "rtol": predictor.plan.rtol,
        "atol": predictor.plan.atol,
        "steps": list(predictor.plan.steps),
        "inputs": {
            "values": f"float64 [batch, {graph.length}, channels], own units, any number where nothing was observed",
            "times": f"float64 [batch, {graph.length}], increasing over the first `lengths`, all inside the window",
            "mask": f"bool {together}, True where observed",
            "lengths": "int64 [batch], stamps of each series; what is behind them is padding",
            "start": "float64 [batch], where each window begins: the first stamp unless declared",
            "end": "float64 [batch], where it ends, the moment of the prediction: the last stamp unless declared",
            "static": "float64 [batch, features], only for models with static features",
        },
        "outputs": {
            "answers": "float64 [batch, classes] calibrated probabilities in the order of `labels`, or targets",
            "error_ratio": "float64 [batch], largest error estimate over the plan's limit",
            "outside": "bool [batch], error_ratio above 1: do not trust the answer, ask the adaptive solver",
        },
        "versions": versions(),
    }
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in about.items()}
