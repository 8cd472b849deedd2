"""`CDEClassifier`: classes of irregular series, in scikit-learn's ways."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from smoothcde.checks import check_choice
from smoothcde.estimators.base import (
    CDEEstimator,
    check_pairs,
    checked_weights,
    require_targets,
    split_validation,
)
from smoothcde.estimators.calibration import temperature_of
from smoothcde.estimators.inputs import series_of
from smoothcde.estimators.predictor import Predictor, Task
from smoothcde.series.problems import listed
from smoothcde.training import CrossEntropy, Recipe


class CDEClassifier(ClassifierMixin, CDEEstimator):
    """A classifier of irregular multivariate series: several smoothed views, each driving a neural CDE.

    ```python
    classifier = CDEClassifier(random_state=0).fit(train, labels)       # a SeriesSet, or an array (n, channels, time)
    classifier.predict_proba(test)
    classifier.save("my-model")
    CDEClassifier.load("my-model").predict(test)
    ```

    `X` may be a `SeriesSet`, an array `(n, channels, time)` or `(n, time)`, or a list with one `(channels, time_i)` per
    series; NaN means not observed. A table `(n, time)` must keep its columns from `fit` to `predict`, as scikit-learn
    asks: hand series of other lengths over in one of the other forms. Channels and static features are standardised
    with statistics of the training series.

    A prediction is made at the end of a series' window (`SeriesSet.with_window`; the last stamp without one) from what
    was observed inside the window and nothing else. Windows may be longer, shorter or later than any in training: time
    counts from a window's start, in units of the longest training window, so bandwidths keep their length in hours or
    seconds.

    Args:
        model: any of `smoothcde.MODELS`.
        hidden: units of the state of each view, and of every hidden layer; None for 64, fewer where series have many
            channels (128 in the paper's recipes).
        bandwidths: smoothness as fractions of the longest training window, one per view; None for the recipe's, or
            0.1, 0.2, 0.4, 1.4 (0.2 for models with one path).
        noise: sigma of Gaussian process paths, in units of a standardised channel; None for the recipe's, or
            0.01, or 0.1 for series with missing values.
        recipe: a name of `smoothcde.training.RECIPES`, or a `Recipe`; `random_state` and
            `validation_metric` take the place of its `seed` and `select`.
        epochs: passes over the series. None for the recipe's; "tuned" then passes over small sets more often, so as to
            take 300 steps.
        batch_size: series per step; None for the recipe's.
        learning_rate: at its highest; None for the recipe's.
        weight_decay: of the optimiser; None for the recipe's.
        dropout: share of each series' stamps hidden at random in training; None for the recipe's.
        rtol: relative tolerance of the solver; None for the recipe's.
        atol: absolute tolerance of the solver; None for the recipe's.
        validation_fraction: share of the series that is held out to pick the best epoch, of every class its part;
            0 for none. Classes keep at least one series for training.
        validation_metric: what picks the best epoch: "accuracy", "auroc", "loss", or "auto" for the loss with two
            classes and the accuracy with more.
        patience: epochs without a better validation after which training stops; None for the recipe's.
            With "tuned", and where the validation loss decides (two classes, numbers), that is a quarter of all epochs.
        class_weight: None, "balanced", or a weight per label.
        calibration: "temperature" divides the logits by the number that makes probabilities fit the validation series
            best; None leaves them.
        model_options: further settings for `build_model`, such as `{"learn_bandwidths": True, "solver": "bosh3"}`.
        device: "auto", "cpu", "cuda", ...
        precision: "32-true", "64-true", "bf16-mixed"; None for the recipe's.
        random_state: seed of weights, order, split and observation dropout; the same seed gives the same model.
        verbose: 1 shows a progress bar.
        directory: where training keeps checkpoints and metrics; a `fit` that was interrupted resumes from there.

    Attributes:
        classes_: the labels, in the order of the columns of `predict_proba`.
        n_features_in_: columns of a table `(n, time)`; channels of every other input.
        predictor_: the trained `Predictor`.
    """

    task: ClassVar[Task] = "classification"
    classes_: np.ndarray

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
        validation_metric: str = "auto",
        patience: int | None = None,
        class_weight: Any = None,
        calibration: str | None = None,
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
        self.validation_metric = validation_metric
        self.patience = patience
        self.class_weight = class_weight
        self.calibration = calibration
        self.model_options = model_options
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose
        self.directory = directory

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        static: Any = None,
        times: Any = None,
        validation: Any = None,
    ) -> "CDEClassifier":
        """Train on series with a label each.

        Args:
            X: the series, see the class.
            y: their labels: text or numbers.
            sample_weight: a weight per series.
            static: `(n, features)`, what does not change with time; joined at the readout. In a `SeriesSet` already.
            times: stamps, as `SeriesSet.from_arrays` takes them; likewise.
            validation: `(X, y)` or `(X, y, sample_weight)` to validate on, instead of a split of the training series.
        """
        require_targets(self, y)
        check_choice("calibration", self.calibration, (None, "temperature"))
        check_choice("validation_metric", self.validation_metric, ("auto", "accuracy", "auroc", "loss"))
        series = series_of(self, X, static, times, fitting=True)
        classes, targets = np.unique(_labels(y), return_inverse=True)
        check_pairs(series, targets, y)
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only, {classes.tolist()[0]!r}; a classifier needs series of at least two classes"
            )
        weights = checked_weights(sample_weight, len(series))
        importance = self._importance(classes, targets)
        held = self._validation(validation, classes, bare=static is None and times is None)
        metric = self.judged_by(classes)
        predictor, used = self._train(
            series,
            targets,
            weights * importance[targets],
            held and (held[0], held[1], held[2] * importance[held[1]]),
            CrossEntropy("auroc" if metric == "auroc" else "accuracy"),
            "loss" if metric == "loss" else "metric",
            len(classes),
            lambda _: {"labels": classes},
        )
        self._adopt(self._calibrated(predictor, used, importance))
        return self

    def judged_by(self, y: Any) -> str:
        """See `validation_metric`; y may be all labels, or one of each."""
        if self.validation_metric != "auto":
            return self.validation_metric
        return "loss" if len(np.unique(_labels(y))) == 2 else "accuracy"

    def predict(self, X: Any, *, static: Any = None, times: Any = None) -> np.ndarray:
        """The likeliest label of each series at the end of its window."""
        series = self._series(X, static, times)
        return self.predictor_.predict(series)

    def predict_proba(self, X: Any, *, static: Any = None, times: Any = None) -> np.ndarray:
        """The probability of each class (columns as `classes_`) at the end of each series' window."""
        series = self._series(X, static, times)
        return self.predictor_.probabilities(series)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, static: Any = None, times: Any = None) -> float:
        """The share of right labels."""
        return float(accuracy_score(y, self.predict(X, static=static, times=times), sample_weight=sample_weight))

    def _adopt(self, predictor: Predictor) -> None:
        super()._adopt(predictor)
        assert predictor.labels is not None
        self.classes_ = predictor.labels

    def _importance(self, classes: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """A weight per class."""
        weight = self.class_weight
        if isinstance(weight, Mapping) and (strange := [label for label in weight if label not in classes.tolist()]):
            raise ValueError(
                f"class_weight names the label {strange[0]!r}, which y does not hold; "
                f"its labels are {listed(classes.tolist())}"
            )
        if not (weight is None or weight == "balanced" or isinstance(weight, Mapping)):
            raise ValueError(f"class_weight is {weight!r}; use None, 'balanced', or a weight per label")
        return np.asarray(compute_class_weight(weight, classes=classes, y=classes[targets]), dtype=np.float64)

    def _validation(self, validation: Any, classes: np.ndarray, bare: bool):
        """The user's validation set with class indices and weights; for `bare` see `split_validation`."""
        held = split_validation(self, validation, bare=bare)
        if held is None:
            return None
        series, y, weights = held
        labels = _labels(y)
        check_pairs(series, labels, y)
        if len(new := np.setdiff1d(labels, classes)):
            raise ValueError(f"the validation set holds the label {new.tolist()[0]!r}, which no training series has")
        return series, np.searchsorted(classes, labels), checked_weights(weights, len(series))

    def _check_held_out(self, found: bool) -> None:
        if self.calibration is not None and not found:
            raise ValueError(
                "calibration needs validation series, and none were held out; "
                "give `validation`, more series, or a larger validation_fraction"
            )

    def _calibrated(self, predictor: Predictor, used: Any, importance: np.ndarray) -> Predictor:
        if self.calibration is None:
            return predictor
        series, targets, weights = used
        # Class weights are a wish for decisions; probabilities are to fit the series as they come.
        weights = np.where(importance > 0, 1 / np.maximum(importance, 1e-300), 0.0)[targets] * weights
        return replace(predictor, temperature=temperature_of(predictor.outputs(series), targets, weights))


def _labels(y: Any) -> np.ndarray:
    """Labels as a flat array, checked."""
    given = list(np.asarray(y, dtype=object).flat)
    texts = sum(isinstance(label, str) for label in given)
    absent = sum(label is None or label is pd.NA or (texts > 0 and label != label) for label in given)
    if absent:
        raise ValueError(f"y holds no label for {absent} of the series; leave these series out, or label them")
    if 0 < texts < len(given):
        raise ValueError("y holds both text and numbers; write all labels one way, as with np.asarray(y, dtype=str)")
    checked = check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0)  # type: ignore[arg-type]
    labels = column_or_1d(checked, warn=True)
    check_classification_targets(labels)
    return labels
