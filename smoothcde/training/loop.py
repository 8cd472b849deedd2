"""The training loop."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from smoothcde.models import SeriesModel
from smoothcde.series import SeriesSet


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        epochs: passes over the series.
        batch_size: series per step.
        learning_rate: of Adam with decoupled weight decay; it rises and falls once over the run (one cycle).
        weight_decay: see above.
        clip: largest gradient norm.
        seed: of the order of the series.
    """

    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    clip: float = 1.0
    seed: int = 0


@dataclass
class TrainingRecord:
    """What happened: per epoch the mean loss and the mean NFE per row, and the seconds in all."""

    loss: list[float] = field(default_factory=list)
    nfe: list[float] = field(default_factory=list)
    seconds: float = 0.0


def train_classifier(
    model: SeriesModel,
    series: SeriesSet,
    labels: np.ndarray,
    recipe: Recipe,
    on_step: Callable[[int, float, float], None] | None = None,
) -> TrainingRecord:
    """Fit a model's logits to labels 0, 1, 2, ... by cross-entropy.

    Args:
        model: as built by `build_model`.
        series: standardised training series.
        labels: one class index per series.
        recipe: how.
        on_step: told epoch, loss and mean NFE per row after every step.
    """
    if len(series) != len(labels):
        raise ValueError(f"there are {len(series)} series and {len(labels)} labels; give one label per series")
    like = next(model.parameters())
    targets = torch.as_tensor(labels, dtype=torch.long, device=like.device)
    optimiser = torch.optim.AdamW(model.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay)
    steps = -(-len(series) // recipe.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, recipe.learning_rate, epochs=recipe.epochs, steps_per_epoch=steps
    )
    generator = np.random.default_rng(recipe.seed)
    record, begin = TrainingRecord(), time.perf_counter()
    model.train()
    for epoch in range(recipe.epochs):
        losses, evaluations = [], []
        for chosen in np.array_split(generator.permutation(len(series)), steps):
            outcome = model.solve(series.batch(chosen, device=like.device, dtype=like.dtype))
            loss = nn.functional.cross_entropy(outcome.outputs, targets[chosen]) + outcome.penalty
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimiser.step()
            schedule.step()
            losses.append(loss.item())
            evaluations.append(float(outcome.nfe.mean()))
            if on_step is not None:
                on_step(epoch, losses[-1], evaluations[-1])
        record.loss.append(float(np.mean(losses)))
        record.nfe.append(float(np.mean(evaluations)))
    record.seconds = time.perf_counter() - begin
    return record
