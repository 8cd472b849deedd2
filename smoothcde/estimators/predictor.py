"""`Predictor`: a trained model with all that turns raw series into answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
import torch
from scipy.special import softmax

from smoothcde.data import ChannelScaler
from smoothcde.estimators.documents import (
    names_from_json,
    plain,
    rebuilt,
    scaler_from_json,
    scaler_to_json,
    versions,
)
from smoothcde.estimators.labels import labels_from_json, labels_to_json
from smoothcde.estimators.naming import channels_by_name, static_by_name
from smoothcde.estimators.scaling import ColumnScaler
from smoothcde.models import FrozenModel, FrozenOutcome, Outcome, SeriesModel, build_model, parameter_count
from smoothcde.series import SeriesBatch, SeriesSet
from smoothcde.series.problems import counted
from smoothcde.solve import StepPlan
from smoothcde.storage import Contents, ModelFileError, read_directory, rebuilding, write_directory

Task = Literal["classification", "regression"]

BATCH_SIZE = 256
"""Series that are predicted at a time."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """What a training leaves behind: a model, and how series become its inputs and its outputs become answers.

    It takes series in the user's own units, knows nothing of scikit-learn, and is what a model directory holds.

    ```python
    predictor = Predictor.load("sepsis-model")
    predictor.predict(series)                                    # at the end of each series' window
    predictor.predict(series.with_window(end=24.0))              # as if it were hour 24: later values are not seen
    ```

    A prediction is made at the end of a series' window from the observations inside that window, and from nothing
    else. Windows may be longer, shorter, earlier or later than those of the training: time counts from each window's
    start in the training's time scale (`model.time_scale`), so a bandwidth of two hours stays one of two hours. What a
    model says about windows much longer than it was trained on is an extrapolation all the same.

    Attributes:
        task: "classification" or "regression".
        architecture: `name` and settings with which `build_model` makes the model.
        model: the trained model.
        scaler: standardises the channels.
        channel_names: the channels it was trained on, in order.
        static_names: the static features it was trained on, in order; empty without.
        static_scaler: standardises them.
        labels: the classes, in the order of the outputs; None for regression.
        targets: brings outputs back to the targets' units; None for classification.
        target_names: names of the targets of a regression.
        temperature: what logits are divided by before they become probabilities; 1 unless calibrated.
        plan: the steps of every solve, where they are frozen; series outside the plan are solved adaptively.
        record: of the training, and the versions it ran on; for people, never needed to predict.
    """

    task: Task
    architecture: Mapping[str, Any]
    model: SeriesModel
    scaler: ChannelScaler
    channel_names: tuple[str, ...]
    static_names: tuple[str, ...] = ()
    static_scaler: ColumnScaler | None = None
    labels: np.ndarray | None = None
    targets: ColumnScaler | None = None
    target_names: tuple[str, ...] = ()
    temperature: float = 1.0
    plan: StepPlan | None = None
    record: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        found = counted(len(self.target_names), "target") if self.labels is None else f"{len(self.labels)} classes"
        size = f"{counted(len(self.channel_names), 'channel')}, {parameter_count(self.model):,} parameters"
        return f"Predictor({self.architecture['name']}, {self.task}, {found}, {size})"

    def prepare(self, series: SeriesSet) -> SeriesSet:
        """The series as the model takes them: the right channels and static features, standardised.

        Channels and static features are found by name where both sides name the same ones, by position otherwise.
        """
        series = channels_by_name(series, self.channel_names)
        scaled = self.scaler.transform(series)
        if self.static_scaler is None:
            return replace(scaled, static=None, static_names=())
        static = self.static_scaler.transform(static_by_name(series, self.static_names))
        return replace(scaled, static=static, static_names=self.static_names)

    def outputs(self, series: SeriesSet) -> np.ndarray:
        """`[n, outputs]` as the model gives them: logits, or standardised targets."""
        parts = [outcome.outputs.double().cpu().numpy() for _, outcome in self._solved(series, BATCH_SIZE)]
        return np.concatenate(parts) if parts else np.zeros((0, int(self.architecture["outputs"])))

    def probabilities(self, series: SeriesSet) -> np.ndarray:
        """`[n, classes]`, calibrated if the training was asked to; columns in the order of `labels`."""
        return self.probabilities_of(self.outputs(series))

    def probabilities_of(self, outputs: np.ndarray) -> np.ndarray:
        """Probabilities of logits that are at hand."""
        if self.task != "classification":
            raise ValueError("this model was trained for regression and has no probabilities; use `predict`")
        return softmax(outputs / self.temperature, axis=1)

    def predict(self, series: SeriesSet) -> np.ndarray:
        """The likeliest label of each series, `[n]`; or its targets, `[n, targets]`."""
        return self.answers_of(self.outputs(series))

    def answers_of(self, outputs: np.ndarray) -> np.ndarray:
        """Labels or targets of outputs that are at hand."""
        if self.labels is not None:
            return self.labels[outputs.argmax(axis=1)]
        assert self.targets is not None
        return self.targets.inverse(outputs)

    def solve(self, series: SeriesSet) -> tuple[SeriesBatch, Outcome]:
        """Everything the model has to say about these series, in one batch: for explanations and plots.

        Values and paths are standardised; `scaler` brings them back.
        """
        return next(self._solved(series, max(len(series), 1)))

    def frozen(self, series: SeriesSet, coverage: float = 0.99, within: float = 10.0) -> "Predictor":
        """The same predictor on frozen steps, fixed by a plan that holds for a share of these series.

        ```python
        quick = predictor.frozen(train)
        quick.predict(series), quick.flagged(series)
        ```

        Args:
            series: for calibration, like those to be predicted; the training series, say. No labels are needed.
            coverage: see `StepPlan.calibrate`.
            within: likewise.
        """
        self.model.eval()
        return replace(self, plan=StepPlan.calibrate(self.model, self.prepare(series), coverage, within))

    def flagged(self, series: SeriesSet) -> np.ndarray:
        """`[n]`, which series are outside the plan, and so solved adaptively."""
        if self.plan is None:
            raise ValueError("this predictor has no frozen steps, so nothing is outside them; make one with `frozen`")
        outcomes = [outcome for _, outcome in self._solved(series, BATCH_SIZE)]
        return np.concatenate([o.flagged for o in outcomes if isinstance(o, FrozenOutcome)] or [np.zeros(0, bool)])

    def save(self, directory: str | PathLike[str]) -> None:
        """Write a model directory, whole or not at all; one that is there already is replaced."""
        write_directory(directory, self.contents())

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> "Predictor":
        """The predictor of a model directory; `ModelFileError` if it is damaged, incomplete or of a newer format."""
        return cls.of_contents(read_directory(directory), directory)

    def contents(self) -> Contents:
        """What `save` writes."""
        return Contents(self._document(), dict(self.model.state_dict()))

    @classmethod
    def of_contents(cls, contents: Contents, directory: str | PathLike[str]) -> "Predictor":
        """What `load` makes of a directory's contents; the directory is named in messages."""
        if "stream" in contents.document:
            raise ModelFileError(f"'{directory}' holds a stream; load it with StreamingPredictor.load")
        if contents.document.get("task") == "forecasting":
            raise ModelFileError(f"'{directory}' holds a forecaster; load it with CDEForecaster.load")
        with rebuilding("a model", directory):
            return cls._of(contents)

    def _solved(self, series: SeriesSet, batch_size: int) -> Iterator[tuple[SeriesBatch, Outcome]]:
        prepared = self.prepare(series)
        self.model.eval()
        model = self.model if self.plan is None else FrozenModel(self.model, self.plan, fallback="adaptive")
        like = next(p for p in self.model.parameters() if p.is_floating_point())
        for begin in range(0, len(prepared), batch_size):
            chosen = np.arange(begin, min(begin + batch_size, len(prepared)))
            batch = prepared.batch(chosen, device=like.device, dtype=like.dtype)
            with torch.no_grad():
                outcome = model.solve(batch)
            yield batch, outcome

    def _document(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "architecture": plain(self.architecture),
            "dtype": str(next(self.model.parameters()).dtype).removeprefix("torch."),
            "channels": {"names": list(self.channel_names), **scaler_to_json(self.scaler)},
            "static": self.static_scaler and {"names": list(self.static_names), **scaler_to_json(self.static_scaler)},
            "labels": None if self.labels is None else labels_to_json(self.labels),
            "targets": self.targets and {"names": list(self.target_names), **scaler_to_json(self.targets)},
            "temperature": self.temperature,
            "plan": self.plan and self.plan.as_dict(),
            "versions": versions(),
            "record": plain(self.record),
        }

    @classmethod
    def _of(cls, contents: Contents) -> "Predictor":
        document, tensors = contents.document, contents.tensors
        task = document["task"]
        if task not in ("classification", "regression"):
            raise ValueError(f"there is no task {task!r}")
        architecture = dict(document["architecture"])
        model = rebuilt(lambda: build_model(**architecture), document["dtype"], tensors)
        channels, static, targets = document["channels"], document["static"], document["targets"]
        labels = None if document["labels"] is None else labels_from_json(document["labels"])
        predictor = cls(
            task=task,
            architecture=architecture,
            model=model,
            scaler=scaler_from_json(channels, ChannelScaler),
            channel_names=names_from_json(channels),
            static_names=names_from_json(static) if static else (),
            static_scaler=scaler_from_json(static, ColumnScaler) if static else None,
            labels=labels,
            targets=scaler_from_json(targets, ColumnScaler) if targets else None,
            target_names=names_from_json(targets) if targets else (),
            temperature=float(document["temperature"]),
            plan=StepPlan.from_dict(plan) if (plan := document.get("plan")) else None,
            record=dict(document["record"]),
        )
        predictor._check()
        return predictor

    def _check(self) -> None:
        """Refuse parts that do not belong together."""
        outputs = int(self.architecture["outputs"])
        answers = self.labels if self.task == "classification" else self.targets and self.targets.mean
        for what, found, expected in (
            ("channels", len(self.channel_names), self.model.channels),
            ("channel statistics", len(self.scaler.mean), self.model.channels),
            ("static features", len(self.static_names), self.model.static),
            ("classes or targets", 0 if answers is None else len(answers), outputs),
        ):
            if found != expected:
                raise ValueError(f"{found} {what} for a model of {expected}")
        if self.plan is not None:
            FrozenModel(self.model, self.plan)  # refuses a plan for another model
        if not self.temperature > 0:
            raise ValueError(f"a temperature of {self.temperature}")
