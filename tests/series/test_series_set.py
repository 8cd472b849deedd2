"""`SeriesSet`: selection, static features, time scale, batches."""

import numpy as np
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


def test_static_features_are_no_dates_and_channels_have_names_of_their_own():
    with pytest.raises(SeriesError, match="encode categories and dates as numbers"):
        SeriesSet.from_arrays(np.ones((2, 1, 3)), static=np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"))
    with pytest.raises(SeriesError, match="channel names are not unique"):
        SeriesSet.from_arrays(np.ones((2, 2, 3)), channel_names=["a", "a"])
