"""Forecasts: what they may know, what they are worth, and how they are kept."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from smoothcde import (
    FORECASTERS,
    CDEForecaster,
    ForecastPredictor,
    ModelFileError,
    Predictor,
    Rolling,
    SeriesError,
    SeriesSet,
)
from smoothcde.training import ForecastError

QUICK = {"hidden": 6, "epochs": 2, "learning_rate": 0.01, "random_state": 0, "stride": 3}


def waves(length=160, seed=0, uneven=False):
    """A recording of two channels with a quarter missing."""
    generator = np.random.default_rng(seed)
    times = np.arange(length, dtype=float)
    if uneven:
        times = np.sort(times + generator.uniform(-0.4, 0.4, length))
    clean = np.stack([np.sin(2 * np.pi * times / 12), 20 + 3 * np.cos(2 * np.pi * times / 12)])
    values = clean + 0.05 * generator.normal(size=clean.shape)
    values[generator.random(values.shape) < 0.25] = np.nan
    return SeriesSet.from_arrays([values], [times], channel_names=["load", "heat"], ids=["plant"])


def quick(model="gru", **settings):
    return CDEForecaster(8, 4, model, **(QUICK | {"baseline": False} | settings))


@pytest.fixture(scope="module")
def fitted():
    """With quantiles and a baseline."""
    return quick("mvc-gp", quantiles=(0.1, 0.5, 0.9), baseline=True).fit(waves().with_window(end=120.0))


@pytest.mark.parametrize("model", FORECASTERS)
def test_every_model_forecasts_with_finite_numbers(model):
    forecast = quick(model, epochs=1, stride=20).fit(waves(uneven=True)).predict(waves(uneven=True))
    assert forecast.values.shape == (1, 4, 2)
    assert np.isfinite(forecast.values).all()


def test_forecasts_come_after_the_last_stamp_or_a_declared_moment(fitted):
    np.testing.assert_allclose(fitted.predict(waves()).times, [[160.0, 161.0, 162.0, 163.0]])
    earlier = fitted.predict(waves().with_window(end=100.5), horizon=2)
    np.testing.assert_allclose(earlier.times, [[101.5, 102.5]])
    assert list(earlier.to_frame().columns) == [
        "id",
        "time",
        *(f"{name}{end}" for name in ("load", "heat") for end in ("", "_q0.1", "_q0.5", "_q0.9")),
    ]


@pytest.mark.parametrize("model", ["mvc-gp", "cubic", "gru", "linear-forecast", "last-value"])
def test_nothing_after_the_end_of_a_window_changes_a_forecast(model):
    forecaster = quick(model, epochs=1, stride=10).fit(waves(uneven=True))
    series, origin = waves(uneven=True), 100.2
    later = np.where(series.times > origin, 1e6, series.values.T)
    changed = SeriesSet.from_arrays([later], [series.times], channel_names=series.channel_names)
    before = forecaster.predict(series.with_window(end=origin)).values
    np.testing.assert_array_equal(forecaster.predict(changed.with_window(end=origin)).values, before)
    # And it is no constant: what came before does change it.
    other = SeriesSet.from_arrays([series.values.T + 1.0], [series.times], channel_names=series.channel_names)
    assert not np.allclose(forecaster.predict(other.with_window(end=origin)).values, before)


def test_what_training_never_reaches_changes_no_weight():
    """Validation and training windows of the first part do not look into the rest of the recording."""
    series = waves()
    later = np.where(series.times > 120.0, -1e6, series.values.T)
    changed = SeriesSet.from_arrays([later], [series.times], channel_names=series.channel_names)
    forecasts = [quick().fit(s.with_window(end=120.0)).predict(series).values for s in (series, changed)]
    np.testing.assert_array_equal(*forecasts)


def test_the_validation_part_reaches_neither_scaling_nor_training(monkeypatch):
    import smoothcde.estimators.forecaster as module

    seen = {}

    def spy(model, series, targets, *rest, **named):
        seen["training"], seen["validation"] = (series, targets), named["validation"]

    monkeypatch.setattr(module, "train", spy)
    with pytest.raises(TypeError):  # the spy trains nothing and keeps no record
        quick(validation_fraction=0.25, stride=1).fit(waves())
    cut = 159 * 0.75
    histories, _ = seen["training"]
    assert (histories.end + 4 <= cut).all()
    others, _, _ = seen["validation"]
    assert (others.end >= cut - 1e-9).all()


def test_a_training_window_never_holds_its_targets():
    """Targets that no history of the same window shares: values are unlike everywhere, so equal ones would tell."""
    series, rolling = waves(uneven=True), Rolling(8, 4, 1.0)
    owner, moments = rolling.origins(series)
    histories, futures = rolling.histories(series, owner, moments), rolling.futures(series, owner, moments)
    for i in range(len(moments)):
        known = histories[i].values
        assert not np.isin(futures[i][np.isfinite(futures[i])], known[np.isfinite(known)]).any()


def test_quantiles_never_cross(fitted):
    generator = np.random.default_rng(0)
    wild = [1e3 * generator.normal(size=(2, 30)) for _ in range(20)]
    bands = fitted.predict(SeriesSet.from_arrays(wild, channel_names=["load", "heat"])).bands
    assert bands.shape == (3, 20, 4, 2)
    assert (np.diff(bands, axis=0) >= 0).all()


def test_quantiles_hold_their_share_of_noise():
    generator = np.random.default_rng(0)
    noise = SeriesSet.from_arrays(generator.normal(size=(1, 1, 600)))
    forecaster = CDEForecaster(16, 2, "linear-forecast", quantiles=(0.1, 0.5, 0.9), random_state=0)
    forecaster.set_params(learning_rate=0.03, epochs=8, batch_size=16)
    found = forecaster.fit(noise).backtest(SeriesSet.from_arrays(generator.normal(size=(1, 1, 600))))
    assert found.interval == pytest.approx(0.8)
    assert abs(found.table.loc["linear-forecast", "coverage"] - 0.8) < 0.06


def test_a_linear_forecaster_learns_waves_that_the_last_value_misses():
    forecaster = CDEForecaster(12, 6, "linear-forecast", random_state=0, learning_rate=0.05, epochs=10, batch_size=16)
    forecaster.fit(waves(300))
    table = forecaster.backtest(waves(200, seed=1)).table
    assert table.loc["linear-forecast", "MSE"] < 0.2 * table.loc["last-value", "MSE"]


def test_a_backtest_is_what_predicting_from_each_origin_gives(fitted):
    series = waves(seed=2).with_window(start=100.0)
    found = fitted.backtest(series, step=5)
    assert list(found.table.index) == ["mvc-gp", "linear-forecast", "last-value"]
    values, absolute, inside, last = series.values, [], [], []
    naive = np.nanmean(np.abs(np.diff(waves().values[:97], axis=0)), axis=0)  # a fifth of 0 ... 120 is held out
    for origin in np.arange(107, 156, 5):
        forecast = fitted.predict(waves(seed=2).with_window(end=float(origin)))
        truth = values[origin + 1 : origin + 5]
        known = values[: origin + 1]
        carried = np.array([c[np.isfinite(c)][-1] for c in known.T])
        absolute.append(np.abs(forecast.values[0] - truth) / naive)
        last.append(np.abs(carried - truth) / naive)
        met = (forecast.bands[0, 0] <= truth) & (truth <= forecast.bands[2, 0])
        inside.append(np.where(np.isnan(truth), np.nan, met))
    assert found.origins == len(absolute)
    assert found.table.loc["mvc-gp", "MASE"] == pytest.approx(np.nanmean(absolute), rel=1e-5)
    assert found.table.loc["mvc-gp", "coverage"] == pytest.approx(np.nanmean(inside))
    assert found.table.loc["last-value", "MASE"] == pytest.approx(np.nanmean(last), rel=1e-5)


def test_targets_may_be_judged_by_a_more_complete_recording(fitted):
    whole = waves(seed=2)
    sparse = np.where(np.arange(160) % 5 == 0, np.nan, whole.values.T)
    seen = SeriesSet.from_arrays([sparse], [whole.times], channel_names=whole.channel_names)
    count = sum(fitted.backtest(seen, truth=whole).tallies["mvc-gp"].count)
    assert count > sum(fitted.backtest(seen).tallies["mvc-gp"].count)


def test_forecasts_move_with_the_units_of_the_series():
    """RevIN and standardisation: other units of the training series give the same forecasts, in those units."""
    series = waves()
    other = SeriesSet.from_arrays([1000.0 * series.values.T - 7.0], [series.times], channel_names=series.channel_names)
    one, two = (quick(precision="64-true").fit(s).predict(s).values for s in (series, other))
    np.testing.assert_allclose(two, 1000.0 * one - 7.0, rtol=1e-6)


def test_many_series_and_channels_one_by_one_are_as_good_as_one_recording():
    several = SeriesSet.from_arrays([waves(60, seed=k).values.T for k in range(3)], channel_names=["load", "heat"])
    forecaster = quick("mvc-gp", independent=True, periods=(12.0,)).fit(several)
    both = forecaster.predict(several).values
    # Channel by channel: what the other does changes nothing.
    half = [np.where([[True], [False]], block, 0.0) for block in (s.values.T for s in (several[i] for i in range(3)))]
    alone = forecaster.predict(SeriesSet.from_arrays(half, channel_names=["load", "heat"])).values
    np.testing.assert_allclose(alone[..., 0], both[..., 0], rtol=1e-4)


def test_saved_and_loaded_is_identical(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    files = sorted(file.name for file in (tmp_path / "model").iterdir())
    assert files == ["manifest.json", "model.json", "weights.safetensors"]
    again = CDEForecaster.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(waves()).bands, fitted.predict(waves()).bands)
    assert again.backtest(waves()).table.equals(fitted.backtest(waves()).table)
    assert again.get_params()["context"] == 8
    with pytest.raises(ModelFileError, match=r"holds a forecaster; load it with CDEForecaster\.load"):
        Predictor.load(tmp_path / "model")


def test_a_forecaster_saved_before_last_values_were_kept_forecasts_as_it_did(fitted, tmp_path):
    known = {name: value for name, value in fitted.predictor_.architecture.items() if name != "carry"}
    replace(fitted.predictor_, architecture=known).save(tmp_path / "old")
    old, silent = ForecastPredictor.load(tmp_path / "old"), waves().with_window(end=162.0)
    assert (old.model.carry, fitted.predictor_.model.carry) == (None, 1.0)
    assert not np.allclose(old.forecast(silent).values, fitted.predict(silent).values)


def test_scikit_learns_ways(fitted):
    assert clone(fitted).get_params() == fitted.get_params()
    assert not hasattr(clone(fitted), "predictor_")
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict(waves()).values, fitted.predict(waves()).values)
    assert quick().set_params(context=5).context == 5
    one, two = (quick().fit(waves()).predict(waves()).values for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_an_interrupted_fit_goes_on(tmp_path):
    whole = quick(directory=tmp_path / "run").fit(waves())
    again = quick(directory=tmp_path / "run").fit(waves())
    np.testing.assert_array_equal(whole.predict(waves()).values, again.predict(waves()).values)
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()


class TestWrongUse:
    def test_a_horizon_longer_than_trained(self, fitted):
        with pytest.raises(ValueError, match=r"horizon is 9; this forecaster was trained for 1 to 4 steps: fit one"):
            fitted.predict(waves(), horizon=9)

    def test_channels_that_are_missing(self, fitted):
        series = SeriesSet.from_arrays(waves().values.T[None, :1], channel_names=["load"])
        with pytest.raises(ValueError, match="this model needs the channels heat, which the series lack"):
            fitted.predict(series)

    def test_a_window_without_an_observation(self, fitted):
        with pytest.raises(ValueError, match="no observation of series 'plant' in the 8 steps of 1 before the"):
            fitted.predict(waves().with_window(end=300.0))

    def test_time_that_goes_backwards(self, fitted):
        with pytest.raises(SeriesError, match="times"):
            fitted.predict([np.ones((2, 3))], times=[[0.0, 2.0, 1.0]])

    def test_series_too_short_for_a_window(self):
        with pytest.raises(ValueError, match=r"no series spans 8 \+ 4 steps of 1 with observations in both"):
            quick(validation_fraction=0.0).fit(waves(10))

    def test_series_too_short_to_hold_anything_out(self):
        with pytest.warns(UserWarning, match="too short to hold their ends out, so the last epoch is kept"):
            quick().fit(waves(14))

    def test_validation_series_too_short_to_validate(self):
        with pytest.raises(ValueError, match=r"no validation series spans 8 \+ 4 steps of 1 with observations in both"):
            quick().fit(waves(), waves(9))

    def test_validation_arrays_have_no_times_of_their_own(self):
        values = np.sin(np.arange(60.0))[None, None]
        with pytest.raises(ValueError, match="give the validation series as a SeriesSet, which brings its own"):
            quick().fit(values, values, times=3600.0 * np.arange(60))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"quantiles": (0.1, 0.9)}, r"quantiles are \(0.1, 0.9\); give levels between 0 and 1 in rising order"),
            ({"quantiles": (0.9, 0.5, 0.1)}, "in rising order, as many below 0.5 as above"),
            ({"context": 1}, "context is 1; give a whole number of at least 2"),
            ({"context": 24.5}, "context is 24.5; give a whole number of at least 2"),
            ({"periods": 24.0}, "periods are 24.0; give lengths of time above 0"),
            ({"horizon": 0}, "horizon is 0; give a whole number of at least 1"),
            ({"step": -1.0}, "step is -1.0; give the time between forecast steps, above 0"),
            ({"model": "arima"}, "model is 'arima'; use any of: 'linear'"),
            ({"model": "last-value", "quantiles": (0.1, 0.5, 0.9)}, "'last-value' knows no quantiles"),
            ({"periods": (0.0,)}, r"periods are \(0.0,\); give lengths of time above 0"),
        ],
    )
    def test_parameters(self, settings, message):
        with pytest.raises(ValueError, match=message):
            quick().set_params(**settings).fit(waves())

    def test_a_validation_set_of_other_channels(self):
        with pytest.raises(ValueError, match="trained on 2 channels; the series have 1"):
            quick().fit(waves(), validation=np.zeros((1, 1, 40)))

    def test_a_model_that_is_no_forecaster(self, tmp_path):
        from toy_series import irregular, quick_regressor

        quick_regressor(epochs=1).fit(*irregular()).save(tmp_path / "model")
        with pytest.raises(ModelFileError, match="a model for regression, no forecaster; load it with Predictor"):
            CDEForecaster.load(tmp_path / "model")


def test_missing_targets_do_not_teach():
    """A channel whose future is never observed keeps its weights: the other's targets alone decide."""
    assert ForecastError().targets(np.full((1, 2, 2), np.nan)).isnan().all()
    series = waves()
    sparse = series.values.copy()
    sparse[60:, 1] = np.nan
    some = SeriesSet.from_arrays([sparse.T], [series.times], channel_names=series.channel_names)
    forecast = quick().fit(some).predict(series)
    assert np.isfinite(forecast.values).all()


