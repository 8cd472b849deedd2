"""Windows as a forecaster's encoder gets them: channels that fell silent keep their last value."""

import numpy as np
import torch

from smoothcde.models import build_forecaster
from smoothcde.models.forecast_inputs import carried_on, with_phases
from smoothcde.paths import GPPath
from smoothcde.series import SeriesSet

NAN = np.nan
SILENT = np.array([[1.0, 2.0, 3.0], [5.0, NAN, NAN]]), np.array([0.0, 1.0, 2.0])
BETWEEN = np.array([[1.0, 2.0], [NAN, NAN]]), np.array([0.0, 1.7])
TO_THE_END = np.array([[1.0, NAN, 3.0, 4.0, 5.0, 6.0], [5.0, NAN, 6.0, NAN, 7.0, 8.0]]), np.arange(6.0)
NOTHING = np.zeros((2, 0)), np.zeros(0)


def windows(*series, end=5.0):
    values, times = zip(*series, strict=True)
    return SeriesSet.from_arrays(values, times, window=(0.0, end)).batch(dtype=torch.float64)


def test_values_are_carried_to_later_stamps_and_to_whole_steps_before_the_end():
    batch = carried_on(windows(SILENT), 1.0)
    assert batch.times.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert batch.values[0].T.tolist() == [[1, 2, 3, 3, 3, 3], [5, 5, 5, 5, 5, 5]]
    assert batch.mask.all()
    assert batch.lengths.tolist() == [6]


def test_added_stamps_end_at_the_window_and_keep_half_a_step_from_the_last_one():
    batch = carried_on(windows(BETWEEN), 1.0)
    assert batch.times.tolist() == [[0.0, 1.7, 3.0, 4.0, 5.0]]


def test_a_channel_without_observations_stays_so():
    batch = carried_on(windows(BETWEEN), 1.0)
    assert batch.mask[0].any(dim=0).tolist() == [True, False]
    assert not batch.values[0, :, 1].any()


def test_a_window_that_was_heard_to_its_end_stays_as_it_is():
    before = windows(TO_THE_END)
    after = carried_on(before, 1.0)
    for name in ("values", "times", "mask", "lengths"):
        assert torch.equal(getattr(before, name), getattr(after, name))


def test_rows_do_not_depend_on_their_neighbours():
    together = carried_on(windows(SILENT, BETWEEN, TO_THE_END, NOTHING), 1.0)
    assert together.lengths.tolist() == [6, 5, 6, 0]
    for row, series in enumerate((SILENT, BETWEEN, TO_THE_END)):
        alone = carried_on(windows(series), 1.0)
        length = int(alone.lengths)
        for name in ("values", "times", "mask"):
            assert torch.equal(getattr(together, name)[row, :length], getattr(alone, name)[0, :length])
    assert torch.equal(together.times[1, 5:], together.times[1, 4:5])  # padding repeats the last stamp
    assert not together.mask[1, 5:].any()
    assert not together.mask[3].any()


def test_a_smoothed_path_stays_where_it_was_heard_last():
    batch = windows(SILENT)
    end = batch.end[:, None]
    forgetting, holding = (GPPath.fit(b, 0.8, 0.05).evaluate(end)[0, 0] for b in (batch, carried_on(batch, 1.0)))
    assert abs(forgetting[0]) < 0.1
    torch.testing.assert_close(holding, torch.tensor([3.0, 5.0], dtype=torch.float64), rtol=0.02, atol=0.0)


def test_the_time_of_day_is_told_where_nothing_is_heard():
    batch = with_phases(carried_on(windows(SILENT), 1.0), (24.0,))
    angle = 2 * np.pi * np.arange(6.0) / 24.0
    np.testing.assert_allclose(batch.values[0, :, 2:], np.stack([np.sin(angle), np.cos(angle)], axis=1))


def test_attention_of_a_forecaster_is_that_of_the_stamps_it_was_given():
    sizes = {"channels": 2, "horizon": 3, "context": 6, "time_scale": 5.0, "hidden": 8, "bandwidths": (0.2, 0.4)}
    model = build_forecaster("mvc-gp", **sizes, carry=1.0).double()
    for series, length in (((SILENT,), 3), ((SILENT, TO_THE_END), 6)):
        attention = model.solve(windows(*series)).attention
        assert attention.shape == (len(series), 2, length)
        assert (attention[0, :, :3] > 0).all()
        assert not attention[0, :, 3:].any()
