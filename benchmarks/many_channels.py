"""Fields of low rank: what they cost in accuracy on two dozen channels, and what they save on 963.

    python -m benchmarks.many_channels

Accuracy of mvc-gp with a full field and with fields of several ranks, each trained alike; then one training step on
generated data of PEMS-SF's shape, each field in a process of its own.
"""

import json
import sys
import time
from typing import Any

import torch

from benchmarks.fresh import measured_alone
from benchmarks.machine import described
from benchmarks.record import write
from benchmarks.timing import median
from smoothcde import CDEClassifier, build_model, load_uea, parameter_count
from smoothcde.experiments.footprint import peak_above, reset_peak
from smoothcde.reproduce.generated import generated_traffic

DATA = ("JapaneseVowels", "NATOPS")
RANKS = (None, 16, 8, 2)
SEEDS, EPOCHS = 3, 15
SERIES, STEPS = 32, 3
"""Of the training step on 963 channels."""


def accuracy(data: str, rank: int | None) -> dict[str, Any]:
    """Test accuracies over seeds, weights, and seconds of one processor for the training."""
    train, labels = load_uea(data, "train")
    test, truth = load_uea(data, "test")
    scores, seconds, weights = [], [], 0
    for seed in range(SEEDS):
        began = time.process_time()
        classifier = CDEClassifier("mvc-gp", epochs=EPOCHS, random_state=seed, model_options={"rank": rank})
        classifier.fit(train, labels)
        seconds.append(time.process_time() - began)
        scores.append(classifier.score(test, truth))
        weights = parameter_count(classifier.predictor_.model)
    return {"channels": train.channels, "accuracies": scores, "seconds": median(seconds), "weights": weights}


def training_step(rank: int | None) -> dict[str, Any]:
    """Processor seconds, evaluations and peak memory of one step on 963 channels, in this process."""
    series, labels = generated_traffic()
    batch = series[:SERIES].batch()
    torch.manual_seed(0)
    model = build_model("mvc-gp", channels=series.channels, outputs=7, time_scale=series.longest_span, rank=rank)
    optimiser = torch.optim.Adam(model.parameters())
    targets = torch.as_tensor(labels[:SERIES])
    del series
    before = reset_peak()
    seconds = []
    for _ in range(STEPS):
        began = time.process_time()
        optimiser.zero_grad()
        outcome = model.solve(batch)
        torch.nn.functional.cross_entropy(outcome.outputs, targets).backward()
        optimiser.step()
        seconds.append(time.process_time() - began)
    return {
        "channels": model.channels,
        "seconds": median(seconds),
        "megabytes": peak_above(before),
        "evaluations": float(outcome.nfe.mean()),
        "weights": parameter_count(model),
    }


def _alone(rank: int | None) -> dict[str, Any]:
    return measured_alone("benchmarks.many_channels", {"rank": rank})


def run() -> None:
    """Measure all, and write it down."""
    report: dict[str, Any] = {"seeds": SEEDS, "epochs": EPOCHS, "series": SERIES, **described()}
    for name, measure, kinds in (
        *((data, lambda rank, data=data: accuracy(data, rank), RANKS) for data in DATA),
        ("training step", _alone, (None, 16)),
    ):
        report[name] = {}
        for rank in kinds:
            label = "full" if rank is None else f"rank {rank}"
            report[name][label] = measure(rank)
            print(f"{name}, {label}: {report[name][label]}", flush=True)
    write("many_channels", report)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(training_step(**json.loads(sys.argv[1]))))
    else:
        run()
