"""`padding="last"`: series continued with their last observation to one length."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from smoothcde.series import SeriesSet


def test_shorter_series_continue_with_their_last_observation_a_median_step_apart():
    series = SeriesSet.from_arrays([[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]], [[0.0, 2.0], [0.0, 2.0, 4.0, 6.0]])
    batch = series.batch(padding="last")
    assert_array_equal(batch.values[0, :, 0], [1, 2, 2, 2])
    assert_array_equal(batch.times[0], [0, 2, 4, 6])
    assert_array_equal(batch.lengths, [4, 4])
    assert_array_equal(batch.end, [6, 6])
    assert batch.mask.all()


def test_every_channel_continues_its_own_last_observation_and_an_unseen_one_stays_unseen():
    short = np.array([[1.0, np.nan], [np.nan, 5.0], [np.nan, np.nan]])
    batch = SeriesSet.from_arrays([short, np.zeros((3, 3))]).batch(padding="last")
    assert_array_equal(batch.values[0, 2], [1, 5, 0])
    assert_array_equal(batch.mask[0, 2], [True, True, False])


def test_the_longest_series_is_left_as_it_is():
    series = SeriesSet.from_arrays([[1.0], [1.0, 2.0, 3.0]], [[0.0], [0.0, 1.0, 5.0]])
    padded, own = series.batch(padding="last"), series.batch()
    assert_array_equal(padded.values[1], own.values[1])
    assert_array_equal(padded.times[1], own.times[1])


def test_a_selection_is_padded_to_the_length_of_the_whole_set():
    series = SeriesSet.from_arrays([[1.0], [1.0, 2.0], [1.0, 2.0, 3.0]])
    assert_array_equal(series.batch([0, 1], padding="last").values[:, :, 0], [[1, 1, 1], [1, 2, 2]])


def test_a_series_without_stamps_stays_without():
    batch = SeriesSet.from_arrays([[], [1.0, 2.0]]).batch(padding="last")
    assert_array_equal(batch.lengths, [0, 2])
    assert not batch.mask[0].any()


def test_padding_needs_no_stamp_anywhere():
    batch = SeriesSet.from_arrays([[], []]).batch(padding="last")
    assert_array_equal(batch.lengths, [0, 0])


def test_padding_does_not_bring_back_what_a_window_hides():
    series = SeriesSet.from_arrays([np.arange(6.0), np.arange(10.0), np.arange(2.0)], window=(0, 3))
    batch = series.batch(padding="last")
    assert_array_equal(batch.values[:, :, 0], [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 1, 1]])
    assert_array_equal(batch.end, [3, 3, 3])


def test_a_window_that_reaches_further_than_the_padding_is_kept():
    series = SeriesSet.from_arrays([[1.0], [1.0, 2.0]], window=(0, 9))
    assert_array_equal(series.batch(padding="last").end, [9, 9])


def test_padding_leaves_the_set_unchanged():
    series = SeriesSet.from_arrays([[1.0], [1.0, 2.0]])
    series.batch(padding="last")
    assert_array_equal(series.lengths, [1, 2])
    assert_array_equal(series.end, [0, 1])


def test_an_unknown_padding_is_answered_with_the_known_ones():
    # Unwrapped, since under test the run-time type check would answer first.
    batch = inspect.unwrap(SeriesSet.batch)
    with pytest.raises(ValueError, match="padding is 'zeros'; use any of: 'own', 'last'"):
        batch(SeriesSet.from_arrays([[1.0]]), padding="zeros")
