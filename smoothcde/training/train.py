"""`train`: fit a model to series and targets."""

import copy
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric

from smoothcde.models import SeriesModel
from smoothcde.series import SeriesSet
from smoothcde.training.hiding import hide_stamps
from smoothcde.training.objectives import Objective
from smoothcde.training.recipes import Recipe
from smoothcde.training.record import TrainingRecord

Validation = tuple[SeriesSet, np.ndarray] | tuple[SeriesSet, np.ndarray, np.ndarray]


def train(
    model: SeriesModel,
    series: SeriesSet,
    targets: np.ndarray,
    objective: Objective,
    recipe: Recipe,
    *,
    weights: np.ndarray | None = None,
    validation: Validation | None = None,
    directory: Path | None = None,
    fabric: Fabric | None = None,
    progress: bool = False,
    loggers: Sequence[str] = (),
    on_step: Callable[[int, float, float], None] | None = None,
) -> TrainingRecord:
    """Fit a model; leave the weights of the best validation epoch in it (of the last, without validation).

    ```python
    record = train(model, series, labels, CrossEntropy(), RECIPES["tuned"], validation=(others, their_labels))
    ```
    """
    like = next(model.parameters())
    goal = objective.targets(targets).to(like.device)
    mass = torch.as_tensor(np.ones(len(series)) if weights is None else weights, dtype=like.dtype, device=like.device)
    mass = mass / mass.mean()
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[recipe.optimizer]
    optimizer = kind(model.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay)
    steps = -(-len(series) // recipe.batch_size)
    record, begin, best, kept = TrainingRecord(), time.perf_counter(), None, None
    for epoch in range(recipe.epochs):
        model.train()
        losses, evaluations = [], []
        order = np.random.default_rng([recipe.seed, epoch]).permutation(len(series))
        for step, chosen in enumerate(np.array_split(order, steps)):
            for group in optimizer.param_groups:
                at = epoch * steps + step, recipe.epochs * steps
                group["lr"], group["betas"] = recipe.learning_rate_at(*at), (recipe.momentum_at(*at), 0.999)
            seen = hide_stamps(series[chosen], recipe.dropout, np.random.default_rng([recipe.seed, epoch, step]))
            outcome = model.solve(seen.batch(device=like.device, dtype=like.dtype))
            loss = objective.loss(outcome.outputs, goal[chosen], mass[chosen] / len(chosen)) + outcome.penalty
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip or float("inf"))
            optimizer.step()
            losses.append(loss.item())
            evaluations.append(float(outcome.nfe.mean()))
            if on_step is not None:
                on_step(epoch, losses[-1], evaluations[-1])
        row = {"epoch": epoch + 1, "loss": float(np.mean(losses)), "nfe": float(np.mean(evaluations))}
        record.epochs.append(row)
        if validation is None:
            record.best_epoch = epoch + 1
            continue
        loss, score = _validate(model, validation, objective, recipe.batch_size)
        row |= {"validation_loss": loss, f"validation_{objective.metric}": score}
        rank = (score, -loss) if recipe.select == "metric" else (-loss,)
        if best is None or rank > best:
            best, record.best_epoch, kept = rank, epoch + 1, copy.deepcopy(model.state_dict())
        if recipe.patience is not None and epoch + 1 - record.best_epoch >= recipe.patience:
            record.stopped = True
            break
    if kept is not None:
        model.load_state_dict(kept)
    record.seconds = time.perf_counter() - begin
    return record


@torch.no_grad()
def _validate(model: SeriesModel, validation: Validation, objective: Objective, size: int) -> tuple[float, float]:
    series, targets, *rest = validation
    like = next(model.parameters())
    goal = objective.targets(targets).to(like.device)
    mass = torch.as_tensor(rest[0] if rest else np.ones(len(series)), dtype=like.dtype, device=like.device)
    model.eval()
    batches = np.array_split(np.arange(len(series)), -(-len(series) // size))
    outputs = torch.cat([model(series.batch(chosen, device=like.device, dtype=like.dtype)) for chosen in batches])
    return float(objective.loss(outputs, goal, mass / mass.sum())), objective.score(outputs, goal, mass)
