"""A training run: the steps, the validation, and where it stands.

Whatever is random derives from (seed, epoch, step), and every process knows the whole batch of a step and takes its
share of it. So a run that was killed repeats itself from its last checkpoint, and several processes do what one would.
"""

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from smoothcde.models import SeriesModel
from smoothcde.series import SeriesBatch, SeriesSet
from smoothcde.solve import SolveError
from smoothcde.training.checkpoint import Checkpoint
from smoothcde.training.errors import TrainingError
from smoothcde.training.hiding import hide_stamps
from smoothcde.training.objectives import Objective
from smoothcde.training.processes import Fabric, share_of
from smoothcde.training.recipes import Recipe
from smoothcde.training.record import TrainingRecord

OnStep = Callable[[int, int, float, float], None]
OnEpoch = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, eq=False)
class Examples:
    """Series with a target and a weight each."""

    series: SeriesSet
    targets: Tensor
    weights: Tensor

    def to(self, like: Tensor) -> "Examples":
        """On a parameter's device, the weights in its precision."""
        return Examples(self.series, self.targets.to(like.device), self.weights.to(like.device, like.dtype))


class Work:
    """One process's share of a step, and what came of it beside the loss.

    Deliberately no dataclass: mixed precision would convert the tensors of one, and times must stay float64.
    """

    def __init__(self, batch: SeriesBatch, targets: Tensor, weights: Tensor, share: float, places: np.ndarray):
        self.batch, self.targets, self.weights, self.share, self.places = batch, targets, weights, share, places
        self.nfe = np.zeros(0)
        self.failure: SolveError | None = None
        self.unfinished: list[int] = []


class StepLoss(nn.Module):
    """The loss of a share of a step, as the module that DDP wraps: a model's `forward` tells no penalty and no NFE."""

    def __init__(self, model: SeriesModel, objective: Objective):
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, work: Work) -> Tensor:
        """The weighted sum of errors, with the share's part of the penalty."""
        # Every parameter takes part in every loss: DDP waits for each gradient, and a share whose windows are all empty
        # would have none for the field.
        anchor = 0 * torch.stack([p.sum() for p in self.model.parameters() if p.requires_grad]).sum()
        try:
            outcome = self.model.solve(work.batch)
        except SolveError as error:
            # Other processes wait in backward; a loss that is no number tells all of them at once.
            work.failure = error
            failed = np.flatnonzero(error.solution.codes)
            work.unfinished = np.unique(self.model.series_of(failed, len(work.batch))).tolist()
            return anchor + math.nan
        outputs = outcome.outputs.to(work.weights.dtype)
        work.nfe = outcome.nfe
        work.unfinished = (~outputs.isfinite().flatten(1).all(dim=1)).nonzero().flatten().tolist()
        return self.objective.loss(outputs, work.targets, work.weights) + work.share * outcome.penalty + anchor


