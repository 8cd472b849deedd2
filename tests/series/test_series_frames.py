"""Tables in: wide or tidy, pandas or polars, dates or numbers."""

import os
import tarfile
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from series_strategies import ragged_series

from smoothcde.series import SeriesError, SeriesSet

TIDY = {"id": "id", "time": "t", "variable": "v", "value": "y"}
WIDE = {"id": "id", "time": "t"}


def assert_same_set(one: SeriesSet, other: SeriesSet) -> None:
    assert one.ids == other.ids
    assert one.channel_names == other.channel_names
    for name in ("values", "times", "offsets", "start", "end"):
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def wide_table(arrays, times) -> pd.DataFrame:
    """One row per series and stamp; channels x0, x1, ..."""
    columns = {f"x{c}": np.concatenate([a[c] for a in arrays]) for c in range(len(arrays[0]))}
    ids = np.repeat(np.arange(len(arrays)), [len(t) for t in times])
    return pd.DataFrame({"id": ids, "t": np.concatenate(times), **columns})


def tidy_table(wide: pd.DataFrame) -> pd.DataFrame:
    return wide.melt(["id", "t"], var_name="v", value_name="y").dropna()


@pytest.fixture
def stays() -> pd.DataFrame:
    """Two stays, rows out of order, a text column besides."""
    return pd.DataFrame(
        {
            "id": ["ann", "bob", "ann", "ann"],
            "t": [2.0, 7.0, 0.0, 1.0],
            "pulse": [72, 64, 70, 71],
            "oxygen": [np.nan, 0.97, 0.99, 0.98],
            "note": ["ok", "", "", ""],
        }
    )


@pytest.fixture
def events() -> pd.DataFrame:
    """The same two stays, an observation per row."""
    return pd.DataFrame(
        {
            "id": ["ann", "ann", "ann", "ann", "ann", "bob", "bob"],
            "t": [2.0, 0.0, 0.0, 1.0, 1.0, 7.0, 7.0],
            "v": ["pulse", "pulse", "oxygen", "pulse", "oxygen", "oxygen", "pulse"],
            "y": [72.0, 70.0, 0.99, 71.0, 0.98, 0.97, 64.0],
        }
    )


# Round trips


