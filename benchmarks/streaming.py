"""What a stream costs: latency of update + predict, remembered against fitted anew, and memory over many updates.

python -m benchmarks.streaming                 # UWaveGestureLibrary below SMOOTHCDE_DATA, generated gestures without

An untrained mvc-gp of the default size: time depends on its shape, its paths and its tolerances.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import torch

from smoothcde import ChannelScaler, Predictor, SeriesSet, StreamingPredictor, build_model, load_uea
from smoothcde.estimators.architecture import VIEWS

RESULT = Path(__file__).parent / "results" / "streaming.json"
SPAN = 314.0


def gestures() -> tuple[np.ndarray, str]:
    """`[stamps, 3]`: recordings of 315 stamps one after the other."""
    try:
        return load_uea("UWaveGestureLibrary", "all")[0].values, "UWaveGestureLibrary"
    except FileNotFoundError:
        t = np.arange(315 * 440)[:, None]
        noise = np.random.default_rng(0).normal(size=(len(t), 3))
        return np.sin(t / np.array([17.0, 29.0, 41.0])) + 0.1 * noise, "generated gestures of UWave's shape"


def predictor(values: np.ndarray) -> Predictor:
    """The default classifier's architecture, scaled to the data."""
    architecture = {"name": "mvc-gp", "channels": 3, "outputs": 8, "time_scale": SPAN, "bandwidths": list(VIEWS)}
    architecture |= {"hidden": 64, "width": 64, "encoder_width": 64, "time_channel": True, "rtol": 1e-2, "atol": 1e-2}
    torch.manual_seed(0)
    series = SeriesSet.from_arrays([values.T])
    scaler = ChannelScaler.fit(series)
    model = build_model(**architecture)
    labels = np.arange(8)
    return Predictor("classification", architecture, model, scaler, series.channel_names, labels=labels)


@dataclass
class Case:
    """Some series at some rate.

    Attributes:
        series: how many.
        stamps: per window.
        even: stamps of all series at the same moments; else each at its own.
        rounds: timed updates with prediction.
    """

    series: int
    stamps: int
    even: bool
    rounds: int


CASES = {
    "1 series, 315 stamps": Case(1, 315, True, 100),
    "1 series, 3,000 stamps": Case(1, 3_000, True, 30),
    "1 series, 20,000 stamps": Case(1, 20_000, True, 15),
    "1,000 series, 315 stamps, common": Case(1_000, 315, True, 5),
    "1,000 series, 315 stamps, own": Case(1_000, 315, False, 5),
}


def streams(model: Predictor, case: Case) -> dict[str, StreamingPredictor]:
    made = {}
    for name, method, panels in (
        ("refit", "refit", None),
        ("remembered scores", "incremental", False),
        ("remembered scores and panels", "incremental", True),
    ):
        made[name] = StreamingPredictor(model, SPAN, case.series, method=method, max_observations=10**6)
        if made[name]._incremental is not None:
            made[name]._incremental.use_panels = panels
    return made


def latency(model: Predictor, values: np.ndarray, case: Case) -> dict[str, dict[str, float]]:
    """Milliseconds per update + predict, each way in each round.

    Processor time stands beside the clock's: on a machine that others use too, it is the one to compare.
    """
    generator = np.random.default_rng(0)
    step = SPAN / (case.stamps - 1)
    ways = streams(model, case)
    begin = generator.integers(0, len(values), size=case.series)

    def stamps(k: int) -> tuple[np.ndarray, np.ndarray]:
        shift = 0.0 if case.even else generator.uniform(0, step, size=case.series)
        # Denser stamps sample the same gestures: the paths, and so the solves, stay alike.
        place = (begin + int(k * 315 / case.stamps)) % len(values)
        return np.full(case.series, k * step) + shift, values[place] + 0.01 * generator.normal(size=(case.series, 3))

    past = [stamps(k) for k in range(case.stamps)]
    times, numbers = np.concatenate([t for t, _ in past]), np.concatenate([v for _, v in past])
    for stream in ways.values():
        stream.update(times, numbers, np.tile(np.arange(case.series), case.stamps))
        stream.predict_proba(at=float(times.max()))
    taken: dict[str, list[float]] = {name: [] for name in ways}
    worked: dict[str, list[float]] = {name: [] for name in ways}
    answers: dict[str, np.ndarray] = {}
    for k in range(case.stamps, case.stamps + case.rounds):
        time_stamps, rows = stamps(k)
        moment = float(time_stamps.max())
        for name, stream in ways.items():
            clock, work = time.perf_counter(), time.process_time()
            stream.update(time_stamps, rows)
            answers[name] = stream.predict_proba(at=moment)
            taken[name].append(1e3 * (time.perf_counter() - clock))
            worked[name].append(1e3 * (time.process_time() - work))
    report: dict[str, dict[str, float]] = {}
    for name, milliseconds in taken.items():
        report[name] = {
            "median ms": float(np.median(milliseconds)),
            "99th percentile ms": float(np.quantile(milliseconds, 0.99)),
            "median ms of processor time": float(np.median(worked[name])),
            "99th percentile ms of processor time": float(np.quantile(worked[name], 0.99)),
            "speed-up over refit, by processor time": float(np.median(worked["refit"]) / np.median(worked[name])),
            "largest difference to refit": float(np.abs(answers[name] - answers["refit"]).max()),
        }
    return report


def memory(model: Predictor, values: np.ndarray, updates: int) -> dict[str, object]:
    """Resident size while a series goes on and on; a prediction every fiftieth part."""
    stream = StreamingPredictor(model, SPAN)
    process = psutil.Process()
    sizes: list[float] = []
    clock = time.perf_counter()
    for k in range(updates):
        stream.update(float(k), values[k % len(values)])
        if k % (updates // 50) == updates // 50 - 1:
            stream.predict()
            sizes.append(process.memory_info().rss / 2**20)
    seconds = time.perf_counter() - clock
    return {
        "updates": updates,
        "microseconds per update": 1e6 * seconds / updates,
        "MB after the first tenth": sizes[4],
        "MB at the end": sizes[-1],
        "slots held": stream._history.times.shape[1],
    }


def run(updates: int, only: str) -> None:
    values, name = gestures()
    model = predictor(values)
    report: dict[str, object] = {"data": name, "threads": torch.get_num_threads(), "torch": torch.__version__}
    work: dict[str, Callable[[], object]] = {
        title: (lambda case=case: latency(model, values, case)) for title, case in CASES.items()
    }
    work["memory"] = lambda: memory(model, values, updates)
    for title, call in work.items():
        if only in title:
            report[title] = call()
            print(title, json.dumps(report[title], indent=2), flush=True)
    if not only:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=1_000_000, help="of the memory test")
    parser.add_argument("--only", default="", help="cases whose name contains this; results are then not written")
    arguments = parser.parse_args()
    run(arguments.updates, arguments.only)
