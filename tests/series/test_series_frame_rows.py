"""Rows of tables: none is lost in silence; ids, times and static tables say which is whose."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from series_tables import TIDY, WIDE

from smoothcde.series import SeriesError, SeriesSet

# Nothing is lost in silence


def test_infinities_of_a_wide_table_are_named_by_series_and_channel(stays):
    stays.loc[1, "oxygen"] = np.inf
    with pytest.raises(SeriesError, match="series bob, oxygen: infinite values; use NaN for what was not observed"):
        SeriesSet.from_frame(stays, **WIDE)


def test_infinities_of_a_tidy_table_are_named_by_series_and_variable(events):
    events.loc[[0, 5], "y"] = np.inf
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_frame(events, **TIDY)
    assert [p.split(":")[0] for p in caught.value.problems] == ["series ann, pulse", "series bob, oxygen"]


def test_rows_without_an_id_are_counted(stays):
    stays.loc[[0, 1], "id"] = None
    with pytest.raises(SeriesError, match="2 rows have no 'id'; drop them or fill in which series they belong to"):
        SeriesSet.from_frame(stays, **WIDE)


def test_values_without_a_variable_are_counted(events):
    events.loc[3, "v"] = None
    with pytest.raises(SeriesError, match="1 rows have a value but no 'v'; name their variable or drop them"):
        SeriesSet.from_frame(events, **TIDY)


def test_a_tidy_row_without_a_value_is_no_observation_but_its_series_exists():
    table = pd.DataFrame({"id": [1, 1, 2], "t": [0.0, 5.0, 0.0], "v": ["a", "a", None], "y": [1.0, np.nan, np.nan]})
    series = SeriesSet.from_frame(table, **TIDY)
    assert series.ids == (1, 2)
    assert_array_equal(series.lengths, [1, 0])


def test_a_wide_row_without_values_is_a_stamp():
    table = pd.DataFrame({"id": [1, 1], "t": [0.0, 5.0], "x": [1.0, np.nan]})
    assert_array_equal(SeriesSet.from_frame(table, **WIDE).end, [5])


def test_problems_of_several_columns_come_at_once(stays):
    stays["t"] = ["00:07", "00:08", "00:09", "00:10"]
    stays.loc[0, "id"] = None
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_frame(stays, **WIDE, channels=["note"])
    assert [p.split(";")[0] for p in caught.value.problems] == [
        "1 rows have no 'id'",
        "column 't' holds '00:07'",
        "column 'note' holds 'ok', not a number, in 4 rows",
    ]


# Ids


def test_ids_choose_and_order_the_series(stays):
    series = SeriesSet.from_frame(stays, **WIDE, ids=["bob", "ann"])
    assert series.ids == ("bob", "ann")
    assert_array_equal(series.times, [7, 0, 1, 2])
    assert SeriesSet.from_frame(stays, **WIDE, ids=["bob"]).ids == ("bob",)


@pytest.mark.parametrize("form", ["wide", "tidy"])
def test_ids_without_rows_are_series_without_observations(stays, events, form):
    table, columns = (stays, WIDE) if form == "wide" else (events, TIDY)
    series = SeriesSet.from_frame(table, **columns, ids=["cid", "bob", "dan"])
    assert_array_equal(series.lengths, [0, 1, 0])
    assert_array_equal(series.batch().mask.any(dim=2)[:, 0], [False, True, False])


def test_ids_are_unique(stays):
    with pytest.raises(SeriesError, match="ids are not unique; name every series once"):
        SeriesSet.from_frame(stays, **WIDE, ids=["ann", "ann"])


def test_ids_of_another_type_than_the_column_are_not_taken_for_series_without_rows():
    table = pd.DataFrame({"id": [17, 18], "t": [0.0, 0.0], "x": [1.0, 2.0]})
    with pytest.raises(SeriesError, match="none of the ids is in column 'id', but their text is; give `ids` as int64"):
        SeriesSet.from_frame(table, **WIDE, ids=["17", "18"])


def test_an_empty_table_gives_a_set_without_series_or_the_ids_without_observations(stays):
    empty = SeriesSet.from_frame(stays[:0], **WIDE)
    assert (len(empty), empty.channels) == (0, 2)
    asked = SeriesSet.from_frame(stays[:0], **WIDE, ids=["ann"])
    assert asked.batch().values.shape == (1, 1, 2)


# Times


@pytest.mark.parametrize("convert", [lambda table: table, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    "times",
    [
        pytest.param(["1970-01-01T00:00:01.5", "1970-01-02"], id="ISO 8601 text of mixed precision"),
        pytest.param(["1970-01-01T01:00:01.5+01:00", "1970-01-02T00:00:00Z"], id="ISO 8601 text with zones"),
        pytest.param(pd.to_datetime(["1970-01-01T00:00:01.5", "1970-01-02"], format="ISO8601"), id="datetimes"),
        pytest.param(
            pd.to_datetime(["1970-01-01T00:00:01.5", "1970-01-02"], format="ISO8601").tz_localize("UTC"), id="zoned"
        ),
        pytest.param(pd.to_timedelta([1.5, 86400.0], unit="s"), id="durations"),
        pytest.param(np.array([1.5, 86400], dtype=object), id="numbers as objects"),
    ],
)
def test_dates_become_seconds_since_1970(convert, times):
    table = convert(pd.DataFrame({"id": [1, 1], "t": times, "x": [1.0, 2.0]}))
    assert_array_equal(SeriesSet.from_frame(table, **WIDE).times, [1.5, 86400])


def test_days_become_seconds_since_1970():
    table = pl.DataFrame({"id": [1, 1], "t": [date(1970, 1, 1), date(1970, 1, 3)], "x": [1.0, 2.0]})
    for frame in (table, pd.DataFrame(table.to_dict(as_series=False))):
        assert_array_equal(SeriesSet.from_frame(frame, **WIDE).times, [0, 2 * 86400])


def test_dates_of_today_keep_milliseconds():
    table = pd.DataFrame({"id": [1, 1], "t": ["2024-05-01T10:00:00.000", "2024-05-01T10:00:00.001"], "x": [1.0, 2.0]})
    assert_allclose(SeriesSet.from_frame(table, **WIDE).batch().times, [[0, 0.001]], atol=1e-6)


@pytest.mark.parametrize("text", ["00:07", "01/02/2024", "0.5", "soon"])
def test_text_that_is_no_iso_date_is_shown_not_guessed(text):
    table = pd.DataFrame({"id": [1, 1], "t": ["2024-01-01", text], "x": [1.0, 2.0]})
    message = f"column 't' holds '{text}'; write stamps as numbers, dates, or ISO 8601 text"
    with pytest.raises(SeriesError, match=message):
        SeriesSet.from_frame(table, **WIDE)


@pytest.mark.parametrize("times", [["2024-01-01", None], [0.0, np.nan], [0.0, np.inf]])
def test_a_row_without_a_stamp_is_named_by_its_series(times):
    table = pd.DataFrame({"id": ["s", "s"], "t": times, "x": [1.0, 2.0]})
    with pytest.raises(SeriesError, match="series s: some time stamps are NaN or infinite"):
        SeriesSet.from_frame(table, **WIDE)


def test_windows_of_a_table_are_those_of_arrays(stays):
    series = SeriesSet.from_frame(stays, **WIDE, ids=["ann", "bob"], window=([0, 6], [1, 8]))
    assert_array_equal(series.batch().lengths, [2, 1])
    with pytest.raises(SeriesError, match=r"series ann: window \[3, 1\]"):
        SeriesSet.from_frame(stays, **WIDE, window=(3, [1, 8]))


# Static tables


@pytest.mark.parametrize("convert", [lambda table: table, pl.from_pandas], ids=["pandas", "polars"])
def test_a_static_table_is_matched_by_id(stays, convert):
    static = pd.DataFrame({"id": ["eve", "bob", "ann"], "age": [1, 50, 30], "weight": [0.0, 80.5, 60.5]})
    series = SeriesSet.from_frame(stays, **WIDE, static=convert(static))
    assert series.static_names == ("age", "weight")
    assert_array_equal(series.static, [[30, 60.5], [50, 80.5]])
    assert series.with_window(history=1.0).static_names == ("age", "weight")


@pytest.mark.parametrize(
    ("static", "message"),
    [
        (
            pd.DataFrame({"name": ["ann", "bob"], "age": [1, 2]}),
            "the static table has no column 'id'; its columns are name, age",
        ),
        (pd.DataFrame({"id": ["ann"], "age": [1]}), "the static table has no row for series bob; add them"),
        (
            pd.DataFrame({"id": ["ann", "bob", "ann"], "age": [1, 2, 3]}),
            "the static table has several rows for series ann; keep one of each",
        ),
        (
            pd.DataFrame({"id": ["ann", "bob"], "ward": ["A", "B"]}),
            "column 'ward' holds 'A', not a number, in 2 rows; convert it or leave it out",
        ),
        (
            pd.DataFrame({"id": ["ann", "bob"], "age": [1, np.nan]}),
            r"series bob: age is nan; fill in a number \(the mean, say\)",
        ),
        (
            pl.DataFrame({"id": ["ann", "bob"], "age": [1, None]}),
            r"series bob: age is nan; fill in a number \(the mean, say\)",
        ),
        (np.zeros((2, 1)), "static is a ndarray; give a table with the column 'id' and one per feature"),
    ],
)
def test_a_static_table_that_does_not_fit_is_told_what_to_change(stays, static, message):
    with pytest.raises(SeriesError, match=message):
        SeriesSet.from_frame(stays, **WIDE, static=static)
