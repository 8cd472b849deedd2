"""Tables in: wide or tidy, pandas or polars, dates or numbers."""

import os
import tarfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from series_strategies import ragged_series
from series_tables import TIDY, WIDE

from smoothcde.series import SeriesError, SeriesSet


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


def test_truth_values_and_decimals_with_gaps_are_channels():
    table = pd.DataFrame(
        {
            "id": ["a", "a", "b"],
            "time": [0, 1, 0],
            "alarm": pd.Series([True, None, False], dtype=object),
            "dose": pd.Series([Decimal("1.5"), None, Decimal("2")], dtype=object),
            "note": ["x", None, "y"],
        }
    )
    for frame in (table, pl.from_pandas(table)):
        series = SeriesSet.from_frame(frame, id="id", time="time")
        assert series.channel_names == ("alarm", "dose")
        np.testing.assert_array_equal(series.values, [[1, 1.5], [np.nan, np.nan], [0, 2]])


def test_numbers_that_look_like_dates_are_told():
    frame = pd.DataFrame({"id": "a", "time": [20240330, 20240331, 20240401], "x": [1.0, 2.0, 3.0]})
    infinite = pd.DataFrame({"id": "a", "time": [np.inf, 20240330, 20240331, 20240401], "x": 1.0})
    with pytest.raises(SeriesError, match="NaN or infinite"), pytest.warns(UserWarning, match="such as 20240330"):
        SeriesSet.from_frame(infinite, id="id", time="time")
    with pytest.warns(
        UserWarning, match="numbers such as 20240330, taken as they are; if they are dates, write them as 2024-03-30"
    ):
        assert SeriesSet.from_frame(frame, id="id", time="time").times.tolist() == [20240330, 20240331, 20240401]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("times", [[20240330], [20240330, 20240399], [20240330, 20240330.5], [1, 2]])
def test_others_are_not(times):
    SeriesSet.from_frame(pd.DataFrame({"id": "a", "time": times, "x": 1.0}), id="id", time="time")


def test_a_single_channel_may_be_named_without_a_list():
    frame = pd.DataFrame({"id": "a", "time": [0, 1], "load": [1.0, 2.0], "y": 0})
    assert SeriesSet.from_frame(frame, id="id", time="time", channels="load").channel_names == ("load",)
