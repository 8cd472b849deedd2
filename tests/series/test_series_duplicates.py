"""Equal stamps of one series, in arrays, wide tables and tidy tables, under every rule."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from smoothcde.series import SeriesError, SeriesSet
from smoothcde.series.duplicates import check_policy, merge

# One series, two channels; the stamp 1 comes three times, and each channel is missing once among them.
TIMES = np.array([0.0, 1.0, 1.0, 1.0, 2.0])
VALUES = np.array([[5.0, 1.0, 2.0, np.nan, 6.0], [7.0, np.nan, 30.0, 50.0, 8.0]])
MERGED = {"mean": [1.5, 40.0], "first": [1.0, 30.0], "last": [2.0, 50.0]}


def from_arrays(duplicates: str) -> SeriesSet:
    return SeriesSet.from_arrays([VALUES], [TIMES], ids=["s"], channel_names=["a", "b"], duplicates=duplicates)


def wide_table() -> pd.DataFrame:
    return pd.DataFrame({"id": "s", "t": TIMES, "a": VALUES[0], "b": VALUES[1]})


def from_wide(duplicates: str) -> SeriesSet:
    return SeriesSet.from_frame(wide_table(), id="id", time="t", duplicates=duplicates)


def from_tidy(duplicates: str) -> SeriesSet:
    table = wide_table().melt(["id", "t"])
    return SeriesSet.from_frame(table, id="id", time="t", variable="variable", value="value", duplicates=duplicates)


@pytest.mark.parametrize("read", [from_arrays, from_wide, from_tidy])
@pytest.mark.parametrize("rule", ["mean", "first", "last"])
def test_a_rule_merges_channel_by_channel_what_was_observed(read, rule):
    series = read(rule)
    assert_array_equal(series.times, [0, 1, 2])
    assert_array_equal(series.values, [[5, 7], MERGED[rule], [6, 8]])


@pytest.mark.parametrize(
    ("read", "where"),
    [
        (from_arrays, "series s: duplicate time stamp 1;"),
        (from_wide, "series s: duplicate time stamp 1;"),
        (from_tidy, "series s, a: several values at time 1;"),
    ],
)
def test_without_a_rule_duplicates_are_refused_with_the_rules_named(read, where):
    with pytest.raises(SeriesError) as caught:
        read("error")
    (problem,) = caught.value.problems
    assert problem.startswith(where)
    assert problem.endswith('or pass duplicates="mean", "last" or "first"')


def test_every_series_with_duplicates_is_named():
    times = [[0.0, 0.0], [0.0, 1.0], [3.0, 3.0]]
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_arrays(np.zeros((3, 2)), times, ids=["a", "b", "c"])
    assert [p.split(";")[0] for p in caught.value.problems] == [
        "series a: duplicate time stamp 0",
        "series c: duplicate time stamp 3",
    ]


def test_first_and_last_go_by_the_tables_order_of_equal_stamps():
    table = pd.DataFrame({"id": [1, 1, 1], "t": [5.0, 0.0, 5.0], "x": [10.0, 0.0, 20.0]})
    first = SeriesSet.from_frame(table, id="id", time="t", duplicates="first")
    last = SeriesSet.from_frame(table, id="id", time="t", duplicates="last")
    assert_array_equal(first.values[:, 0], [0, 10])
    assert_array_equal(last.values[:, 0], [0, 20])


def test_the_same_stamp_in_two_series_or_two_variables_is_no_duplicate():
    table = pd.DataFrame({"id": [1, 1, 2], "t": [0.0, 0.0, 0.0], "v": ["a", "b", "a"], "y": [1.0, 2.0, 3.0]})
    series = SeriesSet.from_frame(table, id="id", time="t", variable="v", value="y")
    assert_array_equal(series.values, [[1, 2], [3, np.nan]])


def test_a_stamp_shared_by_the_end_of_one_series_and_the_start_of_the_next_is_no_duplicate():
    series = SeriesSet.from_arrays([[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 2.0]])
    assert_array_equal(series.lengths, [2, 2])


def test_a_stamp_never_observed_stays_unobserved_after_merging():
    for rule in ("mean", "first", "last"):
        merged = merge(np.array([[np.nan, 1.0], [np.nan, 3.0]]), np.array([0]), rule)
        assert np.isnan(merged[0, 0])
        assert np.isfinite(merged[0, 1])


def test_an_unknown_rule_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="duplicates is 'median'; use any of: 'error', 'mean', 'last', 'first'"):
        check_policy("median")


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from("ab"), st.integers(-9, 9)), min_size=1),
    st.sampled_from(["mean", "first", "last"]),
)
@settings(deadline=None, max_examples=50)
def test_tidy_merging_agrees_with_a_pandas_group_by(rows, rule):
    table = pd.DataFrame(rows, columns=["id", "t", "v", "y"])
    series = SeriesSet.from_frame(table, id="id", time="t", variable="v", value="y", duplicates=rule)
    grouped = table.groupby(["id", "t", "v"])["y"].agg(rule).unstack("v")
    expected = np.concatenate([grouped.loc[i].to_numpy(dtype=float) for i in series.ids])
    assert_allclose(series.values, expected, rtol=1e-15, atol=1e-15)
