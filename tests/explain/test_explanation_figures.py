"""The same explanation as matplotlib figures."""

import io

import numpy as np
import pytest
from explained_series import IDS, SERIES, small_predictor
from matplotlib.dates import num2date

from smoothcde import explain
from smoothcde.series import SeriesSet


def saved(figure) -> int:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=30)
    return len(file.getvalue())


def test_there_is_a_figure_per_series_with_all_its_panels():
    figures = explain(small_predictor(), SERIES).figures()
    assert tuple(figures) == IDS
    labels = [axis.get_ylabel() for axis in figures["ward 1"].axes]
    assert labels == ["heart rate", "oxygen", "never measured", "attention", "steps", ""]
    assert all(saved(figure) > 1000 for figure in figures.values())


def test_values_are_in_the_users_units_and_time():
    observed = explain(small_predictor(), SERIES).figures()["ward 1"].axes[0].lines[0]
    np.testing.assert_allclose(observed.get_xdata(), [100.0, 102.0, 103.0, 110.0])
    np.testing.assert_allclose(observed.get_ydata(), [71.0, 88.0, 90.0, 74.0], rtol=1e-5)


def test_probabilities_are_bars_with_the_likeliest_first():
    explanation = explain(small_predictor(), SERIES, truth=["stays"] * 4)
    figure, answer = explanation.figures()["ward 1"], explanation.series[0].answer
    widths = [bar.get_width() for bar in figure.axes[-1].patches]
    np.testing.assert_allclose(widths, sorted(answer.numbers, reverse=True))
    names = [label.get_text() for label in figure.axes[-1].get_yticklabels()]
    assert names[0] == answer.names[int(answer.numbers.argmax())]
    assert figure.get_suptitle() == f"mvc-gp on series ward 1, at 110: {answer.text}; truth: stays"


def test_a_regression_is_told_in_the_title():
    explanation = explain(small_predictor(task="regression"), SERIES)
    figure = explanation.figures()["ward 1"]
    assert [axis.get_ylabel() for axis in figure.axes][-1] == "steps"
    assert explanation.series[0].answer.text in figure.get_suptitle()


def test_a_model_without_a_path_shows_what_there_is_and_says_so():
    figure = explain(small_predictor("gru"), SERIES).figures()["ward 1"]
    assert [axis.get_ylabel() for axis in figure.axes] == ["heart rate", "oxygen", "never measured", ""]
    assert "gru has no path to draw" in figure.get_suptitle()
    assert saved(figure) > 1000


def test_channels_can_be_picked_by_name():
    explanation = explain(small_predictor(), SERIES)
    figure = explanation.figures(channels=["oxygen"])["ward 1"]
    assert [axis.get_ylabel() for axis in figure.axes[:1]] == ["oxygen"]
    with pytest.raises(ValueError, match="there is no channel 'pulse'; use any of: 'heart rate', 'oxygen'"):
        explanation.figures(channels=["pulse"])


def test_names_with_dollars_are_not_read_as_mathematics():
    series = SeriesSet.from_arrays(np.ones((1, 1, 3)), ids=["$x_{"], channel_names=["price in $ or $^"])
    figure = explain(small_predictor(series=series), series).figures()["$x_{"]
    assert saved(figure) > 1000
    assert figure.axes[0].get_ylabel() == r"price in \$ or \$^"


def test_dates_are_on_the_axis_as_dates():
    series = SeriesSet.from_arrays(np.ones((1, 1, 3)), 1.7e9 + 3600.0 * np.arange(3))
    figure = explain(small_predictor(series=series, time_scale=7200.0), series).figures()[0]
    observed = figure.axes[0].lines[0].get_xdata()
    assert num2date(observed[0]).strftime("%Y-%m-%d %H:%M:%S") == "2023-11-14 22:13:20"
    steps = [axis for axis in figure.axes if axis.get_ylabel() == "steps"]
    assert steps[0].get_xlabel() == "time (UTC)"
    assert saved(figure) > 1000