@given(ragged_series(unobserved_stamps=False), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_wide_tidy_and_polars_tables_are_the_arrays_they_were_made_of(data, random):
    arrays, times = data
    wide = wide_table(arrays, times)
    order = random.sample(range(len(wide)), len(wide))
    wide = wide.iloc[order]
    tidy = tidy_table(wide)
    ids = list(range(len(arrays)))
    channels = sorted(tidy["v"].unique()) or ["x0"]  # a tidy table cannot tell of a channel that was never observed
    picked = [int(c[1:]) for c in channels]
    expected = SeriesSet.from_arrays([a[picked] for a in arrays], times, channel_names=channels)

    assert_same_set(SeriesSet.from_frame(wide, **WIDE, channels=channels, ids=ids), expected)
    assert_same_set(SeriesSet.from_frame(pl.from_pandas(wide), **WIDE, channels=channels, ids=ids), expected)
    if len(tidy):
        assert_same_set(SeriesSet.from_frame(tidy, **TIDY, ids=ids), expected)
        assert_same_set(SeriesSet.from_frame(pl.from_pandas(tidy), **TIDY, ids=ids), expected)


@pytest.mark.parametrize("convert", [lambda table: table, pl.from_pandas], ids=["pandas", "polars"])
def test_wide_and_tidy_tables_of_the_same_stays_agree(stays, events, convert):
    wide = SeriesSet.from_frame(convert(stays), **WIDE, channels=["oxygen", "pulse"])
    tidy = SeriesSet.from_frame(convert(events), **TIDY)
    assert_same_set(wide, tidy)
    assert wide.ids == ("ann", "bob")
    assert_array_equal(wide.values, [[0.99, 70], [0.98, 71], [np.nan, 72], [0.97, 64]])
    assert_array_equal(wide.times, [0, 1, 2, 7])


@pytest.mark.parametrize("missing", [None, float("nan")], ids=["null", "NaN"])
def test_null_and_nan_of_polars_both_mean_not_observed(missing):
    table = pl.DataFrame({"id": [1, 1], "t": [0.0, 1.0], "x": [missing, 2.0]}, schema_overrides={"x": pl.Float64})
    assert_array_equal(SeriesSet.from_frame(table, **WIDE).values, [[np.nan], [2]])


def test_nullable_columns_of_pandas_are_read(stays):
    table = stays.convert_dtypes()
    assert_same_set(SeriesSet.from_frame(table, **WIDE), SeriesSet.from_frame(stays, **WIDE))


# Columns


def test_without_channels_every_other_numeric_column_is_one(stays):
    assert SeriesSet.from_frame(stays, **WIDE).channel_names == ("pulse", "oxygen")


def test_channels_pick_and_order_columns_and_variables(stays, events):
    wide = SeriesSet.from_frame(stays, **WIDE, channels=["oxygen"])
    tidy = SeriesSet.from_frame(events, **TIDY, channels=["pulse", "oxygen"])
    assert (wide.channel_names, tidy.channel_names) == (("oxygen",), ("pulse", "oxygen"))
    assert_array_equal(tidy.values[0], [70, 0.99])


def test_columns_without_text_names_are_read():
    table = pd.DataFrame({"id": [1, 1], "t": [0.0, 1.0], 0: [5.0, 6.0]})
    series = SeriesSet.from_frame(table, **WIDE)
    assert series.channel_names == ("0",)
    assert_array_equal(series.values, [[5], [6]])


def test_numbers_written_as_text_are_numbers():
    table = pd.DataFrame({"id": [1, 1], "t": [0.0, 1.0], "x": ["1.5", None]})
    assert_array_equal(SeriesSet.from_frame(table, **WIDE, channels=["x"]).values, [[1.5], [np.nan]])


def test_missing_columns_are_named_together_with_those_there_are(stays):
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_frame(stays, id="patient", time="t", channels=["pulse", "weight"])
    assert caught.value.problems == (
        "no column 'patient', 'weight'; the table has 'id', 't', 'pulse', 'oxygen', 'note'",
    )


@pytest.mark.parametrize("only", ["variable", "value"])
def test_one_of_variable_and_value_asks_for_the_other(events, only):
    with pytest.raises(SeriesError, match="a tidy table needs both `variable` and `value`; give the other column too"):
        SeriesSet.from_frame(events, **WIDE, **{only: TIDY[only]})


def test_a_column_that_is_not_numeric_is_named_with_what_it_holds(stays):
    stays["pressure"] = ["120", "high", "low", None]
    with pytest.raises(SeriesError) as caught:
        SeriesSet.from_frame(stays, **WIDE, channels=["pulse", "note", "pressure"])
    assert caught.value.problems == (
        "column 'note' holds 'ok', not a number, in 4 rows; convert it or leave it out",
        "column 'pressure' holds 'high', not a number, in 2 rows; convert it or leave it out",
    )


def test_a_date_is_no_value(stays):
    stays["since"] = pd.Timestamp("2024-01-01")
    with pytest.raises(SeriesError, match="column 'since' holds Timestamp"):
        SeriesSet.from_frame(stays, **WIDE, channels=["since"])


def test_a_tidy_value_that_is_not_a_number_is_named(events):
    with pytest.raises(SeriesError, match="column 'y' holds 'n/a', not a number, in 1 rows"):
        SeriesSet.from_frame(events.assign(y=["n/a", *events["y"][1:].astype(str)]), **TIDY)


def test_a_table_without_numeric_columns_asks_for_channels(stays):
    with pytest.raises(SeriesError, match="no numeric column besides id, t; name the channels with `channels`"):
        SeriesSet.from_frame(stays[["id", "t", "note"]], **WIDE)


@pytest.mark.parametrize("channels", [[], ["pulse", "pulse"]])
def test_channels_are_at_least_one_and_each_once(stays, events, channels):
    for table, columns in ((stays, WIDE), (events, TIDY)):
        with pytest.raises(SeriesError, match="name at least one, each once"):
            SeriesSet.from_frame(table, **columns, channels=channels)


def test_two_columns_of_one_name_are_refused(stays):
    with pytest.raises(SeriesError, match="several columns are called 'pulse'; rename them"):
        SeriesSet.from_frame(pd.concat([stays, stays[["pulse"]]], axis=1), **WIDE)


def test_a_variable_nobody_measured_is_an_unobserved_channel_and_warned_of(events):
    with pytest.warns(UserWarning, match="column 'v' never names puls: never observed, unless misspelt"):
        series = SeriesSet.from_frame(events, **TIDY, channels=["puls", "oxygen"])
    assert np.isnan(series.values[:, 0]).all()
    assert np.isfinite(series.values[:, 1]).any()


@pytest.mark.parametrize(("table", "name"), [([[1, 2]], "list"), (pl.LazyFrame({"id": [1]}), "LazyFrame")])
def test_what_is_not_a_table_is_refused_by_type(table, name):
    with pytest.raises(SeriesError, match=f"expected a pandas or polars table, got a {name}; read or collect it"):
        SeriesSet.from_frame(table, **WIDE)


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


# A real table


@pytest.fixture(scope="module")
def physionet() -> pd.DataFrame:
    """The first 300 stays of PhysioNet 2012 set a, an observation per row, hours as times."""
    if "SMOOTHCDE_DATA" not in os.environ:
        pytest.skip("set SMOOTHCDE_DATA to a folder that holds PhysioNet 2012's set-a.tar.gz")
    archive = next(Path(os.environ["SMOOTHCDE_DATA"]).rglob("set-a.tar.gz"), None)
    if archive is None:
        pytest.skip("no set-a.tar.gz below SMOOTHCDE_DATA")
    stays = []
    with tarfile.open(archive) as files:
        for member in files:
            if member.name.endswith(".txt"):
                stays.append(pd.read_csv(files.extractfile(member)).assign(id=int(Path(member.name).stem)))
            if len(stays) == 300:
                break
    table = pd.concat(stays, ignore_index=True).query("Parameter != 'RecordID'")
    clock = table["Time"].str.split(":", expand=True).astype(float)
    return table.assign(hours=clock[0] + clock[1] / 60)


ICU = {"id": "id", "time": "hours", "variable": "Parameter", "value": "Value"}


def test_real_stays_agree_with_a_pandas_pivot(physionet):
    series = SeriesSet.from_frame(physionet, **ICU, duplicates="mean")
    pivot = physionet.pivot_table(index=["id", "hours"], columns="Parameter", values="Value", aggfunc="mean")
    assert series.channel_names == tuple(pivot.columns)
    assert len(series) == physionet["id"].nunique() == 300
    pivot = pivot.loc[list(series.ids)]
    assert_array_equal(series.times, pivot.index.get_level_values("hours"))
    assert_allclose(series.values, pivot.to_numpy(), rtol=1e-12)


def test_conflicting_values_of_real_stays_are_named(physionet):
    with pytest.raises(SeriesError, match=r"series \d+, \w+: several values at time .*duplicates="):
        SeriesSet.from_frame(physionet, **ICU)
