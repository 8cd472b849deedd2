"""Parameters that all estimators share: which model, and how it is trained."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from smoothcde.training import Recipe, recipe_of
from smoothcde.training.checkpoint import Checkpoint
from smoothcde.training.run import OnEpoch

OF_RECIPE = ("epochs", "batch_size", "learning_rate", "weight_decay", "dropout", "patience", "precision")
"""Parameters that take the place of a recipe's, where they are given."""
LEAST_STEPS = 300
"""Steps of the optimiser below which a small set of series is passed over more often."""


class RecipeParameters(BaseEstimator):
    """The model, the recipe and what overrides it; as JSON and back."""

    model: str
    hidden: int | None
    bandwidths: Any
    noise: float | None
    recipe: str | Recipe
    epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    weight_decay: float | None
    dropout: float | None
    rtol: float | None
    atol: float | None
    validation_fraction: float
    patience: int | None
    model_options: Mapping[str, Any] | None
    device: str
    precision: str | None
    random_state: Any
    verbose: int
    directory: str | PathLike[str] | None
    on_epoch: OnEpoch | None = None
    """Told of every epoch of a `fit`, see `smoothcde.training.train`; no parameter, and not copied with them."""

    def judged_by(self, y: Any) -> str:
        """What picks the best epoch with targets y: "loss", or the name of a metric of which more is better."""
        return "loss"

    def _seed(self) -> int:
        """Of weights, order and splits; that of the run that waits in `directory`, if chance is to choose."""
        if self.random_state is None and self.directory is not None:
            waiting = Checkpoint.load(Path(self.directory))
            if waiting is not None:
                return int(waiting.run["recipe.seed"])
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _recipe(self, count: int) -> Recipe:
        recipe = self.recipe if isinstance(self.recipe, Recipe) else recipe_of(self.recipe)
        asked = {name: getattr(self, name) for name in OF_RECIPE}
        recipe = replace(recipe, **{name: value for name, value in asked.items() if value is not None})
        if self.epochs is None and self.recipe in ("tuned", "forecast"):
            steps = -(-min(count, recipe.epoch_size or count) // recipe.batch_size)
            recipe = replace(recipe, epochs=max(recipe.epochs, -(-LEAST_STEPS // steps)))
        return recipe

    def _params_to_json(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        if isinstance(params["recipe"], Recipe):
            params["recipe"] = asdict(params["recipe"])
        if isinstance(params.get("class_weight"), Mapping):
            # As pairs: the keys of a JSON object are text, and labels need not be.
            params["class_weight"] = [[_item(label), float(w)] for label, w in params["class_weight"].items()]
        if isinstance(params["random_state"], np.random.RandomState):
            params["random_state"] = None
        for name in ("directory", "device"):
            params[name] = None if params[name] is None else str(params[name])
        return params

    @classmethod
    def _params_from_json(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        params = dict(params)
        if isinstance(params.get("recipe"), Mapping):
            params["recipe"] = Recipe(**params["recipe"])
        if isinstance(params.get("class_weight"), list):
            params["class_weight"] = dict(params["class_weight"])
        return params

    def _device(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
        except RuntimeError as error:
            raise ValueError(f"device is {self.device!r}; use any of: 'auto', 'cpu', 'cuda', 'cuda:0', ...") from error
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise ValueError(
                f"device is {self.device!r}, which is not there ({reason}); use 'cpu' or 'auto'"
            ) from error
        return device


def _item(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
