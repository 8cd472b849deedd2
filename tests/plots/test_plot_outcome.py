"""The picture of a series: observations, a path per view, attention, and a tick per solver step."""

import io

import numpy as np
import pytest
import torch

from smoothcde.models import MODELS, build_model
from smoothcde.plots import plot_outcome
from smoothcde.series import SeriesSet

nan = np.nan
SERIES = SeriesSet.from_arrays(
    [[[1.0, -0.5, 0.25, nan], [0.8, nan, nan, -1.4], [0.0, 1.0, 0.0, 1.0]], np.ones((3, 0)), np.eye(3)],
    [[100.0, 101.5, 101.9, 105.0], [], [3.0, 4.0, 6.0]],
)


WITHOUT_PATH = ("ode-rnn", "gru-d", "gru", "mamba")


def drawn(name="mvc-gp", series=0, channels=None, **settings):
    torch.manual_seed(0)
    bandwidths = (0.2, 0.6) if name.startswith("mv") else (0.2,)
    model = build_model(
        name, channels=3, outputs=2, time_scale=5.0, bandwidths=bandwidths, hidden=4, width=4, **settings
    )
    batch = SERIES.batch()
    outcome = model.solve(batch)
    return plot_outcome(model, batch, outcome, series=series, channels=channels), batch, outcome


@pytest.mark.parametrize("name", [name for name in MODELS if name not in WITHOUT_PATH])
def test_every_model_with_a_path_can_be_drawn(name):
    figure, _, outcome = drawn(name)
    figure.savefig(io.BytesIO(), format="png", dpi=20)
    assert len(figure.axes) == 2 + (outcome.attention is not None) + 1


def test_a_model_without_a_path_is_told_so():
    model = build_model("gru", channels=3, outputs=2, time_scale=5.0, hidden=4)
    batch = SERIES.batch()
    with pytest.raises(ValueError, match="a GRUModel has no path to draw; draw a model that is driven by one"):
        plot_outcome(model, batch, model.solve(batch))


def test_channel_panels_hold_the_observations_and_a_line_per_view():
    figure, batch, outcome = drawn()
    for channel, axis in enumerate(figure.axes[:2]):
        observed, *views = axis.lines
        seen = batch.mask[0, :, channel].numpy()
        np.testing.assert_allclose(observed.get_xdata(), batch.times[0].numpy()[seen] + 100.0)
        np.testing.assert_allclose(observed.get_ydata(), batch.values[0, :, channel].numpy()[seen])
        assert len(views) == 2
        for view, line in enumerate(views):
            x, y = line.get_data()
            assert (x[0], x[-1]) == (100.0, 105.0)
            with torch.no_grad():
                middle = outcome.path.evaluate(float(x[200]) - 100.0)[view * len(SERIES), channel]
            np.testing.assert_allclose(y[200], middle, rtol=1e-4)


def test_the_legend_tells_each_views_bandwidth_in_units_of_time():
    figure, _, _ = drawn()
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["observed", "view 1, bandwidth 1", "view 2, bandwidth 3"]


def test_the_legend_tells_the_path_where_there_is_no_bandwidth():
    figure, _, _ = drawn("cubic")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["observed", "cubic"]


def test_attention_is_drawn_over_observed_stamps():
    figure, batch, outcome = drawn()
    axis = figure.axes[2]
    assert axis.get_ylabel() == "attention"
    for view, line in enumerate(axis.lines):
        np.testing.assert_allclose(line.get_xdata(), batch.times[0] + 100.0)
        np.testing.assert_allclose(line.get_ydata(), outcome.attention[0, view].detach())


@pytest.mark.parametrize("name", ["linear", "gp", "mvc-gp"])
@pytest.mark.parametrize("series", [0, 2])
def test_ticks_are_the_solvers_steps(name, series):
    figure, batch, outcome = drawn(name, series)
    axis = figure.axes[-1]
    rows = range(series, len(outcome.solution.steps), len(SERIES))
    assert len(axis.lines) == len(rows)
    for line, row in zip(axis.lines, rows, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), outcome.solution.steps[row] + float(batch.origin[series]))
        assert len(line.get_xdata()) == outcome.solution.stats.accepted[row] + 1
    costs = [label.get_text() for label in axis.get_yticklabels()]
    assert costs == [f"{outcome.solution.stats.nfe[row]} NFE" for row in rows]


def test_ticks_of_a_rectilinear_path_are_at_times_and_not_on_its_own_clock():
    figure, _, outcome = drawn("rectilinear")
    ticks = figure.axes[-1].lines[0].get_xdata()
    assert len(ticks) == len(outcome.solution.steps[0])
    assert (np.diff(ticks) >= 0).all()
    for stamp in (100.0, 101.5, 101.9, 105.0):
        assert np.abs(ticks - stamp).min() < 5.0 / 400  # the resolution of the drawn path


def test_channels_can_be_chosen():
    figure, _, _ = drawn(channels=[2])
    assert [axis.get_ylabel() for axis in figure.axes] == ["channel 2", "attention", "steps"]


def test_a_series_of_one_channel_is_drawn_by_default():
    series = SeriesSet.from_arrays(np.sin(np.arange(10.0))[None])
    model = build_model("gp", channels=1, outputs=2, time_scale=9.0, hidden=4, width=4)
    figure = plot_outcome(model, series.batch(), model.solve(series.batch()))
    assert [axis.get_ylabel() for axis in figure.axes] == ["channel 0", "steps"]


def test_a_series_without_observations_is_an_empty_picture():
    figure, _, _ = drawn(series=1)
    assert len(figure.axes[0].lines[0].get_xdata()) == 0
    figure.savefig(io.BytesIO(), format="png", dpi=20)


def test_a_title_is_written_above():
    model = build_model("gp", channels=3, outputs=2, time_scale=5.0, hidden=4, width=4)
    figure = plot_outcome(model, SERIES.batch(), model.solve(SERIES.batch()), title="one stay")
    assert figure.get_suptitle() == "one stay"