class Run:
    """A model on its way from the first epoch to the last."""

    def __init__(
        self,
        model: SeriesModel,
        objective: Objective,
        recipe: Recipe,
        fabric: Fabric,
        examples: Examples,
        validation: Examples | None,
    ):
        self.model, self.objective, self.recipe, self.fabric = model, objective, recipe, fabric
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[recipe.optimizer]
        self.optimizer = kind(model.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay)
        self.module, self.stepper = fabric.setup(StepLoss(model, objective), self.optimizer)
        self.examples = examples.to(self.like)
        self.validation = None if validation is None else validation.to(self.like)
        self.per_epoch = min(len(examples.series), recipe.epoch_size or len(examples.series))
        self.steps = -(-self.per_epoch // recipe.batch_size)
        self.record, self.best = TrainingRecord(), dict[str, Tensor]()
        self.step, self.sums, self.epoch_began = 0, [0.0, 0.0, 0.0], 0.0
        self._resumed, self._clock = (0.0, 0.0), (time.perf_counter(), time.process_time())
        self._shuffled: tuple[int, list[np.ndarray]] = -1, []

    @property
    def epoch(self) -> int:
        """The epoch under way, from 0."""
        return len(self.record.epochs)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.epoch >= self.recipe.epochs or self.record.stopped

    @property
    def seconds(self) -> float:
        """Since the very first start, without the time between a kill and the next start."""
        return self._resumed[0] + time.perf_counter() - self._clock[0]

    @property
    def processor_seconds(self) -> float:
        """Of this process, since the very first start."""
        return self._resumed[1] + time.process_time() - self._clock[1]

    @property
    def like(self) -> Tensor:
        """Some parameter, for its device and precision."""
        return next(self.model.parameters())

    def take_step(self) -> tuple[float, float]:
        """The next step of the epoch; gives its loss and its mean NFE per row."""
        recipe, fabric, epoch, step = self.recipe, self.fabric, self.epoch, self.step
        chosen = self._batches(epoch)[step]
        works = self._shares(chosen)
        self._set_rates(epoch * self.steps + step)
        own_seed = np.random.SeedSequence([recipe.seed, epoch, step, fabric.global_rank])
        torch.manual_seed(int(own_seed.generate_state(1)[0]))
        self.model.train()
        self.stepper.zero_grad()
        losses = []
        for work in works:
            early = fabric.world_size > 1 and work is not works[-1]  # processes meet once, when all gradients are there
            with fabric.no_backward_sync(self.module) if early else nullcontext():
                loss = self.module(work)
                fabric.backward(loss)
            losses.append(float(loss.detach()))
        nfe = np.concatenate([work.nfe for work in works])
        mine = [sum(losses) / fabric.world_size, float(nfe.sum()), float(nfe.size)]
        total, evaluations, rows = self._summed(torch.tensor(mine, dtype=torch.float64)).tolist()
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip or math.inf))
        if not (math.isfinite(total) and math.isfinite(norm)):
            what = "the gradient is not finite" if math.isfinite(total) else f"the loss is {total}"
            ids = [self.examples.series.ids[i] for i in chosen]
            own = [ids[work.places[i]] for work in works for i in work.unfinished]
            failure = next((work.failure for work in works if work.failure is not None), None)
            raise TrainingError.at(what, epoch + 1, step + 1, ids, own, failure) from failure
        self.stepper.step()
        self.sums = [self.sums[0] + total * len(chosen), self.sums[1] + evaluations, self.sums[2] + rows]
        self.step += 1
        return total, evaluations / max(rows, 1.0)

    def end_epoch(self) -> dict[str, Any]:
        """Validate, keep the weights if they are the best, and write the epoch into the record."""
        loss, evaluations, rows = self.sums
        now = self.seconds
        entry: dict[str, Any] = {
            "epoch": self.epoch + 1,
            "loss": loss / self.per_epoch,
            "nfe": evaluations / max(rows, 1.0),
            "learning_rate": self.optimizer.param_groups[0]["lr"],
        }
        if self.validation is not None:
            found, score = self._validate(self.validation)
            entry |= {"validation_loss": found, f"validation_{self.objective.metric}": score}
            now = self.seconds
        entry["seconds"] = now - self.epoch_began
        record = self.record
        record.epochs.append(entry)
        if self.validation is None:
            record.best_epoch = entry["epoch"]
        elif not record.best_epoch or self._rank(entry) > self._rank(record.epochs[record.best_epoch - 1]):
            record.best_epoch = entry["epoch"]
            self.best = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        patience = self.recipe.patience if self.validation is not None else None
        weary = patience is not None and entry["epoch"] - record.best_epoch >= patience
        record.stopped = weary and entry["epoch"] < self.recipe.epochs
        record.seconds, self.epoch_began, record.processor_seconds = now, now, self.processor_seconds
        self.step, self.sums = 0, [0.0, 0.0, 0.0]
        return entry

    def take_best(self) -> None:
        """Give the model the weights of its best epoch."""
        if self.best:
            self.model.load_state_dict(self.best)

    def checkpoint(self, run: dict[str, Any]) -> Checkpoint:
        """Where the run stands."""
        state = {"record": asdict(self.record), "step": self.step, "sums": self.sums, "epoch_began": self.epoch_began}
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": tensor for name, tensor in moments.items()}
        clocks = {"seconds": self.seconds, "processor_seconds": self.processor_seconds}
        return Checkpoint(run, {**state, **clocks}, tensors)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        state, device = checkpoint.state, self.like.device
        self.record = TrainingRecord(**state["record"])
        self.step, self.sums, self.epoch_began = state["step"], state["sums"], state["epoch_began"]
        self._resumed = state["seconds"], state.get("processor_seconds", 0.0)
        self._clock = time.perf_counter(), time.process_time()
        moments: dict[int, dict[str, Tensor]] = {}
        weights: dict[str, Tensor] = {}
        for name, tensor in checkpoint.tensors.items():
            part, _, rest = name.partition(".")
            if part == "model":
                weights[rest] = tensor
            elif part == "best":
                self.best[rest] = tensor.to(device)
            else:
                number, _, moment = rest.partition(".")
                moments.setdefault(int(number), {})[moment] = tensor
        self.model.load_state_dict(weights)
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})

    def _batches(self, epoch: int) -> list[np.ndarray]:
        """Which series each step of an epoch sees."""
        if self._shuffled[0] != epoch:
            order = np.random.default_rng([self.recipe.seed, epoch]).permutation(len(self.examples.series))
            self._shuffled = epoch, np.array_split(order[: self.per_epoch], self.steps)
        return self._shuffled[1]

    def _shares(self, chosen: np.ndarray) -> list[Work]:
        """This process's part of a step, a micro-batch each; the whole step hides its stamps by one draw, whoever sees
        them.
        """
        generator = np.random.default_rng([self.recipe.seed, self.epoch, self.step])
        seen = hide_stamps(self.examples.series[chosen], self.recipe.dropout, generator)
        own, stand_in = share_of(np.arange(len(chosen)), self.fabric)
        # DDP averages gradients over processes, so each counts its sum `world_size` times.
        scale = 0.0 if stand_in else self.fabric.world_size / len(chosen)
        device, dtype, works = self.like.device, self.like.dtype, []
        for places in np.array_split(own, -(-len(own) // (self.recipe.micro_batch or len(own)))):
            rows = torch.as_tensor(chosen[places], device=device)
            weights = self.examples.weights[rows] * scale
            batch = seen.batch(places, device=device, dtype=dtype)
            works.append(Work(batch, self.examples.targets[rows], weights, scale * len(places), places))
        return works

    def _set_rates(self, step: int) -> None:
        steps = self.recipe.epochs * self.steps
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate_at(step, steps)
            group["betas"] = (self.recipe.momentum_at(step, steps), group["betas"][1])

    def _summed(self, tensor: Tensor) -> Tensor:
        """Over the processes."""
        return self.fabric.all_reduce(tensor.to(self.fabric.device), reduce_op="sum").cpu()  # type: ignore[union-attr]

    @torch.no_grad()
    def _validate(self, examples: Examples) -> tuple[float, float]:
        """Loss and score; each process makes the outputs of its share, all see the whole."""
        self.model.eval()
        own, stand_in = share_of(np.arange(len(examples.series)), self.fabric)
        parts = []
        for chosen in np.array_split(own, -(-len(own) // (self.recipe.micro_batch or self.recipe.batch_size))):
            batch = examples.series.batch(chosen, device=self.like.device, dtype=self.like.dtype)
            try:
                with self.fabric.autocast():
                    parts.append(self.model(batch).to(self.like.dtype))
            except SolveError as error:
                ids = [examples.series.ids[i] for i in chosen]
                failed = np.flatnonzero(error.solution.codes)
                culprits = [ids[i] for i in np.unique(self.model.series_of(failed, len(chosen)))]
                raise TrainingError.at("", self.epoch + 1, self.step, ids, culprits, error) from error
        outputs = torch.cat(parts)
        if self.fabric.world_size > 1:
            whole = outputs.new_zeros(len(examples.series), *outputs.shape[1:])
            if not stand_in:
                whole[torch.as_tensor(own, device=whole.device)] = outputs
            outputs = self.fabric.all_reduce(whole, reduce_op="sum")
        weights = examples.weights / examples.weights.sum()
        loss = self.objective.loss(outputs, examples.targets, weights)  # type: ignore[arg-type]
        return float(loss), self.objective.score(outputs, examples.targets, weights)  # type: ignore[arg-type]

    def _rank(self, entry: dict[str, Any]) -> tuple[float, float]:
        """What a better epoch has more of."""
        score, loss = entry[f"validation_{self.objective.metric}"], entry["validation_loss"]
        rank = (score, -loss) if self.recipe.select == "metric" else (-loss, score)
        return tuple(-math.inf if math.isnan(value) else value for value in rank)  # type: ignore[return-value]
