"""`SeriesSet`: selection, windows, static features, time scale, batches."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from series_strategies import ragged_series

from smoothcde.series import SeriesBatch, SeriesError, SeriesSet

FIELDS = ("values", "times", "mask", "lengths", "start", "end", "origin", "static")


def assert_same_batch(one: SeriesBatch, other: SeriesBatch) -> None:
    for name in FIELDS:
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None), name
        if left is not None:
            assert left.dtype == right.dtype, name
            assert_array_equal(left, right, err_msg=name)


@pytest.fixture
def three() -> SeriesSet:
    """Three series of 3, 0 and 2 stamps."""
    return SeriesSet.from_arrays(
        [np.array([[1.0, 2.0, 3.0]]), np.zeros((1, 0)), np.array([[4.0, 5.0]])],
        [[10.0, 11.0, 15.0], [], [2.0, 4.0]],
        ids=["a", "b", "c"],
        static=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    )


# Selection


@given(ragged_series(), st.data())
@settings(deadline=None, max_examples=50)
def test_a_batch_of_indices_is_the_batch_of_the_selected_set(data, more):
    arrays, times = data
    series = SeriesSet.from_arrays(arrays, times, static=np.arange(float(len(arrays))))
    indices = more.draw(st.lists(st.integers(-len(arrays), len(arrays) - 1)))
    assert_same_batch(series.batch(indices), series[indices].batch())


@given(ragged_series())
@settings(deadline=None, max_examples=25)
def test_rows_of_a_batch_do_not_depend_on_their_neighbours(data):
    arrays, times = data
    series = SeriesSet.from_arrays(arrays, times)
    whole = series.batch()
    for i in range(len(series)):
        alone = series.batch([i])
        length = alone.values.shape[1]
        assert_array_equal(alone.values[0], whole.values[i, :length])
        assert_array_equal(alone.times[0], whole.times[i, :length])
        assert alone.end[0] == whole.end[i]


@pytest.mark.parametrize(
    ("indices", "ids"),
    [
        (2, ("c",)),
        (-1, ("c",)),
        (np.int64(0), ("a",)),
        ([2, 0, 2], ("c", "a", "c")),
        (slice(1, None), ("b", "c")),
        (np.array([True, False, True]), ("a", "c")),
        (torch.tensor([1, 2]), ("b", "c")),
        ([], ()),
    ],
)
def test_indices_slices_and_masks_select_series(three, indices, ids):
    selected = three[indices]
    assert selected.ids == ids
    assert len(selected) == len(ids)
    for i, name in enumerate(ids):
        place = three.ids.index(name)
        one, other = slice(*selected.offsets[i : i + 2]), slice(*three.offsets[place : place + 2])
        assert_array_equal(selected.values[one], three.values[other])
        assert_array_equal(selected.times[one], three.times[other])
        assert_array_equal(selected.static[i], three.static[place])
        assert selected.start[i] == three.start[place]


def test_an_index_out_of_range_is_an_index_error(three):
    with pytest.raises(IndexError):
        three[3]


def test_a_set_iterates_over_sets_of_one(three):
    assert [one.ids for one in three] == [("a",), ("b",), ("c",)]


# Series without observations, sets without series


def test_a_series_without_observations_is_legal():
    batch = SeriesSet.from_arrays([np.zeros((2, 0)), np.full((2, 3), np.nan)]).batch()
    assert not batch.mask.any()
    assert not batch.values.any()
    assert_array_equal(batch.lengths, [0, 3])
    assert_array_equal(batch.end, [0, 2])


def test_a_series_without_observations_takes_the_declared_window_and_keeps_its_static_features():
    batch = SeriesSet.from_arrays([[]], window=(100.0, 148.0), static=[[7.0]]).batch()
    assert (batch.origin.item(), batch.end.item(), batch.static.item()) == (100, 48, 7)
    assert_array_equal(batch.times, [[0]])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_series_without_observations_may_stand_anywhere(place):
    arrays = [np.array([1.0, 2.0]), np.array([3.0])]
    arrays.insert(place, np.array([]))
    batch = SeriesSet.from_arrays(arrays).batch()
    assert batch.lengths[place] == 0
    assert not batch.mask[place].any()
    assert batch.values.sum() == 6


def test_a_set_without_any_series_is_legal():
    series = SeriesSet.from_arrays(np.zeros((0, 2, 5)))
    batch = series.batch()
    assert len(series) == len(batch) == 0
    assert batch.values.shape == (0, 1, 2)
    assert (series.longest_span, series.median_step, series.has_missing) == (0, 1, False)
    assert len(series[[]].with_window(0, 1)) == 0


# Windows


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


# Static features


def test_static_features_of_one_column_may_be_flat():
    series = SeriesSet.from_arrays(np.zeros((2, 3)), static=[1, 2])
    assert series.static.shape == (2, 1)
    assert series.static_names == ("static 0",)
    batch = series.batch()
    assert batch.static.dtype == torch.float32
    assert_array_equal(batch.static, [[1], [2]])


def test_without_static_features_there_are_none():
    series = SeriesSet.from_arrays(np.zeros((2, 3)))
    assert series.static is None
    assert series.batch().static is None
    assert series[0].static is None


@pytest.mark.parametrize(
    ("static", "message"),
    [
        (np.zeros((3, 1)), r"static features have shape \(3, 1\); expected \(2, features\)"),
        (np.zeros((2, 1, 1)), r"static features have shape \(2, 1, 1\)"),
        (1.0, r"static features have shape \(\)"),
        ([["male"], ["female"]], "static features are not numbers; encode categories and dates as numbers first"),
    ],
)
def test_static_features_of_a_wrong_kind_are_named(static, message):
    with pytest.raises(SeriesError, match=message):
        SeriesSet.from_arrays(np.zeros((2, 3)), static=static)


def test_static_features_that_are_not_finite_are_named_one_by_one_together_with_wrong_windows():
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_arrays(np.zeros((2, 3)), static=[[np.nan, 0], [0, np.inf]], window=(3, [9, 1]))
    assert caught.value.problems == (
        "series 1: window [3, 1] is not finite with start <= end; correct it",
        "series 0: static 0 is nan; fill in a number (the mean, say)",
        "series 1: static 1 is inf; fill in a number (the mean, say)",
    )


# Time


def test_unix_stamps_keep_their_resolution_in_float32():
    stamps = 1.7e9 + np.array([0.0, 0.125, 0.25, 3600.5])
    batch = SeriesSet.from_arrays(np.zeros((1, 4)), stamps).batch(dtype=torch.float32)
    assert batch.times.dtype == torch.float64
    assert_array_equal(batch.times.float(), [[0, 0.125, 0.25, 3600.5]])
    assert_array_equal(batch.times + batch.origin[:, None], stamps[None])


def test_the_longest_span_is_that_of_the_windows(three):
    assert three.longest_span == 5
    assert three.with_window(history=48.0).longest_span == 48


def test_the_median_step_counts_steps_inside_series_only(three):
    assert three.median_step == 2  # of 1, 4 and 2


@pytest.mark.parametrize("arrays", [[[], [0, 0, 0]], [[0, 0, 0], []], [[], [], [0, 0, 0], [], []]])
def test_the_median_step_overlooks_series_without_stamps(arrays):
    times = [[0.0, 1.0, 10.0] if len(a) else [] for a in arrays]
    assert SeriesSet.from_arrays(arrays, times).median_step == 5


@pytest.mark.parametrize("arrays", [[[]], [[0]], [[], [0]], [[0], []], [[0], [0]]])
def test_the_median_step_is_1_where_no_series_has_two_stamps(arrays):
    assert SeriesSet.from_arrays(arrays).median_step == 1


@given(ragged_series())
@settings(deadline=None, max_examples=50)
def test_the_median_step_is_the_median_of_all_differences(data):
    arrays, times = data
    steps = np.concatenate([np.diff(t) for t in times])
    expected = np.median(steps) if len(steps) else 1.0
    assert SeriesSet.from_arrays(arrays, times).median_step == expected


# The rest


def test_has_missing_asks_for_any_unobserved_channel():
    assert not SeriesSet.from_arrays([[1.0, 2.0]]).has_missing
    assert SeriesSet.from_arrays([[1.0, np.nan]]).has_missing


def test_batches_are_float32_unless_asked_otherwise(three):
    assert three.batch().dtype == torch.float32
    double = three.batch(dtype=torch.float64)
    assert double.dtype == double.static.dtype == torch.float64


def test_a_batch_goes_to_the_device_asked_for(three):
    assert three.batch(device="meta").device.type == "meta"


def test_changing_a_batch_leaves_the_set_unchanged(three):
    batch = three.batch(dtype=torch.float64)
    for tensor in (batch.values, batch.times, batch.origin, batch.end, batch.static):
        tensor.fill_(99)
    for array in (three.values, three.times, three.start, three.end, three.static):
        assert not (array == 99).any()


def test_names_are_the_users_or_numbers():
    given_names = SeriesSet.from_arrays(np.zeros((2, 1, 3)), ids=["x", "y"], channel_names=["pulse"])
    assert (given_names.ids, given_names.channel_names) == (("x", "y"), ("pulse",))
    numbered = SeriesSet.from_arrays(np.zeros((2, 2, 3)))
    assert (numbered.ids, numbered.channel_names) == ((0, 1), ("channel 0", "channel 1"))


def test_the_representation_tells_sizes_lengths_and_how_much_was_observed(three):
    assert repr(three) == "SeriesSet(3 series, 1 channel, 0 to 3 stamps, 100% observed)"
    half = SeriesSet.from_arrays([[[1.0, np.nan], [np.nan, 2.0]]])
    assert repr(half) == "SeriesSet(1 series, 2 channels, 2 to 2 stamps, 50% observed)"
    assert repr(SeriesSet.from_arrays([])) == "SeriesSet(0 series, 0 channels)"
    assert repr(SeriesSet.from_arrays([[]])) == "SeriesSet(1 series, 1 channel, 0 to 0 stamps)"


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


def test_static_features_are_no_dates_and_channels_have_names_of_their_own():
    with pytest.raises(SeriesError, match="encode categories and dates as numbers"):
        SeriesSet.from_arrays(np.ones((2, 1, 3)), static=np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"))
    with pytest.raises(SeriesError, match="channel names are not unique"):
        SeriesSet.from_arrays(np.ones((2, 2, 3)), channel_names=["a", "a"])
