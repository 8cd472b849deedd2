"""Arrays, lists and tensors in; the same numbers, or a message that names what is wrong, out."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.testing import assert_array_equal
from series_strategies import ragged_series

from smoothcde.series import SeriesError, SeriesSet


def of_series(series: SeriesSet, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Values `(channels, time)` and stamps of one series, as the user gave them."""
    one = slice(series.offsets[i], series.offsets[i + 1])
    return series.values[one].T, series.times[one]


# What is accepted


def test_a_3d_array_is_series_by_channels_by_time():
    X = np.arange(24.0).reshape(2, 3, 4)
    series = SeriesSet.from_arrays(X)
    assert (len(series), series.channels) == (2, 3)
    for i in range(2):
        values, times = of_series(series, i)
        assert_array_equal(values, X[i])
        assert_array_equal(times, [0, 1, 2, 3])


def test_a_2d_array_is_series_by_time_with_one_channel():
    series = SeriesSet.from_arrays(np.arange(6.0).reshape(2, 3))
    assert series.channels == 1
    assert_array_equal(of_series(series, 1)[0], [[3, 4, 5]])


@given(ragged_series())
@settings(deadline=None, max_examples=50)
def test_a_list_keeps_every_series_its_own_length_and_stamps(data):
    arrays, times = data
    series = SeriesSet.from_arrays(arrays, times)
    assert_array_equal(series.lengths, [len(t) for t in times])
    for i, (array, stamps) in enumerate(zip(arrays, times, strict=True)):
        values, kept = of_series(series, i)
        assert_array_equal(values, array)
        assert_array_equal(kept, stamps)


def test_a_list_of_1d_items_has_one_channel():
    series = SeriesSet.from_arrays([[1.0, 2.0], (3.0, 4.0, 5.0)])
    assert series.channels == 1
    assert_array_equal(series.lengths, [2, 3])


def test_an_object_array_of_arrays_reads_as_a_list():
    X = np.empty(2, dtype=object)
    X[:] = [np.zeros((2, 3)), np.zeros((2, 5))]
    assert_array_equal(SeriesSet.from_arrays(X).lengths, [3, 5])


def test_torch_tensors_read_as_arrays():
    X = torch.arange(6.0, requires_grad=True).reshape(1, 2, 3)
    times = torch.tensor([0.0, 0.5, 2.0])
    whole = SeriesSet.from_arrays(X, times)
    listed = SeriesSet.from_arrays([X[0]], [times.clone().requires_grad_()])
    for series in (whole, listed):
        assert_array_equal(series.values, [[0, 3], [1, 4], [2, 5]])
        assert_array_equal(series.times, [0, 0.5, 2])


def test_integers_become_floats():
    assert SeriesSet.from_arrays(np.arange(6).reshape(2, 3)).values.dtype == np.float64


@pytest.mark.parametrize(
    "times",
    [
        pytest.param([0.0, 1.0, 5.0], id="shared"),
        pytest.param([[0.0, 1.0, 5.0], [0.0, 1.0, 5.0]], id="one list per series"),
        pytest.param(np.array([[0.0, 1.0, 5.0]] * 2), id="2-D array"),
        pytest.param([torch.tensor([0.0, 1.0, 5.0])] * 2, id="list of tensors"),
        pytest.param(np.array([0, 1, 5]), id="integers"),
    ],
)
def test_shared_times_are_times_of_every_series(times):
    series = SeriesSet.from_arrays(np.zeros((2, 3)), times)
    assert_array_equal(series.times, [0, 1, 5, 0, 1, 5])


def test_times_may_be_a_pandas_column_with_any_index():
    pd = pytest.importorskip("pandas")
    times = pd.Series([2.0, 4.0], index=[7, 8])
    assert_array_equal(SeriesSet.from_arrays(np.zeros((1, 2)), times).times, [2, 4])


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_dates_are_seconds_since_1970_whatever_their_unit(unit):
    dates = np.array(["1970-01-01T00:00:01", "1970-01-02T00:00:00"], dtype=f"datetime64[{unit}]")
    shared = SeriesSet.from_arrays(np.zeros((1, 2)), dates)
    own = SeriesSet.from_arrays(np.zeros((1, 2)), [dates])
    assert_array_equal(shared.times, [1, 86400])
    assert_array_equal(own.times, [1, 86400])


