"""What a trained model achieves, and what it costs."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from smoothcde.models import SeriesModel
from smoothcde.series import SeriesSet


@dataclass(frozen=True)
class Measurement:
    """On a set of series:

    Attributes:
        accuracy: share of right labels.
        joint_nfe: evaluations per batch with one step size for all, averaged over batches: what the paper reports.
        row_nfe: evaluations per (series, view) pair with own step sizes, averaged.
    """

    accuracy: float
    joint_nfe: float
    row_nfe: float


@torch.no_grad()
def measure_classifier(model: SeriesModel, series: SeriesSet, labels: np.ndarray, batch_size: int = 256) -> Measurement:
    """Accuracy and cost on test series; kinks are stepped over in joint mode, as the paper did."""
    if len(series) != len(labels):
        raise ValueError(f"there are {len(series)} series and {len(labels)} labels; give one label per series")
    model.eval()
    like = next(model.parameters())
    right, joint, row = 0, [], []
    as_paper = replace(model.options, step_control="joint", knots="step_over")
    for chosen in np.array_split(np.arange(len(series)), -(-len(series) // batch_size)):
        batch = series.batch(chosen, device=like.device, dtype=like.dtype)
        outcome = model.solve(batch)
        right += int((outcome.outputs.argmax(dim=1).cpu().numpy() == labels[chosen]).sum())
        row.append(outcome.nfe)
        joint.append(model.solve(batch, options=as_paper).nfe[0])
    return Measurement(right / len(series), float(np.mean(joint)), float(np.concatenate(row).mean()))
