"""Tables in files: what is read and written, and the sentence for a file that cannot be."""

import numpy as np
import pandas as pd
import pytest

from smoothcde.data.tables import (
    StaticEncoder,
    TableError,
    read_header,
    read_table,
    targets_by_series,
    write_table,
)


def test_ids_are_text_and_empty_cells_are_not_observed(wide):
    frame = read_table(wide, text=["id"])
    assert frame["id"].tolist() == ["007", "007", "b", "b"]
    np.testing.assert_array_equal(frame["hr"], [71, np.nan, 64, np.nan])
    np.testing.assert_array_equal(frame["sat"], [0.97, 0.95, np.nan, 0.99])


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_what_is_written_is_read(tmp_path, name, wide):
    frame = read_table(wide, text=["id"])
    write_table(frame, tmp_path / "new" / name)
    back = read_table(tmp_path / "new" / name, text=["id"])
    pd.testing.assert_frame_equal(back, frame)
    assert [path.name for path in (tmp_path / "new").iterdir()] == [name]  # nothing half-written beside it


def test_csv_and_parquet_agree_on_ids_whatever_their_type(tmp_path):
    write_table(pd.DataFrame({"id": [3.0, 12.0, np.nan], "x": [1, 2, 3]}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("id,x\n3,1\n12,2\n,3\n")
    for name in ("t.csv", "t.parquet"):
        ids = read_table(tmp_path / name, text=["id"])["id"]
        assert ids[:2].tolist() == ["3", "12"]
        assert ids.isna().tolist() == [False, False, True]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_recognised(tmp_path, separator, wide):
    file = tmp_path / "t.csv"
    file.write_text(wide.read_text().replace(",", separator))
    assert read_header(file) == ["id", "time", "hr", "sat"]
    assert read_table(file)["hr"].notna().sum() == 2


def test_decimal_commas_where_semicolons_separate(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("id;time;x;y;note\na;0,5;-1,25;3;1,5 or so\na;1;;,5;2\nb;1e1;2,;1,5e-1;none\n")
    frame = read_table(file, text=["id"])
    np.testing.assert_array_equal(frame["time"], [0.5, 1, 10])
    np.testing.assert_array_equal(frame["x"], [-1.25, np.nan, 2])
    np.testing.assert_array_equal(frame["y"], [3, 0.5, 0.15])
    assert frame["note"].iloc[0] == "1,5 or so"  # no number, so the column stays as it is written
    file.write_text("id\tx\na\t1,250\n")  # a thousand and more, or a little over one? nobody knows
    assert read_table(file)["x"].tolist() == ["1,250"]


def test_points_set_thousands_apart_where_a_column_has_decimal_commas(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("id;time;a;b;c\n1;0;12.001.007;-0,7;1.234,5\n1;1;950;0,2;\n2;0;1.007;1,5;2.500\n")
    frame = read_table(file, text=["id"])
    np.testing.assert_array_equal(frame["a"], [12_001_007, 950, 1007])
    np.testing.assert_array_equal(frame["b"], [-0.7, 0.2, 1.5])
    np.testing.assert_array_equal(frame["c"], [1234.5, np.nan, 2500])


@pytest.mark.parametrize("cells", [("1.007", "950"), ("1.007", "2.125"), ("-1.000", "")])
def test_points_that_may_be_either_are_refused_beside_decimal_commas(tmp_path, cells):
    file = tmp_path / "t.csv"
    file.write_text(f"id;time;a;b\n1;0;{cells[0]};-0,7\n1;1;{cells[1]};0,2\n")
    with pytest.raises(
        TableError, match=r"column 'a' of .* holds .* and column 'b' has decimal commas: is that a point"
    ):
        read_table(file, text=["id"])
    np.testing.assert_allclose(read_table(file, text=["id"], columns=["id", "time", "b"])["b"], [-0.7, 0.2])


def test_decimal_points_beside_decimal_commas_are_what_they_are(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("id;time;flag;b\n1;0.000;True;0,5\n1;0.125;;0,7\n2;1.250;False;1,5\n")
    frame = read_table(file, text=["id"])
    np.testing.assert_array_equal(frame["time"], [0, 0.125, 1.25])
    np.testing.assert_array_equal(frame["flag"], [1, np.nan, 0])


def test_truth_values_may_have_gaps(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("id,time,flag\n1,0,True\n1,1,\n2,0,False\n")
    np.testing.assert_array_equal(read_table(file, text=["id"])["flag"], [1, np.nan, 0])


def test_a_file_that_ends_in_the_middle_of_a_line_is_told(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("id,time,a,b\n1,0,2,3\n1,1,2")
    with pytest.warns(UserWarning, match="last line of .* has 3 fields where the header has 4, .*: was the file cut"):
        read_table(file, text=["id"])


@pytest.mark.filterwarnings("error")
def test_compressed_files_have_no_last_line_to_look_at(tmp_path):
    file = tmp_path / "T.CSV.GZ"
    pd.DataFrame({"id": range(200), "time": 0, "a": np.random.default_rng(0).normal(size=200)}).to_csv(
        file, index=False, compression="gzip"
    )
    assert len(read_table(file, text=["id"])) == 200


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("end", ["\n1,1,2\n", "\n1,1,2,", "\n1,1,2,4", '\n1,1,2,"x, y"', "\n\n"])
def test_other_ends_are_not(tmp_path, end):
    file = tmp_path / "t.csv"
    file.write_text(f"id,time,a,b\n1,0,2,3{end}")
    read_table(file, text=["id"])


def test_targets_have_decimal_commas_and_names_do_not(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("id;y\n1,5;0,1\n1,6;0,25\n1,7;NA\n")
    targets = targets_by_series(read_table(file, text=["id"], targets=["y"]), "id", ["y"], "t")
    assert targets.index.tolist() == ["1,5", "1,6", "1,7"]
    np.testing.assert_array_equal(targets["y"], [0.1, 0.25, np.nan])


def test_whole_numbers_are_the_same_names_with_a_fraction(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("id,x\n0.0,1\n1.0,2\n,3\n")
    assert read_table(file, text=["id"])["id"][:2].tolist() == ["0", "1"]
    file.write_text("id,x\n1.0,1\n1.1,2\n")  # parts of something, it seems
    assert read_table(file, text=["id"])["id"].tolist() == ["1.0", "1.1"]
    file.write_text("id,x\n3,1\n3.0,2\n12,3\n")  # two programs wrote to it
    assert read_table(file, text=["id"])["id"].tolist() == ["3", "3", "12"]
    training = pd.DataFrame({"id": ["a", "b", "c"], "ward": ["1", "2", "x"]})
    encoder, _ = StaticEncoder.fit(training, "id")
    features, notes = encoder.encode(pd.DataFrame({"id": ["d", "e"], "ward": [1.0, np.nan]}), "id", ["d", "e"])
    assert features["ward=1"].tolist() == [1, 0]
    assert not notes


def test_spaces_a_byte_order_mark_and_row_numbers_do_no_harm(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes(b"\xef\xbb\xbf, id, time, hr\n0, a, 1, 2\n")
    assert read_header(file) == ["id", "time", "hr"]
    assert read_table(file, text=["id"]).to_numpy().tolist() == [["a", 1, 2]]


def test_cells_padded_to_a_width_are_what_they_hold(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("id , time, a   , b   \nx  , 0   , 1.5 , nan \nx  , 1   , NA  , 2   \nyy , 0   , 3   , ?   \n")
    frame = read_table(file, text=["id"])
    assert frame["id"].tolist() == ["x", "x", "yy"]
    np.testing.assert_array_equal(frame["a"], [1.5, np.nan, 3])
    np.testing.assert_array_equal(frame["b"], [np.nan, 2, np.nan])


def test_only_the_columns_asked_for_are_read(wide, tmp_path):
    write_table(read_table(wide), tmp_path / "t.parquet")
    for file in (wide, tmp_path / "t.parquet"):
        assert list(read_table(file, columns=["id", "sat", "other"]).columns) == ["id", "sat"]


def test_a_named_index_of_parquet_is_a_column(tmp_path):
    pd.DataFrame({"x": [1, 2]}, index=pd.Index(["a", "b"], name="id")).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", text=["id"])["id"].tolist() == ["a", "b"]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    file = tmp_path / "t.parquet"
    file.write_text("old")
    with pytest.raises(Exception):  # noqa: B017 - whatever pyarrow raises
        write_table(pd.DataFrame({"x": [object()]}), file)
    assert file.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


FILES = {
    "empty.csv": (b"", "'.*empty.csv' is empty; give a CSV"),
    "blank.csv": (b"\n\n", "'.*blank.csv' is empty; give a CSV"),
    "rows.csv": (b"id,time\n", "'.*rows.csv' has a header but no rows"),
    "picture.csv": (b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe", "'.*picture.csv' is not text in UTF-8; save it"),
    "latin.csv": ("id,größe\na,1\n".encode("latin-1"), "'.*latin.csv' is not text in UTF-8; save it as CSV in UTF-8"),
    "ragged.csv": (
        b"id,time\na,1\na,2,3\n",
        "line 3 has 3 fields where the header has 2; quote fields that hold ','",
    ),
    "longer.csv": (b"id,time\na,1,3\nb,2,3\n", "its rows have more fields than the header"),
    "numbers.csv": (
        b"1,2.5,3e4\n4,5,6\n",
        "the first row of '.*numbers.csv' holds only numbers; give the columns names",
    ),
    "twice.csv": (b"id,x,x\na,1,2\n", "'.*twice.csv' has several columns called 'x'; rename them"),
    "sheet.xlsx": (b"PK\x03\x04", "'.*sheet.xlsx' is a spreadsheet or a zip archive; export the sheet as CSV"),
    "text.parquet": (b"id,time\na,1\n", r"'.*text.parquet' is no readable Parquet file \(.*\); give a CSV"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_table_is_explained(tmp_path, name):
    content, message = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / name, text=["id"])


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(TableError, match=r"there is no file '.*none.csv'; check its name and folder"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="is a folder; give a CSV"):
        read_table(tmp_path)