def test_validation_channels_are_found_by_name():
    times = np.arange(120.0)
    values = np.stack([np.sin(times / 3), 100 + 5 * np.cos(times / 5)])
    losses = []
    for order in ([0, 1], [1, 0]):
        held = SeriesSet.from_arrays([values[order]], [times], channel_names=[["a", "b"][i] for i in order])
        series = SeriesSet.from_arrays([values], [times], channel_names=["a", "b"]).with_window(end=90.0)
        forecaster = CDEForecaster(8, 4, "gru", hidden=6, epochs=1, random_state=0, baseline=False)
        forecaster.fit(series, held.with_window(start=83.0))
        losses.append(forecaster.predictor_.record["epochs"][0]["validation_loss"])
    assert losses[0] == losses[1]


@pytest.mark.parametrize("model", ["mvc-gp", "rectilinear", "gru"])
def test_equations_that_forecast_may_move_by_themselves(model):
    series = SeriesSet.from_arrays([np.sin(np.arange(80.0))[None]])
    found = CDEForecaster(8, 4, model, hidden=8, epochs=1, baseline=False, random_state=0).fit(series)
    settings = found.predictor_.architecture
    assert settings.get("integral_channels", False) == (model == "mvc-gp")
    still = CDEForecaster(
        8, 4, "mvc-gp", hidden=8, epochs=1, baseline=False, model_options={"integral_channels": False}
    )
    assert still.fit(series).predictor_.architecture["integral_channels"] is False
