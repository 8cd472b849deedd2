"""`ForecastPredictor`: a trained forecaster with all that turns raw series into forecasts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
import torch

from smoothcde.data import ChannelScaler
from smoothcde.estimators.documents import (
    names_from_json,
    plain,
    rebuilt,
    scaler_from_json,
    scaler_to_json,
    versions,
)
from smoothcde.estimators.forecast import Forecast
from smoothcde.estimators.forecast_windows import observed
from smoothcde.estimators.naming import channels_by_name
from smoothcde.evaluation.forecasting import Backtest, ForecastTally
from smoothcde.models import ForecastModel, Outcome, build_forecaster, parameter_count
from smoothcde.series import Rolling, SeriesBatch, SeriesSet
from smoothcde.series.problems import counted, listed
from smoothcde.storage import Contents, ModelFileError, read_directory, rebuilding, write_directory

BATCH_SIZE = 512
"""Windows that are forecast at a time."""
LINEAR, LAST = "linear-forecast", "last-value"


@dataclass(frozen=True, eq=False)
class ForecastPredictor:
    """What the training of a forecaster leaves behind; it is what a model directory holds.

    Attributes:
        architecture: `name` and settings with which `build_forecaster` makes the model.
        model: the trained model.
        rolling: context, horizon and step.
        scaler: standardises the channels.
        channel_names: the channels it was trained on, in order.
        naive: per channel, the mean error of "as one step before" in the training series, in its own units.
        quantiles: levels of the outputs; empty for a plain forecast.
        baseline: a linear forecaster trained on the same windows, to be compared with; None without.
        record: of the training; for people, never needed to forecast.
    """

    architecture: Mapping[str, Any]
    model: ForecastModel
    rolling: Rolling
    scaler: ChannelScaler
    channel_names: tuple[str, ...]
    naive: np.ndarray
    quantiles: tuple[float, ...] = ()
    baseline: ForecastModel | None = None
    record: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        steps = f"{self.rolling.context} steps of {self.rolling.step:g} seen, {self.rolling.horizon} forecast"
        size = f"{counted(len(self.channel_names), 'channel')}, {parameter_count(self.model):,} parameters"
        return f"ForecastPredictor({self.architecture['name']}, {steps}, {size})"

    def prepare(self, series: SeriesSet) -> SeriesSet:
        """The series with the channels of the training, and nothing outside their windows."""
        return replace(channels_by_name(series, self.channel_names), static=None, static_names=()).cropped()

    def forecast(self, series: SeriesSet) -> Forecast:
        """The horizon after the end of each series' window, from what was observed in the context before it."""
        series = self.prepare(series)
        histories = self.rolling.histories(series, np.arange(len(series)), series.end)
        if empty := [f"{series.ids[i]!r}" for i in np.flatnonzero(~observed(histories))]:
            rolling = self.rolling
            raise ValueError(
                f"no observation of series {listed(empty)} in the {rolling.context} steps of {rolling.step:.6g} before "
                "the forecast; leave it out, or end its window where it has some"
            )
        bands = self._outputs(self.model, histories)
        times = series.end[:, None] + np.arange(1, self.rolling.horizon + 1) * self.rolling.step
        return Forecast(
            ids=series.ids,
            channel_names=self.channel_names,
            times=times,
            values=bands[len(bands) // 2],
            quantiles=self.quantiles,
            bands=bands if self.quantiles else None,
        )

    def solve(self, series: SeriesSet) -> tuple[SeriesBatch, Outcome]:
        """The histories before the end of each window as the model took them, and all it has to say, for plots."""
        series = self.prepare(series)
        histories = self.rolling.histories(series, np.arange(len(series)), series.end)
        return next(self._solved(self.model, histories, max(len(series), 1)))

    def backtest(self, series: SeriesSet, every: int = 1, truth: SeriesSet | None = None) -> Backtest:
        """Forecasts from rolling origins, `every` so many steps, beside those of the baselines.

        Args:
            series: whose histories are seen.
            every: steps between origins.
            truth: the same series with targets that `series` lacks, if they are known; `series` by default.
        """
        series = self.prepare(series)
        judge = series if truth is None else self.prepare(truth)
        if len(judge) != len(series):
            raise ValueError(f"there are {len(series)} series and {len(judge)} to judge them by; give as many")
        owner, moments = self.rolling.origins(judge, every)
        last = _last_value(self)
        models = {str(self.architecture["name"]): self.model}
        models |= {name: model for name, model in ((LINEAR, self.baseline), (LAST, last)) if model is not None}
        tallies = {name: ForecastTally(len(self.channel_names)) for name in models}
        judged = 0
        # Windows overlap, so all of them at once would hold each observation `context` times.
        for begin in range(0, len(moments), BATCH_SIZE):
            part = slice(begin, begin + BATCH_SIZE)
            histories = self.rolling.histories(series, owner[part], moments[part])
            futures = self.rolling.futures(judge, owner[part], moments[part])
            usable = observed(histories) & np.isfinite(futures).any(axis=(1, 2))
            if not usable.any():
                continue
            judged += int(usable.sum())
            for name, model in models.items():
                bands = self._outputs(model, histories[usable])
                ends = (bands[0], bands[-1]) if len(bands) > 1 else ()
                tallies[name].add(futures[usable], bands[len(bands) // 2], *ends)
        if not judged:
            rolling = self.rolling
            raise ValueError(
                f"no series spans {rolling.context} + {rolling.horizon} steps of {rolling.step:.6g} with observations "
                "in both; give longer series"
            )
        return Backtest(
            tallies=tallies,
            channel_names=self.channel_names,
            scale=self.scaler.scale,
            naive=self.naive,
            origins=judged,
            skipped=len(moments) - judged,
            interval=self.quantiles[-1] - self.quantiles[0] if self.quantiles else None,
        )

    def save(self, directory: str | PathLike[str]) -> None:
        """Write a model directory, whole or not at all; one that is there already is replaced."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        if self.baseline is not None:
            tensors |= {f"baseline.{name}": tensor for name, tensor in self.baseline.state_dict().items()}
        rolling = self.rolling
        document = {
            "task": "forecasting",
            "architecture": plain(self.architecture),
            "baseline": self.baseline is not None,
            "dtype": str(next(self.model.parameters()).dtype).removeprefix("torch."),
            "channels": {"names": list(self.channel_names), **scaler_to_json(self.scaler), "naive": plain(self.naive)},
            "context": rolling.context,
            "horizon": rolling.horizon,
            "step": rolling.step,
            "quantiles": list(self.quantiles),
            "versions": versions(),
            "record": plain(self.record),
        }
        write_directory(directory, Contents(document, tensors))

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> "ForecastPredictor":
        """The predictor of a model directory; `ModelFileError` if it is damaged or holds no forecaster."""
        contents = read_directory(directory)
        if (task := contents.document.get("task")) != "forecasting":
            raise ModelFileError(f"'{directory}' holds a model for {task}, no forecaster; load it with Predictor.load")
        with rebuilding("a forecaster", directory):
            return cls._of(contents)

    @classmethod
    def _of(cls, contents: Contents) -> "ForecastPredictor":
        document, architecture = contents.document, dict(contents.document["architecture"])
        channels, quantiles = document["channels"], tuple(float(q) for q in document["quantiles"])
        rolling = Rolling(int(document["context"]), int(document["horizon"]), float(document["step"]))
        parts: dict[str, dict[str, torch.Tensor]] = {"model": {}, "baseline": {}}
        for name, tensor in contents.tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        found = cls(
            architecture=architecture,
            model=rebuilt(lambda: build_forecaster(**architecture), document["dtype"], parts["model"]),
            rolling=rolling,
            scaler=scaler_from_json(channels, ChannelScaler),
            channel_names=names_from_json(channels),
            naive=np.array(channels["naive"], dtype=np.float64),
            quantiles=quantiles,
            record=dict(document["record"]),
        )
        model, count = found.model, len(found.channel_names)
        expected = (count, count, rolling.horizon, max(len(quantiles), 1))
        if (len(found.scaler.mean), len(found.naive), model.horizon, model.levels) != expected:
            raise ValueError("parts that do not belong together")
        if not document["baseline"]:
            return found
        linear = linear_baseline(architecture)
        return replace(
            found, baseline=rebuilt(lambda: build_forecaster(**linear), document["dtype"], parts["baseline"])
        )

    def _solved(
        self, model: ForecastModel, histories: SeriesSet, size: int = BATCH_SIZE
    ) -> Iterator[tuple[SeriesBatch, Outcome]]:
        scaled = self.scaler.transform(histories)
        model.eval()
        like = next(model.parameters())
        for begin in range(0, len(scaled), size):
            chosen = np.arange(begin, min(begin + size, len(scaled)))
            batch = scaled.batch(chosen, device=like.device, dtype=like.dtype)
            with torch.no_grad():
                yield batch, model.solve(batch)

    def _outputs(self, model: ForecastModel, histories: SeriesSet) -> np.ndarray:
        """`[levels, n, horizon, channels]` in the series' own units."""
        parts = [outcome.outputs.double().cpu().numpy() for _, outcome in self._solved(model, histories)]
        shape = (-1, model.levels, model.horizon, model.channels)
        bands = np.concatenate(parts).reshape(shape).swapaxes(0, 1) if parts else np.zeros((shape[1], 0, *shape[2:]))
        return bands * self.scaler.scale + self.scaler.mean


def linear_baseline(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """The linear forecaster of the same task."""
    kept = ("channels", "horizon", "context", "time_scale", "levels")
    return {"name": LINEAR, **{key: architecture[key] for key in kept}}


def _last_value(predictor: ForecastPredictor) -> ForecastModel | None:
    if predictor.architecture["name"] == LAST:
        return None
    like = next(predictor.model.parameters())
    settings = {**linear_baseline(predictor.architecture), "name": LAST, "levels": 1}
    return build_forecaster(**settings).to(like.device, like.dtype)
