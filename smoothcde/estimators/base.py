"""What classifier and regressor share: from series and targets to a `Predictor`."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from smoothcde.data import ChannelScaler
from smoothcde.estimators.architecture import architecture_of
from smoothcde.estimators.inputs import series_of
from smoothcde.estimators.parameters import RecipeParameters
from smoothcde.estimators.predictor import Predictor, Task
from smoothcde.estimators.scaling import ColumnScaler
from smoothcde.estimators.splitting import held_out
from smoothcde.models import build_model
from smoothcde.series import SeriesSet
from smoothcde.storage import ModelFileError
from smoothcde.training import Objective, train

Loaded = TypeVar("Loaded", bound="CDEEstimator")


LEAST_PATIENCE = 5
"""Epochs without a better loss, or a quarter of all if that is more, after which the usual recipe gives up."""


class CDEEstimator(RecipeParameters):
    """Parameters, training and saving of `CDEClassifier` and `CDERegressor`."""

    task: ClassVar[Task]
    predictor_: Predictor
    n_features_in_: int
    fitted_on_table_: bool
    feature_names_in_: np.ndarray

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags

    def save(self, directory: str | PathLike[str]) -> None:
        """Write the fitted model to a directory of its own: safetensors and JSON, whole or not at all.

        `Predictor.load` reads it as well, without scikit-learn's ways.
        """
        check_is_fitted(self, "predictor_")
        replace(self.predictor_, record={**self.predictor_.record, "estimator": self._about()}).save(directory)

    @classmethod
    def load(cls: type[Loaded], directory: str | PathLike[str]) -> Loaded:
        """The estimator that was saved; also reads what a `Predictor` saved, with default parameters then."""
        predictor = Predictor.load(directory)
        if predictor.task != cls.task:
            raise ModelFileError(
                f"'{directory}' holds a model for {predictor.task}, and {cls.__name__} is for {cls.task}; "
                f"load it with {'CDEClassifier' if predictor.task == 'classification' else 'CDERegressor'}"
            )
        about = predictor.record.get("estimator") or {}
        try:
            estimator = cls(**cls._params_from_json(about.get("params", {})))
            estimator.fitted_on_table_ = bool(about.get("fitted_on_table", False))
            estimator.n_features_in_ = int(about.get("n_features_in", len(predictor.channel_names)))
            if "feature_names_in" in about:
                estimator.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(
                f"'{directory}' was saved with parameters that this version does not know ({error}); "
                "Predictor.load needs none of them"
            ) from error
        estimator._adopt(predictor)
        return estimator

    def _about(self) -> dict[str, Any]:
        """What scikit-learn wants to know of an estimator and a predictor does not need."""
        about = {"params": self._params_to_json(), "n_features_in": self.n_features_in_}
        about |= {"fitted_on_table": self.fitted_on_table_}
        if hasattr(self, "feature_names_in_"):
            about["feature_names_in"] = [str(name) for name in self.feature_names_in_]
        return about

    def _check_held_out(self, found: bool) -> None:
        """Refuse, before any training, to go without validation series where they are needed."""

    def _adopt(self, predictor: Predictor) -> None:
        """Take a trained predictor for one's own."""
        self.predictor_ = predictor

    def _series(self, X: Any, static: Any, times: Any) -> SeriesSet:
        check_is_fitted(self, "predictor_")
        return series_of(self, X, static, times, fitting=False)

    def _train(
        self,
        series: SeriesSet,
        targets: np.ndarray,
        weights: np.ndarray,
        validation: tuple[SeriesSet, np.ndarray, np.ndarray] | None,
        objective: Objective,
        select: str,
        outputs: int,
        answers: Callable[[np.ndarray], Mapping[str, Any]],
    ) -> tuple[Predictor, tuple[SeriesSet, np.ndarray, np.ndarray] | None]:
        """A trained predictor, and the series it was validated on.

        Args:
            series: all series that were handed in.
            targets: class indices `[n]`, or numbers `[n, targets]` in their own units.
            weights: of the series.
            validation: series, targets and weights, where the user gave some; else a split is held out.
            objective: what to train for.
            select: what picks the best epoch, "metric" or "loss".
            outputs: of the model.
            answers: from the training targets to the predictor's `labels`, or `targets` with `target_names`.
        """
        seed = self._seed()
        device = self._device()
        if validation is None:
            mask = held_out(len(series), self.validation_fraction, seed, targets if self.task != "regression" else None)
            if mask.any() and weights[~mask].sum() > 0 and weights[mask].sum() > 0:
                validation = series[mask], targets[mask], weights[mask]
                series, targets, weights = series[~mask], targets[~mask], weights[~mask]
        self._check_held_out(validation is not None)
        # What no window shows must not shape statistics either.
        series = series.cropped()
        recipe = replace(self._recipe(len(series)), seed=seed, select=select)
        if self.patience is None and self.recipe == "tuned" and select == "loss":
            recipe = replace(recipe, patience=max(LEAST_PATIENCE, recipe.epochs // 4))
        chosen = {name: getattr(self, name) for name in ("hidden", "bandwidths", "noise", "rtol", "atol")}
        plain = isinstance(self.recipe, str) and self.recipe.startswith("paper")
        architecture = architecture_of(self.model, series, outputs, recipe, chosen, self.model_options, plain=plain)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = build_model(**architecture)
        if recipe.precision == "64-true":
            model.double()
        predictor = Predictor(
            task=self.task,
            architecture=architecture,
            model=model.to(device),
            scaler=ChannelScaler.fit(series),
            channel_names=series.channel_names,
            static_names=series.static_names if series.static is not None else (),
            static_scaler=None if series.static is None else ColumnScaler.fit(series.static),
            **answers(targets),
        )
        scaled = predictor.targets.transform if predictor.targets is not None else lambda t: t
        record = train(
            model,
            predictor.prepare(series),
            scaled(targets),
            objective,
            recipe,
            weights=weights,
            validation=validation and (predictor.prepare(validation[0]), scaled(validation[1]), validation[2]),
            directory=None if self.directory is None else Path(self.directory),
            progress=self.verbose > 0,
            on_epoch=self.on_epoch,
        )
        about = {"training_series": len(series), "validation_series": len(validation[0]) if validation else 0}
        about |= {"recipe": asdict(recipe), "objective": objective.metric, **asdict(record)}
        model.eval()
        return replace(predictor, record=about), validation


def checked_weights(sample_weight: Any, count: int) -> np.ndarray:
    """Weights of the series, one where none are given."""
    if sample_weight is None:
        return np.ones(count)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"sample_weight has shape {weights.shape}; give one number per series, shape ({count},)")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight must be finite and not negative, with at least one above zero")
    return weights


def split_validation(
    estimator: BaseEstimator, validation: Any, *, bare: bool = True
) -> tuple[SeriesSet, Any, Any] | None:
    """Series, targets and weights (None where not given) of a validation set that a user gave.

    Args:
        estimator: that is to be fitted.
        validation: what the user gave.
        bare: whether the training arrays came without times and static features of their own: else those of validation
            arrays are not known.
    """
    if validation is None:
        return None
    if not isinstance(validation, list | tuple) or len(validation) not in (2, 3):
        raise ValueError("validation must be (X, y) or (X, y, sample_weight)")
    X, y, *rest = validation
    if not bare and not isinstance(X, SeriesSet):
        raise ValueError(
            "times or static features were given for the training series only; give the validation series as a "
            "SeriesSet, which brings its own"
        )
    check_consistent_length(y, *rest)
    return series_of(estimator, X, fitting=False), y, rest[0] if rest else None


def require_targets(estimator: BaseEstimator, y: Any) -> None:
    """Refuse to fit on nothing, in the words scikit-learn's tools look for."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )


def check_pairs(series: SeriesSet, y: Any, given: Any) -> None:
    """Refuse another number of targets than of series, and targets that are named by the series in another order.

    `given` is what `y` was made of. Pairs go by place, as everywhere; but a table by series that is sorted otherwise
    than the series are is a mistake that nothing else would show.
    """
    index = getattr(given, "index", None)
    # An index with a name is one of ids; others are what pandas or a split of the data left.
    if isinstance(index, pd.Index) and index.name is not None:
        names = index.tolist()
        if names != list(series.ids) and len(names) == len(series) and set(names) == set(series.ids):
            raise ValueError(
                "y is indexed by the ids of the series, in another order than the series; "
                "give y.loc[list(series.ids)], or y.to_numpy() if its order is right"
            )
    if len(series) != len(y):
        raise ValueError(f"there are {len(series)} series and {len(y)} targets; give one target per series")
    if len(series) == 0:
        raise ValueError("there are 0 series; a minimum of 1 is required")
