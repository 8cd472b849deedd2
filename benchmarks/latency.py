"""Latency of one series at the size of UWaveGestureLibrary, here and in every peer, on one core.

    python -m benchmarks.latency

Adaptive steps on each side, and frozen ones: smoothcde's plan in eager torch, as a traced program and in onnxruntime,
and the very same steps in diffrax through `StepTo`. Weights as drawn, the paper's tolerance.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.entries import ENTRIES, OurEntry
from benchmarks.machine import described
from benchmarks.record import write
from benchmarks.reference import Reference
from benchmarks.settings import SETTINGS, Work
from benchmarks.timing import interleaved
from smoothcde import ChannelScaler, FrozenModel, Predictor, StepPlan
from smoothcde.export import ScoringGraph, export_onnx, graph_inputs, traced

ROUNDS = 100
CALIBRATION = 264
LEFT_OUT = ("smoothcde, adjoint", "paper's stack, as published, adjoint", "paper's stack, adjoint")
"""A forward pass knows nothing of gradients: these are what their siblings are."""


def single_core() -> None:
    """Before anything has started threads: pools of torch, XLA and onnxruntime are sized by what they find."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    torch.set_num_threads(1)


def logits_of(probabilities: np.ndarray) -> np.ndarray:
    """Up to a constant per row, which errors are not to see."""
    logs = np.log(probabilities)
    return logs - logs.mean(axis=1, keepdims=True)


def frozen_entries(work: Work, one: Work, plan: StepPlan, folder: Path) -> dict[str, Callable[[], np.ndarray]]:
    """Logits of one series by fixed steps, each way; those of graphs up to a constant."""
    import onnxruntime

    setting, batch = work.setting, one.batch()
    channels = np.zeros(setting.channels), np.ones(setting.channels)
    predictor = Predictor(
        "classification",
        {"outputs": setting.classes},
        work.model,
        ChannelScaler(*channels),  # the series are standardised already
        work.series.channel_names,
        labels=np.arange(setting.classes),
        plan=plan,
    )
    frozen = FrozenModel(work.model, plan)
    graph = ScoringGraph(predictor, setting.length, together=True)
    arrays = graph_inputs(graph, one.series)
    tensors = {name: torch.as_tensor(array) for name, array in arrays.items()}
    program = traced(graph).module()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    export_onnx(predictor, folder / "model.onnx", length=setting.length, together=True)
    session = onnxruntime.InferenceSession(folder / "model.onnx", options)
    return {
        "smoothcde, frozen, eager": lambda: frozen(batch).numpy(),
        "smoothcde, frozen, torch.export": lambda: logits_of(program(**tensors)[0].numpy()),
        "smoothcde, frozen, onnxruntime": lambda: logits_of(session.run(None, arrays)[0]),
        "diffrax, the same steps (StepTo)": _step_to(one, plan),
    }


def _step_to(one: Work, plan: StepPlan) -> Callable[[], np.ndarray]:
    from benchmarks.diffrax_stack import Compiled, DiffraxMVC, array_of

    model = DiffraxMVC(one.setting, most_steps=max(plan.steps) + 1)
    weights = array_of({name: p.detach().numpy() for name, p in one.model.named_parameters()})
    x = one.values()
    call = Compiled(lambda weights, x: model.follow(weights, x, plan.ends), weights, x)
    return lambda: np.asarray(call(weights, x))


def measure(rounds: int) -> dict[str, Any]:
    """Milliseconds and errors of each way."""
    work = Work.of(SETTINGS["UWaveGestureLibrary"], CALIBRATION)
    one = work.part(np.arange(1))
    exact = Reference.of(one).outputs
    plan = StepPlan.calibrate(work.model, work.series)
    adaptive = {name: make(one) for name, make in ENTRIES.items() if name not in LEFT_OUT}
    entries: dict[str, Callable[[], np.ndarray]] = {name: entry.infer for name, entry in adaptive.items()}
    with tempfile.TemporaryDirectory() as folder:
        entries |= frozen_entries(work, one, plan, Path(folder))
    found: dict[str, dict[str, Any]] = {}
    with torch.no_grad():
        for name, call in entries.items():
            outputs = call()
            apart = (outputs - outputs.mean(axis=1, keepdims=True)) - (exact - exact.mean(axis=1, keepdims=True))
            found[name] = {"largest error": float(np.abs(apart).max())}
            assert found[name]["largest error"] < 0.02, f"{name} is {found[name]['largest error']} off"
        timed = interleaved(entries, rounds)
    for name, seconds in timed.items():
        found[name] |= {"median": 1e3 * float(np.median(seconds)), "p99": 1e3 * float(np.quantile(seconds, 0.99))}
        print(f"{name:>40}: {found[name]['median']:7.2f} ms, p99 {found[name]['p99']:7.2f} ms", flush=True)
    for name, entry in adaptive.items():
        found[name]["evaluations"] = entry.counts().computed
        found[name]["compile"] = entry.compile_seconds
    assert isinstance(adaptive["smoothcde"], OurEntry)
    head = {"data": work.source, "rounds": rounds, "tolerance": work.setting.tolerance, **described()}
    return head | {"steps of the plan": plan.steps, "covered by the plan": plan.covered, "entries": found}


def run(rounds: int | None = None) -> None:
    """Measure; written down only with all rounds."""
    single_core()
    report = measure(rounds or ROUNDS)
    if rounds is None:
        write("latency", report)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="fewer than usual; results are then not written")
    run(parser.parse_args().rounds)
