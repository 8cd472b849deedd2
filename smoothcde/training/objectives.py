"""Objectives: what training makes small, and the score that picks the best epoch."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.checks import check_choice


@runtime_checkable
class Objective(Protocol):
    """What training makes small, and the score that picks the best epoch.

    Attributes:
        metric: name of the score.
    """

    metric: str

    def targets(self, targets: np.ndarray) -> Tensor:
        """Targets as the loss wants them, one entry per series."""
        ...

    def loss(self, outputs: Float[Tensor, "n outputs"], targets: Tensor, weights: Float[Tensor, "n"]) -> Tensor:
        """The sum over the series of weight times error; weights that sum to one make it a mean.

        A sum, so that processes can each add the share of their own series.
        """
        ...

    def score(self, outputs: Float[Tensor, "n outputs"], targets: Tensor, weights: Float[Tensor, "n"]) -> float:
        """The metric on series that were not trained on; higher is better."""
        ...


class CrossEntropy:
    """For classes 0, 1, 2, ...: outputs are logits, one per class.

    Args:
        metric: "accuracy", or "auroc" (area under the ROC curve, for several classes averaged one against the rest),
            which does not let a rare class go unnoticed.
    """

    def __init__(self, metric: str = "accuracy"):
        check_choice("metric", metric, ("accuracy", "auroc"))
        self.metric = metric

    def targets(self, targets: np.ndarray) -> Tensor:
        """Class indices."""
        targets = np.asarray(targets)
        if targets.ndim != 1 or not np.issubdtype(targets.dtype, np.integer) or (targets < 0).any():
            raise ValueError(
                f"targets have shape {targets.shape} and type {targets.dtype}; give one class index 0, 1, 2, ... "
                "per series (np.unique(labels, return_inverse=True) makes them)"
            )
        return torch.as_tensor(targets, dtype=torch.long)

    def loss(self, outputs: Float[Tensor, "n outputs"], targets: Tensor, weights: Float[Tensor, "n"]) -> Tensor:
        """Weighted sum of the negative log-likelihoods."""
        return (nn.functional.cross_entropy(outputs, targets, reduction="none") * weights).sum()

    def score(self, outputs: Float[Tensor, "n outputs"], targets: Tensor, weights: Float[Tensor, "n"]) -> float:
        """The share of weight on rightly named series, or the area under the ROC curve."""
        if self.metric == "accuracy":
            right = (outputs.argmax(dim=1) == targets).to(weights.dtype)
            return float((right * weights).sum() / weights.sum())
        from sklearn.metrics import roc_auc_score

        truth, mass = targets.cpu().numpy(), weights.cpu().numpy()
        probabilities = torch.softmax(outputs.double(), dim=1).cpu().numpy()
        present = np.unique(truth)
        if len(present) < 2:
            return 0.5  # one class only: nothing to rank
        areas = [float(roc_auc_score(truth == k, probabilities[:, k], sample_weight=mass)) for k in present]
        return sum(areas) / len(areas)


class SquaredError:
    """For numbers: outputs are predictions, one column per target. The metric is R², averaged over columns."""

    metric = "r2"

    def targets(self, targets: np.ndarray) -> Tensor:
        """`[n, outputs]`; a flat array is one column."""
        targets = np.asarray(targets, dtype=np.float64)
        if targets.ndim not in (1, 2):
            raise ValueError(f"targets have shape {targets.shape}; give (n,) or (n, outputs)")
        if not np.isfinite(targets).all():
            row = int(np.argwhere(~np.isfinite(targets))[0][0])
            raise ValueError(f"the target of series number {row} is not finite; leave it out or fill it in")
        return torch.as_tensor(targets if targets.ndim == 2 else targets[:, None])

    def loss(self, outputs: Float[Tensor, "n outputs"], targets: Tensor, weights: Float[Tensor, "n"]) -> Tensor:
        """Weighted sum of the squared errors, averaged over columns."""
        if outputs.shape != targets.shape:
            raise ValueError(
                f"the model has {outputs.shape[1]} outputs and the targets {targets.shape[1]}; build one with as many"
            )
        return ((outputs - targets.to(outputs.dtype)).square().mean(dim=1) * weights).sum()

    def score(self, outputs: Float[Tensor, "n outputs"], targets: Tensor, weights: Float[Tensor, "n"]) -> float:
        """R²; a column that does not vary counts as 1 where met exactly and 0 elsewhere, as in scikit-learn."""
        from sklearn.metrics import r2_score

        return float(r2_score(targets.cpu().numpy(), outputs.cpu().numpy(), sample_weight=weights.cpu().numpy()))


class ForecastError:
    """For forecasts of which some targets were never observed (NaN): these count for nothing.

    Without `quantiles`, the squared error; with them, the pinball loss, whose outputs stand level by level. A series'
    error is the mean over its observed targets, so weights in proportion to their number make the loss a mean over all
    that was observed. The metric is R² over everything observed, of the forecast or of the middle level.

    Args:
        quantiles: levels in rising order, their middle one 0.5.
    """

    metric = "r2"

    def __init__(self, quantiles: Sequence[float] | None = None):
        self.quantiles = None if quantiles is None else tuple(float(q) for q in quantiles)

    def targets(self, targets: np.ndarray) -> Tensor:
        """`[n, horizon * channels]` of `[n, ...]`."""
        targets = np.asarray(targets, dtype=np.float64)
        if targets.ndim < 2 or np.isinf(targets).any():
            raise ValueError(
                f"targets have shape {targets.shape}; give (n, horizon, channels), finite, NaN where not observed"
            )
        return torch.as_tensor(targets.reshape(len(targets), -1))

    def loss(self, outputs: Float[Tensor, "n outputs"], targets: Tensor, weights: Float[Tensor, "n"]) -> Tensor:
        """Weighted sum of each series' mean error over what was observed of its targets."""
        seen = targets.isfinite()
        # Zeros in place of NaN: a masked NaN would still make the gradient one.
        truth = torch.where(seen, targets, 0.0).to(outputs.dtype)
        count = seen.sum(dim=1).clamp(min=1)
        if self.quantiles is None:
            error = (outputs - truth).square()
        else:
            levels = outputs.new_tensor(self.quantiles)[:, None]
            missed = truth[:, None] - outputs.unflatten(1, (len(levels), -1))
            error = torch.maximum(levels * missed, (levels - 1) * missed).mean(dim=1)
        return (torch.where(seen, error, 0.0).sum(dim=1) / count * weights).sum()

    def score(self, outputs: Float[Tensor, "n outputs"], targets: Tensor, weights: Float[Tensor, "n"]) -> float:
        """R² over all that was observed."""
        levels = len(self.quantiles or (0.5,))
        forecast = outputs.unflatten(1, (levels, -1))[:, levels // 2].double()
        seen = targets.isfinite()
        mass = torch.where(seen, (weights.double() / seen.sum(dim=1).clamp(min=1))[:, None], 0.0)
        truth = torch.where(seen, targets, 0.0).double()
        mean = (mass * truth).sum() / mass.sum()
        unexplained = (mass * (forecast - truth).square()).sum()
        return float(1 - unexplained / (mass * (truth - mean).square()).sum())
