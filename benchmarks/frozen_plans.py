"""How near frozen steps stay to the adaptive solver, on recorded gestures that no calibration has seen.

    python -m benchmarks.frozen_plans

A classifier is trained on 264 series of UWaveGestureLibrary; plans are calibrated on those and judged on the other 176:
how far final states are from what the adaptive solver gives at a hundredth of the tolerance, how often the predicted
class is the adaptive one, and which share of the series is flagged, as they are and made ten times rougher.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from benchmarks.machine import described
from benchmarks.record import write
from smoothcde import CDEClassifier, FrozenModel, SeriesSet, StepPlan, load_uea
from smoothcde.models import Outcome
from smoothcde.models.cde import CDEModel
from smoothcde.solve.plan import FINER, distance

DATA, TRAINED_ON = "UWaveGestureLibrary", 264
TOLERANCES = (1e-2, 1e-3, 1e-4)
WITHIN = (10.0, 1.0)
"""Tolerances that plans are to keep within: as tests of the adaptive solver allow, and strictly."""


def rougher(series: SeriesSet) -> dict[str, SeriesSet]:
    """The same series ten times as rough, in two ways."""
    phase = 2 * np.pi * 6 * (series.times - series.times.min()) / np.ptp(series.times)
    return {
        "ten times the size": replace_values(series, 10 * series.values),
        "with six waves of ten times the size": replace_values(series, series.values + 10 * np.sin(phase)[:, None]),
    }


def replace_values(series: SeriesSet, values: np.ndarray) -> SeriesSet:
    """Other values at the same stamps."""
    parts = list(pairwise(series.offsets))
    blocks, stamps = ([x[begin:end] for begin, end in parts] for x in (values, series.times))
    return SeriesSet.from_arrays([block.T for block in blocks], stamps, channel_names=series.channel_names)


def judged(model: CDEModel, plan: StepPlan, series: SeriesSet, tolerance: float) -> dict[str, Any]:
    """One plan on unseen series."""
    batch = series.batch()
    solver = replace(model.options, rtol=tolerance, atol=tolerance)
    adaptive = model.solve(batch, options=solver)
    fine = model.solve(batch, options=replace(solver, rtol=tolerance / FINER, atol=tolerance / FINER))
    frozen = FrozenModel(model, plan).solve(batch)

    def within(one: Outcome, other: Outcome, bound: float) -> float:
        assert one.solution is not None
        assert other.solution is not None
        return float((distance(one.solution.state, other.solution.state, (tolerance, tolerance)) <= bound).mean())

    same = frozen.outputs.argmax(dim=1) == adaptive.outputs.argmax(dim=1)
    rough = {name: FrozenModel(model, plan).solve(other.batch()).flagged for name, other in rougher(series).items()}
    return {
        "steps": plan.steps,
        "frozen within one": within(frozen, fine, 1.0),
        "frozen within ten": within(frozen, fine, 10.0),
        "adaptive within one": within(adaptive, fine, 1.0),
        "adaptive within ten": within(adaptive, fine, 10.0),
        "frozen within ten of adaptive": within(frozen, adaptive, 10.0),
        "same class": float(same.double().mean()),
        "flagged": float(frozen.flagged.mean()),
        "rougher flagged": {name: float(flagged.mean()) for name, flagged in rough.items()},
    }


def run() -> None:
    """Measure and write down."""
    every, labels = load_uea(DATA, "all")
    order = np.random.default_rng(0).permutation(len(every))
    train, test = order[:TRAINED_ON], order[TRAINED_ON:]
    classifier = CDEClassifier("mvc-gp", epochs=12, hidden=64, random_state=0).fit(every[train], labels[train])
    predictor = classifier.predictor_
    model = predictor.model
    assert isinstance(model, CDEModel)
    seen, unseen = (predictor.scaler.transform(every[part]) for part in (train, test))
    plans = []
    with torch.no_grad():
        for tolerance in TOLERANCES:
            model.options = replace(model.options, rtol=tolerance, atol=tolerance)
            for within in WITHIN:
                plan = StepPlan.calibrate(model, seen, within=within)
                found = judged(model, plan, unseen, tolerance)
                plans.append({"tolerance": tolerance, "within": within, **found})
                print(plans[-1], flush=True)
    accuracy = float(classifier.score(every[test], labels[test]))
    write("frozen_plans", {"data": DATA, "series": len(test), "accuracy": accuracy, "plans": plans, **described()})


if __name__ == "__main__":
    run()
