"""MSE, MAE and R2 of predicted numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smoothcde.evaluation.bootstrap import Estimate, Metric, estimates
from smoothcde.evaluation.classification import mean_of


@dataclass(frozen=True, eq=False)
class RegressionReport:
    """What predicted numbers are worth: `metrics[target][name]`, and how many series were judged."""

    targets: tuple[str, ...]
    series: int
    metrics: dict[str, dict[str, Estimate]]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = {t: {name: e.as_dict() for name, e in metrics.items()} for t, metrics in self.metrics.items()}
        return {"series": self.series, "targets": list(self.targets), "metrics": found}


def evaluate_regression(
    truth: np.ndarray,
    predicted: np.ndarray,
    targets: Sequence[str] | None = None,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> RegressionReport:
    """Judge predicted numbers, target by target, in the targets' own units.

    R2 is the share of the variance that is explained; not defined (NaN) when the true values are all the same.

    Args:
        truth: `[series]` or `[series, targets]`.
        predicted: likewise.
        targets: their names; "target 0", ... without.
        resamples: of the bootstrap over series; 0 for no intervals.
        confidence: of the intervals.
        seed: of the bootstrap.
    """
    y, z = (np.asarray(a, dtype=np.float64) for a in (truth, predicted))
    if y.shape != z.shape or y.ndim not in (1, 2):
        raise ValueError(
            f"true values have shape {y.shape}, predicted ones {z.shape}; give both as [series] or [series, targets]"
        )
    if not len(y):
        raise ValueError("there is no series to judge; give at least one")
    y, z = y.reshape(len(y), -1), z.reshape(len(z), -1)
    for words, array in (("true", y), ("predicted", z)):
        if not np.isfinite(array).all():
            raise ValueError(f"some {words} values are NaN or infinite; leave those series out")
    names = tuple(targets) if targets is not None else tuple(f"target {j}" for j in range(y.shape[1]))
    if len(names) != y.shape[1]:
        raise ValueError(f"there are {len(names)} names for {y.shape[1]} targets; give one each")
    options: dict[str, Any] = {"resamples": resamples, "confidence": confidence, "seed": seed}
    found = {name: estimates(_metrics(y[:, j], z[:, j]), len(y), **options) for j, name in enumerate(names)}
    return RegressionReport(names, len(y), found)


def _metrics(truth: np.ndarray, predicted: np.ndarray) -> dict[str, Metric]:
    error = predicted - truth
    return {"MSE": mean_of(error**2), "MAE": mean_of(np.abs(error)), "R2": _r2(truth, error)}


def _r2(truth: np.ndarray, error: np.ndarray) -> Metric:
    shifted = truth - truth.mean()  # E[x^2] - E[x]^2 loses all digits for values far from zero

    def metric(weights: np.ndarray) -> np.ndarray:
        total = weights.sum(axis=1)
        mean = weights @ shifted / total
        variance = weights @ shifted**2 / total - mean**2
        unexplained = weights @ error**2 / total
        varies = variance > 1e-12 * np.max(shifted**2, initial=0.0)
        return 1 - np.divide(unexplained, variance, out=np.full_like(variance, np.nan), where=varies)

    return metric
