"""How well `predict_cost` knows the evaluations of a solve before it: fitted on generated series, judged on real ones.

python -m benchmarks.predicted_cost            # judge; real data sets below SMOOTHCDE_DATA
python -m benchmarks.predicted_cost --fit      # print the constants that solve/pace.py holds
"""

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import nnls
from scipy.stats import spearmanr

from smoothcde import ChannelScaler, SeriesSet, build_model, load_uea
from smoothcde.solve import SolverOptions
from smoothcde.solve.cost import predict_cost
from smoothcde.solve.pace import turning
from smoothcde.solve.tableaus import TABLEAUS

SHARES = (0.05, 0.1, 0.2, 0.4, 1.4)
TOLERANCES = (1e-2, 1e-3, 1e-4)
FITTED_ON = {"TURNS": ("mvc-gp",), "TURNS_BY_TIME": ("mv-kernel", "smoothing-spline", "cubic")}
"""Models whose solves tell each table of `solve/pace.py`."""
RESULT = Path(__file__).parent / "results" / "predicted_cost.json"
# Bandwidths over span, noise and tolerance of the paper, with narrower ones beside them.
PAPER = {
    "UWaveGestureLibrary": ((0.1, 0.2, 0.4, 1.4), 0.05, 1e-4),
    "CharacterTrajectories": ((0.1, 0.4, 1.4), 0.01, 1e-3),
    "SpokenArabicDigits": ((0.1, 0.4, 1.4), 0.01, 1e-3),
}


def solved(series: SeriesSet, bandwidths, noise: float, tolerance: float, solver: str, seed: int, name: str = "mvc-gp"):
    """The paths of an untrained model, and the evaluations each row took."""
    torch.manual_seed(seed)
    model = build_model(
        name,
        channels=series.channels,
        outputs=2,
        time_scale=series.longest_span,
        bandwidths=bandwidths,
        noise=noise,
        solver=solver,
        rtol=tolerance,
        atol=tolerance,
    ).double()
    with torch.no_grad():
        outcome = model.solve(series.batch(dtype=torch.float64), options=SolverOptions(solver, tolerance, tolerance))
    return outcome.path, outcome.solution.stats.nfe


def generated(seed: int, count: int = 24, length: int = 80) -> SeriesSet:
    generator = np.random.default_rng(seed)
    channels = int(generator.integers(1, 8))
    walks = generator.normal(size=(count, channels, length)).cumsum(axis=2)
    series = SeriesSet.from_arrays(walks + 0.2 * generator.normal(size=walks.shape))
    return ChannelScaler.fit(series).transform(series)


def fit() -> None:
    for table, names in FITTED_ON.items():
        print(f"{table} = {{")
        for solver, tableau in TABLEAUS.items():
            rows, steps = [], []
            for seed in range(6):
                series = generated(seed)
                for name, tolerance in product(names, TOLERANCES):
                    path, nfe = solved(series, SHARES, 0.02, tolerance, solver, seed, name)
                    rows.append(tolerance ** (-1 / (tableau.order + 1)) * turning(path).mean(axis=1))
                    steps.append((nfe - (1 if table == "TURNS" else 2)) / (tableau.slopes - 1))
            rates, counts = np.concatenate(rows), np.concatenate(steps)
            # Relative errors count, so each row is divided by its count.
            (always, rate), _ = nnls(np.stack([1 / counts, rates / counts], axis=1), np.ones(len(counts)))
            error = np.abs((always + rate * rates) / counts - 1)
            print(
                f'    "{solver}": _Turns({always:.2f}, {rate:.4f}),  # median error {np.median(error):.0%}', flush=True
            )
        print("}")


def judge() -> None:
    report = {}
    for name, (bandwidths, noise, tolerance) in PAPER.items():
        series, _ = load_uea(name, "test")
        series = series[np.random.default_rng(0).permutation(len(series))[:100]]
        series = ChannelScaler.fit(series).transform(series)
        path, nfe = solved(series, bandwidths, noise, tolerance, "dopri5", 0)
        predicted = predict_cost(path, tolerance)
        per_view = zip(np.split(predicted, len(bandwidths)), np.split(nfe, len(bandwidths)), strict=True)
        report[name] = {
            "Spearman, all rows": float(spearmanr(predicted, nfe)[0]),
            "Spearman within each view": [float(spearmanr(*pair)[0]) for pair in per_view],
            "predicted mean": float(predicted.mean()),
            "measured mean": float(nfe.mean()),
            "median relative error": float(np.median(np.abs(predicted / nfe - 1))),
        }
        print(name, json.dumps(report[name], indent=2))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true", help="fit the constants anew and print them")
    (fit if parser.parse_args().fit else judge)()
