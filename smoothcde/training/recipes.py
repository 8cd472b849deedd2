"""Recipes: how to train, by name."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from smoothcde.checks import check_above_zero, check_choice, check_known, check_whole

OPTIMIZERS = ("adam", "adamw")
SCHEDULES = ("constant", "one-cycle", "cosine")
PRECISIONS = ("32-true", "bf16-mixed", "64-true")
SELECTIONS = ("metric", "loss")


@dataclass(frozen=True)
class Recipe:
    """How to train.

    ```python
    recipe = replace(RECIPES["tuned"], epochs=60, seed=3)
    ```

    Attributes:
        epochs: passes over the series.
        batch_size: series per step, over all processes together.
        learning_rate: at its highest.
        weight_decay: of the optimiser: decoupled for "adamw", added to the gradient for "adam".
        optimizer: "adam" or "adamw".
        schedule: of the learning rate over the whole run. "constant"; "one-cycle", which rises over the first 30% and
            falls to almost nothing; "cosine", which only falls.
        clip: largest gradient norm; None for no limit.
        patience: epochs without a better validation score after which training stops; None for never.
        select: what "better" means: the objective's "metric" (ties go to the lower loss), or the validation "loss".
        dropout: share of each series' stamps hidden at random in training, others at every visit; its first and last
            are kept.
        precision: "32-true", "64-true", or "bf16-mixed". Mixed precision runs encoders, recurrent cells and readouts
            in bfloat16; paths and equations stay in float32, since a solver takes rounding for error.
        epoch_size: series that an epoch passes over, others in each; None for all. For windows of a long recording,
            which are many and much alike.
        micro_batch: series worked on at a time; the gradients of a step add up. The same step in less memory, where the
            intermediate results of all would not fit. None for all of a step at once.
        seed: of the order of the series and of what is hidden.
        model: settings for `build_model` that go with the recipe.
    """

    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    optimizer: str = "adamw"
    schedule: str = "one-cycle"
    clip: float | None = 1.0
    patience: int | None = None
    select: str = "metric"
    dropout: float = 0.0
    precision: str = "32-true"
    epoch_size: int | None = None
    micro_batch: int | None = None
    seed: int = 0
    model: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self):
        for name, least in (("epochs", 1), ("batch_size", 1), ("seed", 0)):
            check_whole(name, getattr(self, name), least)
        check_above_zero("learning_rate", self.learning_rate, "give a number above 0, 1e-3 say")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ValueError(f"weight_decay is {self.weight_decay}; give 0 or a small number above")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"clip is {self.clip}; give the largest gradient norm, or None for no limit")
        if self.patience is not None and self.patience < 1:
            raise ValueError(f"patience is {self.patience}; give at least one epoch, or None to never stop early")
        if self.epoch_size is not None and self.epoch_size < 1:
            raise ValueError(f"epoch_size is {self.epoch_size}; give at least one series, or None for all of them")
        if self.micro_batch is not None and self.micro_batch < 1:
            raise ValueError(f"micro_batch is {self.micro_batch}; give at least one series, or None for a step at once")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; give the share of stamps to hide, from 0 to below 1")
        named = {"optimizer": OPTIMIZERS, "schedule": SCHEDULES, "precision": PRECISIONS, "select": SELECTIONS}
        for name, allowed in named.items():
            check_choice(name, getattr(self, name), allowed)
        object.__setattr__(self, "model", dict(self.model))

    def learning_rate_at(self, step: int, steps: int) -> float:
        """The learning rate of one of `steps` steps, counted from 0."""
        if self.schedule == "constant":
            return self.learning_rate
        if self.schedule == "cosine":
            return _eased(self.learning_rate, 0.0, step / max(steps, 1))
        # As torch's OneCycleLR: a function of the step, so that a resumed run has nothing to restore.
        first, last = self.learning_rate / 25, self.learning_rate / 25e4
        peak = _peak(steps)
        if step <= peak:
            return _eased(first, self.learning_rate, step / peak if peak > 0 else 1.0)
        return _eased(self.learning_rate, last, (step - peak) / (steps - 1 - peak))

    def momentum_at(self, step: int, steps: int) -> float:
        """Adam's first beta at a step: in a cycle it falls while the learning rate rises."""
        if self.schedule != "one-cycle":
            return 0.9
        peak = _peak(steps)
        if step <= peak:
            return _eased(0.95, 0.85, step / peak if peak > 0 else 1.0)
        return _eased(0.85, 0.95, (step - peak) / (steps - 1 - peak))


def _peak(steps: int) -> float:
    """The step of a cycle at which its rate is highest, before the first in a very short cycle; an only step is it."""
    return 0.3 * steps - 1 if steps > 1 else 0.0


def _eased(start: float, end: float, share: float) -> float:
    """From start to end along half a cosine."""
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


def _of_paper(
    *, tolerance: float, bandwidths: tuple[float, ...] | None = None, noise: float = 0.01, **settings
) -> Recipe:
    """Adam at a constant rate, no clipping, the best validation accuracy kept; the model's settings beside it."""
    model: dict[str, Any] = {"solver": "dopri5", "rtol": tolerance, "atol": tolerance, "noise": noise}
    if bandwidths is not None:
        model["bandwidths"] = bandwidths
    fixed = {"optimizer": "adam", "schedule": "constant", "clip": None, "learning_rate": 1e-3, "weight_decay": 0.0}
    return Recipe(**(fixed | settings), model=model)


RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "tuned": Recipe(epochs=30, dropout=0.3, model={"rtol": 1e-2, "atol": 1e-2}),
        "forecast": Recipe(
            epochs=20, batch_size=128, select="loss", epoch_size=8192, model={"rtol": 1e-2, "atol": 1e-2}
        ),
        "paper-character-trajectories": _of_paper(
            epochs=25,
            batch_size=256,
            learning_rate=1e-4,
            weight_decay=1e-5,
            tolerance=1e-3,
            bandwidths=(1.4, 1.4, 1.4, 1.4),
        ),
        "paper-spoken-arabic-digits": _of_paper(
            epochs=13, batch_size=2048, weight_decay=1e-4, tolerance=1e-3, bandwidths=(1.4, 1.4, 1.4)
        ),
        "paper-uwave": _of_paper(
            epochs=30, batch_size=512, weight_decay=1e-5, tolerance=1e-4, bandwidths=(0.1, 0.2, 0.4), noise=0.05
        ),
        "paper-speech-commands": _of_paper(epochs=20, batch_size=512, tolerance=1e-2),
        "paper-pems-sf": _of_paper(epochs=30, batch_size=32, tolerance=1e-3),
    }
)
""""tuned" for data of your own, "forecast" for windows of recordings, "paper-..." with the paper's settings."""


def recipe_of(name: str, **changes: Any) -> Recipe:
    """A recipe by name, with changes.

    ```python
    recipe_of("paper-uwave", seed=2)
    ```
    """
    check_known("recipe", name, RECIPES)
    return replace(RECIPES[name], **changes)
