"""What is made of a table: series, targets, static features, and the sentence for what cannot be."""

import json

import numpy as np
import pandas as pd
import pytest

from smoothcde.data.tables import (
    StaticEncoder,
    TableError,
    TableLayout,
    guessed_task,
    learned_channels,
    read_table,
    seconds_of,
    targets_by_series,
)
from smoothcde.series import SeriesError


def test_nullable_columns_of_one_value_with_gaps_are_kept():
    frame = pd.DataFrame({"id": ["a"] * 3, "time": [0, 1, 2], "k": pd.array([1, None, 1], dtype="Int64")})
    layout, notes = learned_channels(frame, TableLayout())
    assert layout.channels == ("k",)
    assert not notes


def test_a_layout_reads_wide_tables_and_survives_json(wide):
    frame = read_table(wide, text=["id"])
    layout, notes = learned_channels(frame, TableLayout())
    assert (layout.channels, notes) == (("hr", "sat"), [])
    layout = TableLayout.from_dict(json.loads(json.dumps(layout.as_dict())))
    series = layout.series(frame, ids=["b", "007", "absent"])
    assert (series.ids, series.lengths.tolist()) == (("b", "007", "absent"), [2, 2, 0])
    np.testing.assert_array_equal(series.values[2], [71, 0.97])


def test_a_layout_reads_tidy_tables():
    frame = pd.DataFrame(
        {"who": ["a", "a", "b"], "when": [0, 1, 0], "what": ["x", "y", "x"], "how_much": [1.0, 2.0, 5.0]}
    )
    layout = TableLayout(id="who", time="when", variable="what", value="how_much")
    layout, notes = learned_channels(frame, layout)
    assert layout.channels == ("x", "y")
    assert notes == ["variable 'y' is always 2: kept, since when it was observed may matter"]
    np.testing.assert_array_equal(layout.series(frame).values, [[1, np.nan], [np.nan, 2], [5, np.nan]])


def test_columns_that_say_nothing_are_left_out_and_named():
    frame = pd.DataFrame({"id": ["a", "a"], "time": [0, 1], "x": [1.0, 2.0], "y": [3, 3], "z": [None, None]})
    frame["note"], frame["when"], frame["w"] = ["good", "bad"], pd.Timestamp("2024-05-17"), [1.0, np.nan]
    layout, notes = learned_channels(frame, TableLayout(), other=["x"])
    assert layout.channels == ("w",)
    assert notes == [
        "columns 'note' ('good'), 'when' ('2024-05-17 00:00:00') hold no numbers: left out",
        "column 'y' is always 3: left out",
        "column 'z' is empty: left out",
    ]


def test_a_column_of_dates_that_holds_none_is_empty():
    frame = pd.DataFrame({"id": ["a", "a"], "time": [0, 1], "x": [1.0, 2.0], "d": pd.to_datetime([None, None])})
    layout, notes = learned_channels(frame, TableLayout())
    assert layout.channels == ("x",)
    assert notes == ["column 'd' is empty: left out"]


def test_channels_that_are_chosen_are_taken_as_they_are():
    frame = pd.DataFrame({"id": ["a"], "time": [0], "x": [1.0], "y": [3]})
    layout = TableLayout(channels=("y",))
    assert learned_channels(frame, layout) == (layout, [])


def test_a_declared_window_is_that_of_every_series(wide):
    layout, _ = learned_channels(frame := read_table(wide, text=["id"]), TableLayout(end=1.0))
    series = layout.series(frame, ids=["007", "b", "absent"])
    assert series.end.tolist() == [1, 1, 1]
    assert series.batch().lengths.tolist() == [1, 1, 0]
    late = TableLayout(channels=layout.channels, start=5.0).series(frame)
    assert (late.start.tolist(), late.end.tolist()) == ([5, 5], [5, 5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TableLayout(variable="what"), "a tidy table needs both its variable and its value column"),
        (lambda: TableLayout(time="id"), "id, time, variable and value are 'id', 'id'; name different columns"),
        (lambda: TableLayout(duplicates="median"), "duplicates is 'median'; use any of: 'error', 'mean'"),
        (
            lambda: TableLayout(channels=("x", "y")).columns(["id", "x"]),
            "no column 'time', 'y'; the table has 'id', 'x'",
        ),
        (lambda: seconds_of("noon"), "'noon' is neither a number nor an ISO 8601 date; write 48 or 2024"),
    ],
)
def test_a_layout_that_cannot_be_is_explained(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": ["1", "high"]}, "column 'x' holds 'high', not a number, in 1 of 2 rows; correct them"),
        (
            {"x": [1, 1]},
            r"no column is left to learn from besides 'id' and 'time' \(column 'x' is always 1: left out\)",
        ),
        ({}, "no column is left to learn from besides 'id' and 'time'$"),
    ],
)
def test_a_table_without_channels_is_explained(columns, message):
    with pytest.raises(TableError, match=message):
        learned_channels(pd.DataFrame({"id": ["a", "a"], "time": [0, 1], **columns}), TableLayout())


@pytest.mark.parametrize(("moment", "seconds"), [("48", 48.0), ("1970-01-02T00:00", 86400.0), ("1970-01-01", 0.0)])
def test_moments_are_numbers_or_dates(moment, seconds):
    assert seconds_of(moment) == seconds