def test_nan_stamps_without_values_are_padding_and_dropped():
    X = np.array([[[1.0, 2.0, np.nan]], [[3.0, 4.0, 5.0]], [[np.nan] * 3]])
    times = np.array([[0.0, 1.0, np.nan], [0.0, 2.0, 4.0], [np.nan] * 3])
    series = SeriesSet.from_arrays(X, times)
    assert_array_equal(series.lengths, [2, 3, 0])
    assert_array_equal(series.times, [0, 1, 0, 2, 4])
    assert_array_equal(series.values[:, 0], [1, 2, 3, 4, 5])


def test_a_stamp_without_values_is_kept_and_moves_the_window():
    series = SeriesSet.from_arrays([[1.0, np.nan]], [[0.0, 9.0]])
    assert_array_equal(series.lengths, [2])
    assert_array_equal(series.end, [9])


def test_the_users_arrays_are_not_shared():
    X, static = np.zeros((1, 2)), np.zeros((1, 1))
    series = SeriesSet.from_arrays(X, static=static)
    X[:] = static[:] = 7
    assert not series.values.any()
    assert not series.static.any()


def test_an_empty_array_still_knows_its_channels():
    assert SeriesSet.from_arrays(np.zeros((0, 3, 5))).channels == 3
    assert SeriesSet.from_arrays(np.zeros((0, 5))).channels == 1
    assert SeriesSet.from_arrays([], channel_names=["a", "b"]).channels == 2


# What is refused, and how it is said


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), r"X has 1 dimensions, shape \(3,\); expected \(series, channels, time\) or \(series, time\)"),
        (np.zeros((1, 2, 3, 4)), r"X has 4 dimensions, shape \(1, 2, 3, 4\)"),
        ([np.zeros((1, 2, 3))], r"series 0 has shape \(1, 2, 3\); expected \(channels, time\) or \(time,\)"),
        ([1.0, 2.0], r"series 0 has shape \(\)"),
        ("text", "X is a str; give an array, a list of arrays, or use SeriesSet.from_frame"),
        (np.array([["a", "b"]]), "X holds something that is not a number"),
        ([[1.0, 2.0], ["low", 3.0]], "series 1 holds something that is not a number, .*; convert it, NaN for"),
        ([[[1.0, 2.0], [3.0]]], "series 0 holds .*rows of unequal length"),
        (np.zeros((1, 2), dtype=complex), "X holds something that is not a number"),
        (np.zeros((1, 2), dtype="datetime64[s]"), "X holds something that is not a number"),
    ],
)
def test_values_of_a_wrong_kind_are_named(X, message):
    with pytest.raises(SeriesError, match=message):
        SeriesSet.from_arrays(X)


def test_a_table_is_sent_to_from_frame():
    pd = pytest.importorskip("pandas")
    with pytest.raises(SeriesError, match=r"X is a DataFrame; .* use SeriesSet\.from_frame"):
        SeriesSet.from_arrays(pd.DataFrame({"x": [1.0]}))


def test_a_transposed_item_is_suspected_by_name():
    arrays = [np.zeros((2, 5)), np.zeros((2, 4)), np.zeros((5, 2))]
    with pytest.raises(SeriesError, match=r"series 2 do not have 2 channels as the others; .* is it transposed\?"):
        SeriesSet.from_arrays(arrays)
    with pytest.raises(SeriesError, match="series carol do not have 2 channels"):
        SeriesSet.from_arrays(arrays, ids=["alice", "bob", "carol"])


