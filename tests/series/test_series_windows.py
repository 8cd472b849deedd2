"""Declared windows: what a batch shows of a series, and moments and spans of every kind."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from series_strategies import ragged_series

from smoothcde.series import SeriesError, SeriesSet


def test_without_a_declared_window_it_is_first_to_last_stamp(three):
    assert_array_equal(three.start, [10, 0, 2])
    assert_array_equal(three.end, [15, 0, 4])


def test_a_declared_window_is_one_for_all_or_one_per_series():
    shared = SeriesSet.from_arrays(np.zeros((2, 3)), window=(-1, 5))
    assert_array_equal(shared.start, [-1, -1])
    assert_array_equal(shared.end, [5, 5])
    own = SeriesSet.from_arrays(np.zeros((2, 3)), window=([0, -2], 5))
    assert_array_equal(own.start, [0, -2])
    assert_array_equal(own.end, [5, 5])


def test_observations_outside_the_window_are_hidden_from_batches_but_kept():
    series = SeriesSet.from_arrays([np.arange(6.0)], window=(1, 3))
    batch = series.batch()
    assert_array_equal(batch.values[0, :, 0], [1, 2, 3])
    assert_array_equal(batch.times[0], [0, 1, 2])
    assert (batch.origin.item(), batch.end.item()) == (1, 2)
    assert_array_equal(series.lengths, [6])
    assert_array_equal(series.with_window(0, 5).batch().values[0, :, 0], np.arange(6))


@pytest.mark.parametrize("window", [(-9, -5), (50, 60), (0.2, 0.8)], ids=["before", "after", "between stamps"])
def test_a_window_without_stamps_shows_an_empty_row(window):
    series = SeriesSet.from_arrays([np.arange(3.0) + 7, np.arange(3.0) + 8], window=window)
    batch = series.batch()
    assert_array_equal(batch.lengths, [0, 0])
    assert not batch.mask.any()
    assert not batch.times.any()
    assert batch.end[0].item() == pytest.approx(window[1] - window[0])


def test_windows_of_rows_hide_only_their_own_stamps():
    series = SeriesSet.from_arrays([np.arange(4.0), np.arange(4.0)], window=([0, 2], [1, 3]))
    assert_array_equal(series.batch().values[:, :, 0], [[0, 1], [2, 3]])


@given(ragged_series(), st.floats(-1000, 1000), st.floats(0, 1000))
@settings(deadline=None, max_examples=50)
def test_a_batch_shows_exactly_the_stamps_inside_the_window(data, start, span):
    arrays, times = data
    batch = SeriesSet.from_arrays(arrays, times, window=(start, start + span)).batch(dtype=torch.float64)
    for i, (array, stamps) in enumerate(zip(arrays, times, strict=True)):
        inside = (stamps >= start) & (stamps <= start + span)
        shown = np.where(batch.mask[i], batch.values[i], np.nan)[: batch.lengths[i]]
        assert_array_equal(shown, array[:, inside].T)
        assert_array_equal(batch.times[i, : batch.lengths[i]], stamps[inside] - start)


def test_with_window_replaces_what_is_given_and_keeps_the_rest(three):
    later = three.with_window(end=[20, 30, 40])
    assert_array_equal(later.start, three.start)
    assert_array_equal(later.end, [20, 30, 40])
    earlier = three.with_window(start=-1.0)
    assert_array_equal(earlier.start, [-1, -1, -1])
    assert_array_equal(earlier.end, three.end)
    assert_array_equal(earlier.static, three.static)
    assert three.start[0] == 10


def test_history_is_counted_back_from_the_end(three):
    assert_array_equal(three.with_window(history=2.0).start, three.end - 2)
    window = three.with_window(end=[12, 5, 4], history=3.0)
    assert_array_equal(window.start, [9, 2, 1])
    assert_array_equal(window.end, [12, 5, 4])


def test_history_and_start_exclude_each_other(three):
    with pytest.raises(ValueError, match="give `start` or `history`, not both: history means start = end - history"):
        three.with_window(start=0, history=1.0)


def test_a_window_in_the_wrong_order_is_named_series_by_series():
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_arrays(np.zeros((3, 2)), ids=["a", "b", "c"], window=([0, 5, 0], [1, 1, np.inf]))
    assert caught.value.problems == (
        "series b: window [5, 1] is not finite with start <= end; correct it",
        "series c: window [0, inf] is not finite with start <= end; correct it",
    )
    with pytest.raises(SeriesError, match=r"series 0: window \[2, 1\]"):
        SeriesSet.from_arrays(np.zeros((1, 2))).with_window(start=2)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (([0, 0, 0], 5), r"window start has shape \(3,\); give one number, or one per series \(2\)"),
        ((0, [[5, 5]]), r"window end has shape \(1, 2\)"),
        ((0, "noon"), "window end is 'noon'; give numbers, or dates such as"),
    ],
)
def test_a_window_of_a_wrong_kind_is_named(window, message):
    with pytest.raises(SeriesError, match=message):
        SeriesSet.from_arrays(np.zeros((2, 3)), window=window)


@pytest.mark.parametrize(
    "moment",
    [
        pd.Timestamp("2024-01-02"),
        pd.Timestamp("2024-01-02T01:00+01:00"),
        pd.Timestamp("2024-01-02").to_pydatetime(),
        np.datetime64("2024-01-02"),
        [np.datetime64("2024-01-02T00:00"), np.datetime64("2024-01-02", "D")],
        (pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-02T01:00+01:00")),
        np.array([pd.Timestamp("2024-01-02")] * 2, dtype=object),
        pd.Timestamp("2024-01-02").date(),
    ],
)
@pytest.mark.parametrize("history", [3600.0, pd.Timedelta("1h"), np.timedelta64(60, "m")])
def test_moments_and_spans_may_be_of_any_kind_that_is_common(moment, history):
    days = [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-03")]
    series = SeriesSet.from_arrays(np.ones((2, 1, 3)), days).with_window(end=moment, history=history)
    assert series.times[1] == series.end[0] == series.end[1] == pd.Timestamp("2024-01-02").timestamp()
    assert (series.end - series.start == 3600).all()


@pytest.mark.parametrize("history", [pd.Timestamp("2024-01-02"), "1h", np.datetime64("2024-01-02")])
def test_a_history_that_is_no_span_is_named(three, history):
    with pytest.raises(ValueError, match=r"history is .*; give a number, or a span of time such as"):
        three.with_window(history=history)


def test_spans_keep_their_digits():
    spans = pd.to_timedelta([0, 400, 1500], unit="ns")
    assert SeriesSet.from_arrays(np.ones((1, 1, 3)), spans).times.tolist() == [0.0, 4e-7, 1.5e-6]


def test_windows_of_dates_are_in_seconds_as_times_are():
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[ns]")
    series = SeriesSet.from_arrays(np.ones((2, 1, 3)), days)
    for end in (days[1], days[[1, 1]], pd.Series(days[[1, 1]])):
        shown = series.with_window(end=end)
        np.testing.assert_array_equal(shown.end, series.times[1])
        assert shown.cropped().lengths.tolist() == [2, 2]
    assert series.with_window(end=days[[2, 2]], history=86400.0).cropped().lengths.tolist() == [2, 2]
