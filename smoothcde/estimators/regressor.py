"""`CDERegressor`: numbers from irregular series, in scikit-learn's ways."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array

from smoothcde.estimators.base import CDEEstimator, check_pairs, checked_weights, require_targets, split_validation
from smoothcde.estimators.inputs import series_of
from smoothcde.estimators.predictor import Predictor, Task
from smoothcde.estimators.scaling import ColumnScaler
from smoothcde.training import Recipe, SquaredError


class CDERegressor(RegressorMixin, CDEEstimator):
    """A regressor of irregular multivariate series, for one target or several.

    ```python
    regressor = CDERegressor(random_state=0).fit(train, lengths_of_stay)
    regressor.predict(test)
    ```

    Input, static features, windows, saving and most parameters are those of `CDEClassifier`. Targets are standardised
    for training, and predictions are in the targets' own units. The epoch with the least squared error on the
    validation series is kept; they are drawn at random.

    Args:
        model: any of `smoothcde.MODELS`.
        hidden: units of the state of each view, and of every hidden layer; None for 64, fewer where series have many
            channels (128 in the paper's recipes).
        bandwidths: as in `CDEClassifier`.
        noise: likewise.
        recipe: a name of `smoothcde.training.RECIPES`, or a `Recipe`; `random_state` and the loss
            take the place of its `seed` and `select`.
        epochs: as in `CDEClassifier`.
        batch_size: series per step; None for the recipe's.
        learning_rate: at its highest; None for the recipe's.
        weight_decay: of the optimiser; None for the recipe's.
        dropout: share of each series' stamps hidden at random in training; None for the recipe's.
        rtol: relative tolerance of the solver; None for the recipe's.
        atol: absolute tolerance of the solver; None for the recipe's.
        validation_fraction: share of the series that is held out to pick the best epoch; 0 for none.
        patience: epochs without a better validation after which training stops; None for the recipe's.
            With "tuned", and where the validation loss decides (two classes, numbers), that is a quarter of all epochs.
        model_options: further settings for `build_model`.
        device: "auto", "cpu", "cuda", ...
        precision: "32-true", "64-true", "bf16-mixed"; None for the recipe's.
        random_state: seed of weights, order, split and observation dropout; the same seed gives the same model.
        verbose: 1 shows a progress bar.
        directory: where training keeps checkpoints and metrics; a `fit` that was interrupted resumes from there.

    Attributes:
        n_features_in_: columns of a table `(n, time)`; channels of every other input.
        n_outputs_: targets per series.
        predictor_: the trained `Predictor`.
    """

    task: ClassVar[Task] = "regression"
    n_outputs_: int

    def __init__(
        self,
        model: str = "mvc-gp",
        *,
        hidden: int | None = None,
        bandwidths: Sequence[float] | float | None = None,
        noise: float | None = None,
        recipe: str | Recipe = "tuned",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        dropout: float | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        validation_fraction: float = 0.2,
        patience: int | None = None,
        model_options: Mapping[str, Any] | None = None,
        device: str = "auto",
        precision: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        directory: str | PathLike[str] | None = None,
    ):
        self.model = model
        self.hidden = hidden
        self.bandwidths = bandwidths
        self.noise = noise
        self.recipe = recipe
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.rtol = rtol
        self.atol = atol
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.model_options = model_options
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose
        self.directory = directory

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        static: Any = None,
        times: Any = None,
        validation: Any = None,
    ) -> "CDERegressor":
        """Train on series with a number each, or several.

        Args:
            X: the series, see `CDEClassifier`.
            y: `(n,)` or `(n, targets)`; the columns of a table give the targets their names.
            sample_weight: a weight per series.
            static: `(n, features)`, what does not change with time; joined at the readout. In a `SeriesSet` already.
            times: stamps, as `SeriesSet.from_arrays` takes them; likewise.
            validation: `(X, y)` or `(X, y, sample_weight)` to validate on, instead of a split of the training series.
        """
        require_targets(self, y)
        series = series_of(self, X, static, times, fitting=True)
        targets, names = _numbers(y), _names(y)
        check_pairs(series, targets, y)
        flat = targets.ndim == 1
        columns = targets[:, None] if flat else targets
        weights = checked_weights(sample_weight, len(series))
        held = split_validation(self, validation, bare=static is None and times is None)
        if held is not None:
            others = _numbers(held[1])
            check_pairs(held[0], others, held[1])
            others = others[:, None] if others.ndim == 1 else others
            if others.shape[1] != columns.shape[1]:
                raise ValueError(f"the validation set has {others.shape[1]} targets, training has {columns.shape[1]}")
            held = held[0], others, checked_weights(held[2], len(held[0]))
        predictor, _ = self._train(
            series,
            columns,
            weights,
            held,
            SquaredError(),
            "loss",
            columns.shape[1],
            lambda kept: {
                "targets": ColumnScaler.fit(kept),
                "target_names": names or tuple(f"target {j}" for j in range(kept.shape[1])),
            },
        )
        self._adopt(predictor)
        self.flat_targets_ = flat
        return self

    def predict(self, X: Any, *, static: Any = None, times: Any = None) -> np.ndarray:
        """The targets of each series at the end of its window: `(n,)` if trained on a flat `y`, else `(n, targets)`."""
        series = self._series(X, static, times)
        predicted = self.predictor_.predict(series)
        return predicted[:, 0] if self.flat_targets_ else predicted

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, static: Any = None, times: Any = None) -> float:
        """R², averaged over targets."""
        return float(r2_score(y, self.predict(X, static=static, times=times), sample_weight=sample_weight))

    def _adopt(self, predictor: Predictor) -> None:
        super()._adopt(predictor)
        assert predictor.targets is not None
        self.n_outputs_ = len(predictor.targets.mean)
        self.flat_targets_ = bool((predictor.record.get("estimator") or {}).get("flat_targets", self.n_outputs_ == 1))

    def _about(self) -> dict[str, Any]:
        return super()._about() | {"flat_targets": self.flat_targets_}


def _numbers(y: Any) -> np.ndarray:
    try:
        return check_array(y, ensure_2d=False, dtype="float64", input_name="y", ensure_min_samples=0)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(f"y must hold numbers ({error}); for text as classes use CDEClassifier") from error


def _names(y: Any) -> tuple[str, ...]:
    """Names of the targets, where y is a table."""
    if hasattr(y, "columns"):
        return tuple(str(name) for name in y.columns)
    return (str(y.name),) if getattr(y, "name", None) is not None else ()