def test_an_unreadable_item_does_not_shift_the_names_of_those_after_it():
    arrays = [["text"], np.zeros((2, 5)), np.zeros((2, 4)), np.zeros((5, 2))]
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_arrays(arrays)
    unreadable, transposed = caught.value.problems
    assert unreadable.startswith("series 0 holds something")
    assert transposed.startswith("series 3 do not have 2 channels")


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0.0, 1.0], r"series 0 has 3 stamps of values and times of shape \(2,\); match them"),
        ([[0.0, 1.0, 2.0], [0.0, 1.0]], r"series 1 has 3 stamps of values and times of shape \(2,\); match them"),
        (np.zeros((2, 1, 3)), r"series 0 has 3 stamps of values and times of shape \(1, 3\)"),
        (np.zeros((4, 3)), "times has 4 entries for 2 series; give shared stamps or one list per series"),
        (3.0, "times is 3.0; give shared stamps or one list per series"),
        (["a", "b", "c"], "times holds something that is not a number"),
        ([[0.0, 1.0, 2.0], ["a", "b", "c"]], "times of series 1 holds something that is not a number"),
    ],
)
def test_times_of_a_wrong_shape_are_named(times, message):
    with pytest.raises(SeriesError, match=message):
        SeriesSet.from_arrays(np.zeros((2, 3)), times)


def test_infinities_are_named_by_series_and_channel_each_once():
    X = np.zeros((3, 2, 4))
    X[0, 1, 1:3] = np.inf
    X[2, 0, 3] = -np.inf
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_arrays(X, ids=["a", "b", "c"], channel_names=["pulse", "pressure"])
    assert caught.value.problems == (
        "series a, pressure: infinite values; use NaN for what was not observed",
        "series c, pulse: infinite values; use NaN for what was not observed",
    )


def test_unnamed_channels_are_named_by_number():
    with pytest.raises(SeriesError, match="series 0, channel 1: infinite values"):
        SeriesSet.from_arrays([[[0.0, 1.0], [0.0, np.inf]]])


@pytest.mark.parametrize("stamp", [np.nan, np.inf])
def test_an_observation_needs_a_finite_stamp(stamp):
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_arrays(np.zeros((2, 3)), [[0.0, stamp, stamp], [0.0, 1.0, 2.0]])
    assert caught.value.problems == (
        "series 0: some time stamps are NaN or infinite; give every observation a finite stamp",
    )


def test_unsorted_stamps_are_shown_with_the_remedy():
    with pytest.raises(SeriesError, match=r"series 1: time stamps go backwards \(3 then 1\); sort .*argsort"):
        SeriesSet.from_arrays(np.zeros((2, 3)), [[0.0, 1.0, 2.0], [0.0, 3.0, 1.0]])


def test_stamps_in_messages_keep_their_resolution():
    with pytest.raises(SeriesError, match=r"\(1700000000\.5 then 1700000000\)"):
        SeriesSet.from_arrays(np.zeros((1, 2)), [1.7e9 + 0.5, 1.7e9])


def test_a_series_may_begin_before_the_one_in_front_of_it_ended():
    assert len(SeriesSet.from_arrays([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [0.0, 6.0]])) == 2


def test_ids_and_channel_names_must_fit():
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_arrays(np.zeros((2, 3)), ids=[1], channel_names=["a", "b"])
    assert caught.value.problems == (
        "there are 1 ids for 2 series; give one id per series",
        "there are 2 channel names for 1 channels; give one per channel",
    )
    with pytest.raises(SeriesError, match="ids are not unique; give every series its own"):
        SeriesSet.from_arrays(np.zeros((2, 3)), ids=["a", "a"])


def test_problems_of_different_kinds_come_in_one_message():
    X = np.zeros((4, 3))
    X[0, 0] = np.inf
    times = [[0.0, 1.0, 2.0], [0.0, 2.0, 1.0], [0.0, 0.0, 1.0], [0.0, 1.0, np.nan]]
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_arrays(X, times)
    message = str(caught.value)
    assert message.startswith("4 problems with the series:\n  - ")
    for finding in (
        "series 0, channel 0: infinite",
        "series 1: time stamps go backwards",
        "series 2: duplicate",
        "series 3: some",
    ):
        assert finding in message
