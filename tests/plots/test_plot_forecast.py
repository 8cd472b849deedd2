"""Pictures of forecasts show what was seen, what is expected, and what came."""

import numpy as np
import pytest

from smoothcde import CDEForecaster, SeriesSet
from smoothcde.plots import plot_forecast


def recording(shift=0.0):
    times = np.arange(80.0)
    values = np.stack([shift + np.sin(times / 3), np.cos(times / 3)])
    values[1, ::4] = np.nan
    return SeriesSet.from_arrays([values], [times], channel_names=["load", "heat"])


@pytest.fixture(scope="module")
def predictor():
    settings = {"hidden": 4, "epochs": 1, "stride": 10, "baseline": False, "random_state": 0, "bandwidths": (0.05, 1.0)}
    return CDEForecaster(12, 5, quantiles=(0.1, 0.5, 0.9), **settings).fit(recording(50.0)).predictor_


def lines_of(axis):
    return {line.get_label(): line for line in axis.lines}


def test_forecast_interval_and_truth_are_where_the_numbers_are(predictor):
    history, whole = recording(50.0).with_window(end=60.0), recording(50.0)
    figure = plot_forecast(predictor, history, truth=whole, title="Plant")
    forecast = predictor.forecast(history)
    top = lines_of(figure.axes[0])
    np.testing.assert_allclose(top["forecast"].get_xdata(), [61, 62, 63, 64, 65])
    np.testing.assert_allclose(top["forecast"].get_ydata(), forecast.values[0, :, 0])
    np.testing.assert_allclose(top["what came"].get_ydata(), whole.values[61:66, 0])
    assert [axis.get_ylabel() for axis in figure.axes] == ["load", "heat"]
    assert {p.get_label() for p in figure.axes[0].collections} == {"80% interval"}


def test_paths_are_drawn_in_the_units_of_the_series_over_the_context_only(predictor):
    figure = plot_forecast(predictor, recording(50.0).with_window(end=60.0))
    path = lines_of(figure.axes[0])[f"view 1, bandwidth {0.05 * 11:.3g}"]
    t, x = path.get_xdata(), path.get_ydata()
    assert (t.min(), t.max()) == pytest.approx((49.0, 60.0), abs=1e-3)
    # The sharpest view follows the observations closely; they lie around 50.
    assert np.abs(x - (50.0 + np.sin(t / 3))).mean() < 0.3


def test_models_without_paths_are_drawn_without(predictor):
    plain = CDEForecaster(12, 5, "last-value").fit(recording()).predictor_
    figure = plot_forecast(plain, recording(), channels=[1])
    assert set(lines_of(figure.axes[0])) >= {"observed", "forecast"}
    assert not any(label.startswith("view") for label in lines_of(figure.axes[0]))