def labels(values, ids=None):
    return pd.DataFrame({"id": ids or [f"s{i}" for i in range(len(values))], "y": pd.Categorical(values)})


def targets(values, ids=None):
    return targets_by_series(labels(values, ids), "id", ["y"], "the table")


@pytest.mark.parametrize(
    ("values", "found", "task"),
    [
        (["0", "1", "1"], [0, 1, 1], "classification"),
        (["1.0", "2.0", "NA"], [1, 2], "classification"),
        (["yes", "None", None], ["yes", "None"], "classification"),
        (["0.5", "1", "2"], [0.5, 1, 2], "regression"),
        ([str(i) for i in range(21)], list(range(21)), "regression"),
        (["True", "False"], ["True", "False"], "classification"),
    ],
)
def test_targets_are_numbers_if_all_of_them_are(values, found, task):
    table = targets(values)
    assert table["y"].dropna().tolist() == found
    assert len(table) == len(values)
    assert guessed_task(table) == task


def test_the_target_of_a_series_is_that_of_its_rows():
    table = targets(["1", None, "0", "1"], ids=["b", "a", "a", "b"])
    assert table["y"].to_dict() == {"b": 1, "a": 0}


def test_a_target_that_varies_within_a_series_is_refused():
    with pytest.raises(TableError, match="'y' varies within series b, c \\(0, 1 in the first\\); give each series one"):
        targets(["0", "0", "0", "1", "1", "2"], ids=["a", "a", "b", "b", "c", "c"])


def test_infinite_targets_and_nameless_rows_are_refused():
    with pytest.raises(TableError, match="column 'y' holds infinite values"):
        targets(["1.5", "inf"])
    with pytest.raises(TableError, match="1 rows of the table have no 'id'"):
        targets(["1", "2"], ids=["a", None])


STATIC = pd.DataFrame(
    {
        "id": ["a", "b", "c", "d"],
        "age": [50.0, 60.0, 80.0, 90.0],
        "height": [np.nan, 170.0, 180.0, np.nan],
        "unit": ["north", "south", None, "north"],
        "site": ["x"] * 4,
    }
)


def test_static_columns_become_numbers():
    encoder, notes = StaticEncoder.fit(STATIC, "id")
    assert notes == ["static column 'site' is always x: left out"]
    encoder = StaticEncoder.from_dict(json.loads(json.dumps(encoder.as_dict())))
    table, notes = encoder.encode(STATIC, "id", ["c", "a"])
    assert notes == []
    assert table.to_dict("list") == {
        "id": ["a", "c"],
        "age": [50.0, 80.0],
        "height": [175.0, 180.0],
        "height missing": [1.0, 0.0],
        "unit=north": [1.0, 0.0],
        "unit=south": [0.0, 0.0],
    }


def test_what_training_did_not_have_is_told():
    encoder, _ = StaticEncoder.fit(STATIC, "id")
    new = pd.DataFrame({"id": ["z"], "age": [np.nan], "height": [1.0], "unit": ["west"]})
    table, notes = encoder.encode(new, "id", ["z"])
    assert table[["age", "unit=north", "unit=south"]].to_numpy().tolist() == [[70.0, 0.0, 0.0]]
    assert notes == [
        "static column 'age' is empty for 1 series: the training median is used",
        "static column 'unit' holds 'west', unknown to the model",
    ]


def test_static_tables_that_do_not_fit_are_explained(wide):
    encoder, _ = StaticEncoder.fit(STATIC, "id")
    with pytest.raises(
        TableError, match="the static table has no column 'height'; its columns are 'id', 'age', 'unit'"
    ):
        encoder.encode(STATIC[["id", "age", "unit"]], "id", ["a"])
    with pytest.raises(TableError, match="static column 'age' holds text; the model was trained on numbers there"):
        encoder.encode(STATIC.assign(age="old"), "id", ["a"])
    with pytest.raises(TableError, match=r"no column to learn from besides 'id' \(static column 'site' is always x"):
        StaticEncoder.fit(STATIC[["id", "site"]], "id")
    frame = read_table(wide, text=["id"])
    with pytest.raises(SeriesError, match="the static table has no row for series 007; add them"):
        TableLayout(channels=("hr",)).series(frame, static=encoder.encode(STATIC, "id", ["007", "b"])[0])


def test_a_static_column_of_numbers_with_some_text_in_it_is_left_out_and_codes_are_not():
    frame = pd.DataFrame({"id": list("abcdef"), "age": ["50.1", "29", "38.6", "unknown", None, "44"]})
    frame["ward"], frame["since"] = ["1", "2", "x", "1", "2", "1"], pd.date_range("2024-05-17", periods=6)
    encoder, notes = StaticEncoder.fit(frame, "id")
    assert encoder.needed == ["ward", "since"]
    assert notes == [
        "static column 'age' holds numbers, but for 'unknown': left out; to use it, empty such cells",
        "static column 'ward' holds numbers and text: taken as 3 categories",
    ]


def test_many_texts_are_no_categories():
    frame = pd.DataFrame({"id": range(30), "name": [f"n{i}" for i in range(30)], "age": range(30)})
    encoder, notes = StaticEncoder.fit(frame, "id")
    assert notes == ["static column 'name' holds 30 different texts: left out"]
    assert encoder.needed == ["age"]
