"""`CDEForecaster`: the next steps of irregular series, from a window of their past."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from smoothcde.checks import check_above_zero, check_choice, check_whole
from smoothcde.data import ChannelScaler
from smoothcde.estimators.architecture import architecture_of
from smoothcde.estimators.forecast import Forecast
from smoothcde.estimators.forecast_predictor import LAST, LINEAR, ForecastPredictor, linear_baseline
from smoothcde.estimators.forecast_windows import Windows, examples_of, naive_error, thinned, windows_of
from smoothcde.estimators.inputs import joined
from smoothcde.estimators.naming import channels_by_name
from smoothcde.estimators.parameters import RecipeParameters
from smoothcde.evaluation.forecasting import Backtest
from smoothcde.models import FORECASTERS, ForecastModel, build_forecaster
from smoothcde.models.forecast import BASELINES
from smoothcde.series import Rolling, SeriesSet
from smoothcde.storage import ModelFileError
from smoothcde.training import ForecastError, Recipe, train


class CDEForecaster(RecipeParameters):
    """Forecasts of irregular multivariate series, with gaps in what was seen and in what is to be learnt.

    ```python
    forecaster = CDEForecaster(context=24, horizon=12, quantiles=(0.1, 0.5, 0.9), random_state=0).fit(series)
    forecast = forecaster.predict(series)                              # the 12 steps after each series' last stamp
    forecast = forecaster.predict(series.with_window(end=1000.0))      # after t = 1000: nothing later is seen
    forecaster.backtest(later).table                                   # MSE, MAE, MASE, coverage, beside baselines
    ```

    A series is one long recording, or there are many. `fit` cuts windows: a history of `context` steps, and the
    `horizon` steps after it (see `Rolling`). Each window is brought to its own scale (RevIN), its path is fitted to its
    history alone, and a linear layer gives the whole horizon. Missing targets count for nothing.

    Args:
        context: steps of history that a forecast sees.
        horizon: steps that are forecast.
        model: any of `smoothcde.MODELS`, or "linear-forecast" (in the manner of DLinear), or "last-value".
        step: time between forecast steps; the median gap of the training stamps where None.
        quantiles: levels in rising order with 0.5 in the middle, such as (0.1, 0.5, 0.9); None for means.
        independent: read every channel as a series of its own, with the same weights, instead of all together.
        periods: lengths of cycles in the series' time, such as (86400.0,) for a day in seconds, whose phase the model
            is told; it sees no clock otherwise.
        stride: steps between the windows that are trained on.
        baseline: whether `fit` also trains a linear forecaster for `backtest` to compare with.
        hidden: units of the state of each view, and of every hidden layer; None for 64, fewer where series have many
            channels.
        bandwidths: as in `CDEClassifier`, fractions of the context.
        noise: likewise.
        recipe: a name of `smoothcde.training.RECIPES`, or a `Recipe`; `random_state` and the loss
            take the place of its `seed` and `select`.
        epochs: passes over the windows. None for the recipe's; "forecast" then passes over few windows more often, so
            as to take 300 steps.
        batch_size: windows per step; None for the recipe's.
        learning_rate: at its highest; None for the recipe's.
        weight_decay: of the optimiser; None for the recipe's.
        dropout: share of each series' stamps hidden at random in training; None for the recipe's.
        rtol: relative tolerance of the solver; None for the recipe's.
        atol: absolute tolerance of the solver; None for the recipe's.
        validation_fraction: share of each series' time, its end, that picks the best epoch; 0 for none.
        patience: epochs without a better validation after which training stops; None for the recipe's.
        model_options: further settings for `build_model`.
        device: "auto", "cpu", "cuda", ...
        precision: "32-true", "64-true", "bf16-mixed"; None for the recipe's.
        random_state: seed of weights and order; the same seed gives the same forecaster.
        verbose: 1 shows a progress bar.
        directory: where training keeps checkpoints and metrics; a `fit` that was interrupted resumes from there.

    Attributes:
        predictor_: the trained `ForecastPredictor`.
        step_: time between forecast steps.
        n_features_in_: channels.
    """

    predictor_: ForecastPredictor
    step_: float
    n_features_in_: int

    def __init__(
        self,
        context: int = 24,
        horizon: int = 24,
        model: str = "mvc-gp",
        *,
        step: float | None = None,
        quantiles: Sequence[float] | None = None,
        independent: bool = False,
        periods: Sequence[float] = (),
        stride: int = 1,
        baseline: bool = True,
        hidden: int | None = None,
        bandwidths: Sequence[float] | float | None = None,
        noise: float | None = None,
        recipe: str | Recipe = "forecast",
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
        self.context = context
        self.horizon = horizon
        self.model = model
        self.step = step
        self.quantiles = quantiles
        self.independent = independent
        self.periods = periods
        self.stride = stride
        self.baseline = baseline
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

    def fit(self, series: Any, validation: Any = None, *, times: Any = None) -> "CDEForecaster":
        """Train on recordings.

        Args:
            series: a `SeriesSet`, or arrays as `SeriesSet.from_arrays` takes them: `(n, channels, time)`, or a list
                with one `(channels, time_i)` per recording.
            validation: recordings that pick the best epoch; the end of each of `series` by default, which is then not
                trained on.
            times: stamps of arrays, as `SeriesSet.from_arrays` takes them.
        """
        self._check_parameters()
        series = _series_of(series, times).cropped()
        step = series.median_step if self.step is None else float(self.step)
        rolling = Rolling(self.context, self.horizon, step)
        if times is not None and validation is not None and not _known_times(validation):
            raise ValueError(
                "times were given for the training series only; give the validation series as a SeriesSet, which "
                "brings its own"
            )
        series, held = self._split(series, validation, rolling)
        training = windows_of(series, rolling, self.stride)
        if training is None:
            raise ValueError(
                f"no series spans {self.context} + {self.horizon} steps of {step:.6g} with observations in both; "
                "give longer series, or a shorter context, horizon or step"
            )
        if held is not None:
            held = thinned(held)
        seed = self._seed()
        recipe = replace(self._recipe(len(training[0])), seed=seed, select="loss")
        predictor = self._built(series, rolling, training[0], recipe)
        scaler, quantiles = predictor.scaler, predictor.quantiles
        folder = None if self.directory is None else Path(self.directory)
        (histories, targets, weights), others = examples_of(training, scaler), held and examples_of(held, scaler)

        def trained(model: ForecastModel, name: str, place: Path | None) -> dict[str, Any]:
            if name == LAST:
                return {}
            record = train(
                model,
                histories,
                targets,
                ForecastError(quantiles or None),
                recipe,
                weights=weights,
                validation=others,
                directory=place,
                progress=self.verbose > 0,
                title=name,
                on_epoch=None if name == LINEAR and model is not predictor.model else self.on_epoch,
            )
            return asdict(record)

        about = {"training_windows": len(histories), "validation_windows": 0 if held is None else len(held[0])}
        about |= {"recipe": asdict(recipe), **trained(predictor.model, self.model, folder)}
        if predictor.baseline is not None:
            trained(predictor.baseline, LINEAR, None if folder is None else folder / "baseline")
        self._adopt(replace(predictor, record=about))
        return self

    def predict(self, history: Any, horizon: int | None = None, *, times: Any = None) -> Forecast:
        """The steps after the end of each series' window: its last stamp, or a declared moment.

        Args:
            history: series as `fit` takes them, of any length; the last `context` steps count.
            horizon: fewer steps than trained on, if fewer are wanted.
            times: stamps of arrays.
        """
        check_is_fitted(self, "predictor_")
        most = self.predictor_.rolling.horizon
        steps = most if horizon is None else horizon
        if not 1 <= steps <= most:
            raise ValueError(
                f"horizon is {steps}; this forecaster was trained for 1 to {most} steps: fit one with horizon={steps}"
            )
        found = self.predictor_.forecast(_series_of(history, times))
        bands = None if found.bands is None else found.bands[:, :, :steps]
        return replace(found, times=found.times[:, :steps], values=found.values[:, :steps], bands=bands)

    def backtest(self, series: Any, step: int = 1, *, truth: Any = None, times: Any = None) -> Backtest:
        """Forecasts from rolling origins, judged by what came, beside last value and linear forecaster.

        Args:
            series: recordings that were not trained on, or their later part (`with_window(start=...)`).
            step: how many forecast steps one origin is after the other.
            truth: the same recordings with targets that `series` lacks, where these are known.
            times: stamps of arrays.
        """
        check_is_fitted(self, "predictor_")
        if step < 1:
            raise ValueError(f"step is {step}; origins are at least 1 step apart")
        judge = None if truth is None else _series_of(truth, times)
        return self.predictor_.backtest(_series_of(series, times), step, judge)

    def save(self, directory: str | PathLike[str]) -> None:
        """Write the fitted forecaster to a directory of its own: safetensors and JSON, whole or not at all."""
        check_is_fitted(self, "predictor_")
        record = {**self.predictor_.record, "estimator": self._params_to_json()}
        replace(self.predictor_, record=record).save(directory)

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> "CDEForecaster":
        """The forecaster that was saved."""
        predictor = ForecastPredictor.load(directory)
        try:
            forecaster = cls(**cls._params_from_json(predictor.record.get("estimator") or {}))
        except (TypeError, ValueError) as error:
            raise ModelFileError(
                f"'{directory}' was saved with parameters that this version does not know ({error}); "
                "ForecastPredictor.load needs none of them"
            ) from error
        forecaster._adopt(predictor)
        return forecaster

    def _adopt(self, predictor: ForecastPredictor) -> None:
        self.predictor_, self.step_ = predictor, predictor.rolling.step
        self.n_features_in_ = len(predictor.channel_names)

    def _check_parameters(self) -> None:
        for name, least in (("context", 2), ("horizon", 1), ("stride", 1)):
            check_whole(name, getattr(self, name), least)
        check_choice("model", self.model, FORECASTERS)
        if self.step is not None:
            check_above_zero("step", self.step, "give the time between forecast steps, above 0")
        if not isinstance(self.periods, Sequence | np.ndarray) or any(not period > 0 for period in self.periods):
            raise ValueError(f"periods are {self.periods!r}; give lengths of time above 0, such as (24.0,)")
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction is {self.validation_fraction}; give a share from 0 to below 1")
        if self.quantiles is not None:
            levels = [float(q) for q in self.quantiles]
            middle = levels[len(levels) // 2] if len(levels) % 2 else None
            if middle != 0.5 or not all(0 < q < 1 for q in levels) or sorted(set(levels)) != levels:
                raise ValueError(
                    f"quantiles are {tuple(self.quantiles)}; give levels between 0 and 1 in rising order, as many "
                    "below 0.5 as above and 0.5 itself, such as (0.1, 0.5, 0.9)"
                )

    def _split(self, series: SeriesSet, validation: Any, rolling: Rolling) -> tuple[SeriesSet, Windows | None]:
        """What is trained on, and the windows that pick the best epoch."""
        if validation is not None:
            given = channels_by_name(_series_of(validation, None).cropped(), series.channel_names)
            held = windows_of(given, rolling, 1)
            if held is None:
                raise ValueError(
                    f"no validation series spans {rolling.context} + {rolling.horizon} steps of {rolling.step:.6g} "
                    "with observations in both; give longer ones, or none to hold out the ends of the training series"
                )
            return series, held
        if self.validation_fraction == 0:
            return series, None
        cut = series.end - self.validation_fraction * (series.end - series.start)
        earlier = series.with_window(end=cut).cropped()
        # The first of these origins is the cut itself: histories reach back before it, targets do not.
        later = series.with_window(start=np.maximum(cut - (rolling.context - 1) * rolling.step, series.start))
        held = windows_of(later, rolling, 1)
        if held is None or windows_of(earlier, rolling, self.stride) is None:
            warnings.warn(
                "the series are too short to hold their ends out, so the last epoch is kept; give validation series",
                stacklevel=3,
            )
            return series, None
        return earlier, held

    def _built(self, series: SeriesSet, rolling: Rolling, histories: SeriesSet, recipe: Recipe) -> ForecastPredictor:
        """A predictor whose models are yet to be trained."""
        quantiles = () if self.quantiles is None else tuple(float(q) for q in self.quantiles)
        settings: dict[str, Any] = {}
        if self.model not in BASELINES:
            chosen = {name: getattr(self, name) for name in ("hidden", "bandwidths", "noise", "rtol", "atol")}
            read = (1 if self.independent else series.channels) + 2 * len(self.periods)
            settings = architecture_of(
                self.model, histories, 1, recipe, chosen, self.model_options, forecasting=True, read=read
            )
            for name in ("name", "channels", "outputs", "static", "time_scale"):
                del settings[name]
            settings |= {"independent": bool(self.independent), "periods": [float(p) for p in self.periods]}
            settings["carry"] = rolling.step
        sizes = {"channels": series.channels, "horizon": self.horizon, "context": self.context}
        sizes |= {"time_scale": rolling.span, "levels": max(len(quantiles), 1)}
        architecture = {"name": self.model, **sizes, **settings}
        device, double = self._device(), recipe.precision == "64-true"

        def made(description: Mapping[str, Any]) -> ForecastModel:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(recipe.seed)
                model = build_forecaster(**description)
            return (model.double() if double else model).to(device)

        wanted = self.baseline and self.model not in BASELINES
        return ForecastPredictor(
            architecture=architecture,
            model=made(architecture),
            rolling=rolling,
            scaler=ChannelScaler.fit(series),
            channel_names=series.channel_names,
            naive=naive_error(series, rolling.step),
            quantiles=quantiles,
            baseline=made(linear_baseline(architecture)) if wanted else None,
        )


def _known_times(series: Any) -> bool:
    """Whether series bring their own times: a `SeriesSet`, or several."""
    several = isinstance(series, list | tuple) and len(series) > 0 and all(isinstance(s, SeriesSet) for s in series)
    return isinstance(series, SeriesSet) or several


def _series_of(series: Any, times: Any) -> SeriesSet:
    if not _known_times(series):
        return SeriesSet.from_arrays(series, times)
    found = series if isinstance(series, SeriesSet) else joined(series)
    if times is not None:
        raise ValueError("a SeriesSet brings its own times; give them when you make it")
    return replace(found, static=None, static_names=())
