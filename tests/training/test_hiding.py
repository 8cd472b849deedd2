"""Hiding stamps: a share of them, never the ends of a window."""

import numpy as np
import pytest

from smoothcde.series import SeriesSet
from smoothcde.training.hiding import hide_stamps

LENGTHS = (200, 1, 2, 3, 50)
SERIES = SeriesSet.from_arrays([np.arange(2.0 * n).reshape(2, n) for n in LENGTHS], static=np.arange(5.0))


def hidden(series, share=0.4, seed=0):
    return hide_stamps(series, share, np.random.default_rng(seed))


def test_about_the_share_is_gone():
    left = hidden(SERIES)
    assert 0.45 < left.lengths[0] / 200 < 0.75
    assert (left.lengths <= SERIES.lengths).all()


def test_first_and_last_stay():
    left = hidden(SERIES, share=0.99)
    for i, length in enumerate(LENGTHS):
        times = left.times[left.offsets[i] : left.offsets[i + 1]]
        assert (times[0], times[-1]) == (0, length - 1)


def test_what_stays_is_as_it_was():
    left = hidden(SERIES)
    for i in range(len(SERIES)):
        old, new = SERIES[i], left[i]
        kept = np.isin(old.times, new.times)
        np.testing.assert_array_equal(new.values, old.values[kept])
        np.testing.assert_array_equal(new.times, old.times[kept])
    np.testing.assert_array_equal(left.static, SERIES.static)
    np.testing.assert_array_equal(left.end, SERIES.end)


def test_a_declared_window_keeps_the_ends_inside_it():
    seen = SERIES[:1].with_window(50.5, 99.5)
    for seed in range(20):
        left = hidden(seen, share=0.9, seed=seed)
        assert {51, 99} <= set(left.times)
        assert (left.start, left.end) == (50.5, 99.5)
        batch = left.batch()
        assert float(batch.times[0, 0]) == 0.5


def test_series_without_stamps_pass():
    series = SeriesSet.from_arrays([np.zeros((1, 0)), np.zeros((1, 3)), np.zeros((1, 0))])
    assert hidden(series, share=0.9).lengths.tolist()[::2] == [0, 0]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_seed_repeats_it(seed):
    np.testing.assert_array_equal(hidden(SERIES, seed=seed).times, hidden(SERIES, seed=seed).times)
    assert len(hidden(SERIES, seed=seed).times) != len(SERIES.times)


def test_nothing_is_hidden_unless_asked_for():
    assert hidden(SERIES, share=0.0) is SERIES
