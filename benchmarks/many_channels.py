"""Full fields against fields of low rank at 963 channels: memory, time and accuracy.

    python -m benchmarks.many_channels

Generated series of the shape of PEMS-SF (267 for training, 173 for the test, 144 stamps, 963 channels, 7 classes):
every class has a daily profile, every channel its own mixture of three waves with it, plus noise. Each entry trains in
a process of its own, so that its peak memory is its own.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from smoothcde import CDEClassifier
from smoothcde.models import parameter_count

ENTRIES: dict[str, dict[str, Any]] = {
    "full, hidden 16": {"hidden": 16},
    "rank 2, hidden 16": {"hidden": 16, "rank": 2},
    "rank 8, hidden 16": {"hidden": 16, "rank": 8},
    "full, hidden 64": {"hidden": 64},
    "rank 8, hidden 64": {"hidden": 64, "rank": 8},
}
EPOCHS, NOISE = 8, 3.0
RESULT = Path(__file__).parent / "results" / "many_channels.json"


def occupancy(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Series `(count, 963, 144)` and their classes."""
    shared, generator = np.random.default_rng(0), np.random.default_rng(seed)
    t = np.linspace(0, 2 * np.pi, 144)
    waves = np.stack([np.sin(t), np.cos(2 * t), np.sin(3 * t)])
    mixture, accent = shared.normal(size=(963, 3)), shared.normal(size=(7, 3)) * 0.3
    labels = generator.integers(0, 7, count)
    profile = (mixture[None] * (1 + accent[labels][:, None])) @ waves
    return profile + NOISE * generator.normal(size=profile.shape), labels


def train(settings: dict[str, Any]) -> dict[str, Any]:
    """Train one entry here; what it took and what it reached."""
    (series, labels), (test, truth) = occupancy(267, 1), occupancy(173, 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    rank = {"rank": settings["rank"]} if "rank" in settings else {}
    options = {"encoder_width": 32, **rank}
    classifier = CDEClassifier(hidden=settings["hidden"], epochs=EPOCHS, model_options=options, random_state=0)
    classifier.fit(series, labels)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "accuracy": classifier.score(test, truth),
        "seconds": seconds,
        "gigabytes above the data": (peak - before) / 1e6,
        "parameters": parameter_count(classifier.predictor_.model),
    }


def main() -> None:
    """Train every entry and write what came of it."""
    results = {}
    for name, settings in ENTRIES.items():
        command = [sys.executable, "-m", "benchmarks.many_channels", json.dumps(settings)]
        results[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(name, {key: round(value, 3) for key, value in results[name].items()}, flush=True)
    RESULT.write_text(json.dumps({"epochs": EPOCHS, "noise": NOISE, "entries": results}, indent=2) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(train(json.loads(sys.argv[1]))))
    else:
        main()
