"""Accuracy, AUROC, AUPRC, log loss, Brier score and confusion of predicted probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smoothcde.evaluation.bootstrap import Estimate, Metric, estimates
from smoothcde.series.problems import listed

METRICS = ("accuracy", "AUROC", "AUPRC", "log loss", "Brier score")


@dataclass(frozen=True, eq=False)
class ClassificationReport:
    """What predicted probabilities are worth.

    Attributes:
        classes: in the order of the confusion.
        series: how many were judged.
        metrics: by name, see `evaluate_classification`.
        confusion: `[true class, predicted class]`, counts.
    """

    classes: tuple[Any, ...]
    series: int
    metrics: dict[str, Estimate]
    confusion: np.ndarray

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "series": self.series,
            "classes": np.asarray(self.classes).tolist(),
            "metrics": {name: estimate.as_dict() for name, estimate in self.metrics.items()},
            "confusion": self.confusion.tolist(),
        }


def evaluate_classification(
    truth: Sequence[Any] | np.ndarray,
    probabilities: np.ndarray,
    classes: Sequence[Any] | np.ndarray,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> ClassificationReport:
    """Judge predicted probabilities; intervals are of the percentile bootstrap over series.

    - accuracy: share of series whose most probable class is the true one.
    - AUROC, AUPRC (average precision): with two classes, of the second against the first; with more, the mean over
      classes of each against the rest. Not defined (NaN) when a class is never or always the true one.
    - log loss: natural logarithm, probabilities kept above the rounding unit of float64.
    - Brier score: squared error of the probabilities, summed over classes, halved with two classes (then the
      usual one of the positive class).

    Args:
        truth: true class of each series, members of `classes`.
        probabilities: `[series, classes]`, rows sum to 1.
        classes: in the order of the columns.
        resamples: of the bootstrap; 0 for no intervals.
        confidence: of the intervals.
        seed: of the bootstrap.
    """
    names, labels, p = list(classes), list(truth), np.asarray(probabilities, dtype=np.float64)
    if p.shape != (len(labels), len(names)):
        raise ValueError(
            f"probabilities have shape {p.shape}; expected ({len(labels)}, {len(names)}), series by classes"
        )
    if not labels:
        raise ValueError("there is no series to judge; give at least one")
    if not np.isfinite(p).all() or (np.abs(p.sum(axis=1) - 1) > 1e-3).any() or (p < 0).any():
        raise ValueError("probabilities must be finite, not negative, and sum to 1 for each series; apply a softmax")
    column = {name: index for index, name in enumerate(names)}
    if unknown := sorted({str(label) for label in labels if label not in column}):
        known = listed(map(str, names))
        raise ValueError(f"the true classes {listed(unknown)} are not among those of the model: {known}")
    true = np.array([column[label] for label in labels])
    predicted = p.argmax(axis=1)
    onehot = np.eye(len(names))[true]
    picked = np.clip(p[np.arange(len(p)), true], np.finfo(np.float64).eps, 1.0)
    halved = 0.5 if len(names) == 2 else 1.0
    judged = range(1, 2) if len(names) == 2 else range(len(names))
    metrics = {
        "accuracy": mean_of(predicted == true),
        "AUROC": _mean_over_classes([auroc(true == k, p[:, k]) for k in judged]),
        "AUPRC": _mean_over_classes([average_precision(true == k, p[:, k]) for k in judged]),
        "log loss": mean_of(-np.log(picked)),
        "Brier score": mean_of(halved * ((p - onehot) ** 2).sum(axis=1)),
    }
    found = estimates(metrics, len(true), resamples=resamples, confidence=confidence, seed=seed)
    confusion = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(confusion, (true, predicted), 1)
    return ClassificationReport(tuple(names), len(true), found, confusion)


def mean_of(values: np.ndarray) -> Metric:
    """The weighted mean of a value per series."""
    values = np.asarray(values, dtype=np.float64)
    return lambda weights: weights @ values / weights.sum(axis=1)


def auroc(positive: np.ndarray, score: np.ndarray) -> Metric:
    """Probability that a positive series scores higher than a negative one, ties counting half."""
    order, last = _ranked(score)

    def metric(weights: np.ndarray) -> np.ndarray:
        hits, misses = _counted(weights, positive, order, last)
        step = np.diff(misses, axis=1, prepend=0.0)
        height = hits - 0.5 * np.diff(hits, axis=1, prepend=0.0)  # the trapezoid gives ties their half
        return _ratio((step * height).sum(axis=1), hits[:, -1] * misses[:, -1])

    return metric


def average_precision(positive: np.ndarray, score: np.ndarray) -> Metric:
    """Mean of precision over the recall gained at each threshold, without interpolation."""
    order, last = _ranked(score)

    def metric(weights: np.ndarray) -> np.ndarray:
        hits, misses = _counted(weights, positive, order, last)
        precision = np.divide(hits, hits + misses, out=np.zeros_like(hits), where=hits + misses > 0)
        area = (np.diff(hits, axis=1, prepend=0.0) * precision).sum(axis=1)
        # Without negatives every ranking has precision 1: a number that says nothing, like one without positives.
        return np.where(misses[:, -1] > 0, _ratio(area, hits[:, -1]), np.nan)

    return metric


def _ranked(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Series by falling score, and the last place of each run of equal scores: one threshold each."""
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    return order, np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)


def _counted(weights, positive, order, last) -> tuple[np.ndarray, np.ndarray]:
    """Positives and negatives at or above each threshold."""
    ranked, up = weights[:, order], positive[order]
    return np.cumsum(ranked * up, axis=1)[:, last], np.cumsum(ranked * ~up, axis=1)[:, last]


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.full_like(a, np.nan), where=b > 0)


def _mean_over_classes(parts: list[Metric]) -> Metric:
    return lambda weights: np.mean([part(weights) for part in parts], axis=0)
