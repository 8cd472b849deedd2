"""Latency of one series at the size of UWaveGestureLibrary: adaptive, frozen, traced and in onnxruntime.

    python -m benchmarks.latency MODEL

MODEL is a model directory with frozen steps for series of 3 channels and 315 stamps (`Predictor.frozen(...).save`).
Real UWave series where `SMOOTHCDE_DATA` holds them, otherwise generated ones. Every entry in every round.
"""

import json
import platform
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.timing import interleaved
from benchmarks.training_step import LENGTH, uwave
from smoothcde import FrozenModel, Predictor
from smoothcde.export import ScoringGraph, export_onnx, traced
from smoothcde.export.program import graph_inputs

ROUNDS = 100
RESULT = Path(__file__).parent / "results" / "latency.json"


def main() -> None:
    import onnxruntime

    torch.set_num_threads(1)
    predictor = Predictor.load(sys.argv[1])
    assert predictor.plan is not None, "the model has no frozen steps"
    series, _, source = uwave()
    one = predictor.scaler.inverse(series[[0]])
    batch = series[[0]].batch()
    frozen = FrozenModel(predictor.model, predictor.plan)
    graph = ScoringGraph(predictor, LENGTH, together=True)
    arrays = graph_inputs(graph, one)
    tensors = {name: torch.as_tensor(array) for name, array in arrays.items()}
    program = traced(graph).module()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        export_onnx(predictor, Path(folder) / "model.onnx", length=LENGTH, together=True)
        session = onnxruntime.InferenceSession(Path(folder) / "model.onnx", settings)
    entries = {
        "adaptive": lambda: predictor.model(batch),
        "frozen, eager": lambda: frozen(batch),
        "frozen, torch.export": lambda: program(**tensors),
        "frozen, onnxruntime": lambda: session.run(None, arrays),
    }
    with torch.no_grad():
        difference = float(np.abs(session.run(None, arrays)[0] - graph(**tensors)[0].numpy()).max())
        timed = interleaved(entries, ROUNDS)
    milliseconds = {
        name: {"median": float(np.median(s) * 1e3), "p99": float(np.quantile(s, 0.99) * 1e3)}
        for name, s in timed.items()
    }
    for name, found in milliseconds.items():
        print(f"{name:>24}: {found['median']:7.2f} ms, p99 {found['p99']:7.2f} ms")
    report = {
        "data": source,
        "rounds": ROUNDS,
        "threads": 1,
        "steps": predictor.plan.steps,
        "tolerance": predictor.plan.rtol,
        "onnxruntime against torch, largest difference": difference,
        "milliseconds": milliseconds,
        "torch": torch.__version__,
        "onnxruntime": onnxruntime.__version__,
        "machine": platform.machine(),
    }
    RESULT.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
