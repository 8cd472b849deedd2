"""The challenge of 2012: a small archive of its form, and the real sets where they are at hand."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from smoothcde.data.physionet import read_physionet2012
from smoothcde.data.tables import write_table

DATA = os.environ.get("SMOOTHCDE_DATA")

HEAD = "Time,Parameter,Value\n00:00,RecordID,{}\n00:00,Age,{}\n00:00,Gender,{}\n00:00,Height,-1\n00:00,ICUType,{}\n"
RECORDS = {
    "101": HEAD.format(101, 54, 0, 4) + "00:00,Weight,-1\n00:07,HR,73\n00:07,HR,75\n00:07,HR,75\n47:30,pH,7.4\n",
    "102": HEAD.format(102, 76, -1, 2) + "00:00,Weight,80.5\n00:00,HR,60\n10:15,Weight,81\n10:15,HR,61\n10:15,HR,61",
    "103": HEAD.format(103, 30, 1, 3) + "00:00,Weight,70\n",
}
OUTCOMES = """RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death
101,6,1,5,-1,0
102,-1,8,8,3,1
103,20,9,-1,-1,0
"""


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "PhysioNet2012"
    place.mkdir()
    with tarfile.open(place / "set-a.tar.gz", "w:gz") as archive:
        for name, text in RECORDS.items():
            entry = tarfile.TarInfo(f"set-a/{name}.txt")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    (place / "Outcomes-a.txt").write_text(OUTCOMES)
    return place


def test_observations_are_tidy_and_in_hours(folder):
    table = read_physionet2012("a", folder).observations
    assert list(table.columns) == ["id", "time", "variable", "value"]
    assert table.astype({"id": str, "variable": str}).to_numpy().tolist()[3:] == [
        ["101", 47.5, "pH", 7.4],
        ["102", 0.0, "HR", 60.0],
        ["102", 10.25, "Weight", 81.0],
        ["102", 10.25, "HR", 61.0],
        ["102", 10.25, "HR", 61.0],
    ]


def test_descriptors_are_static_and_minus_one_is_missing(folder):
    table = read_physionet2012("a", folder).static
    expected = pd.DataFrame(
        {
            "id": ["101", "102", "103"],
            "Age": [54.0, 76.0, 30.0],
            "Gender": [0.0, np.nan, 1.0],
            "Height": [np.nan] * 3,
            "ICUType": ["surgical", "cardiac surgery", "medical"],
            "Weight": [np.nan, 80.5, 70.0],
        }
    )
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_outcomes_are_labels_and_minus_one_is_missing(folder):
    table = read_physionet2012("a", folder).labels
    assert table["id"].tolist() == ["101", "102", "103"]
    assert table["in_hospital_death"].tolist() == [0, 1, 0]
    assert table["length_of_stay"].dropna().tolist() == [5, 8]
    assert table["survival"].dropna().tolist() == [3]
    assert table["saps_i"].dropna().tolist() == [6, 20]


def test_a_stay_without_observations_is_not_lost(folder):
    found = read_physionet2012("a", folder)
    assert found.without_series == ["103"]
    assert "103" in set(found.labels["id"]) & set(found.static["id"])


@pytest.mark.parametrize(("rule", "value"), [("mean", 223 / 3), ("first", 73.0), ("last", 75.0)])
def test_several_values_at_one_stamp_become_one(folder, rule, value):
    whole = read_physionet2012("a", folder)
    assert whole.conflicting == 1  # stay 102 repeats itself, but does not contradict itself
    merged = whole.merged(rule)
    assert merged.conflicting == 0
    assert len(merged.observations) == 5
    first = merged.observations.iloc[0]
    assert (first["id"], first["variable"], first["value"]) == ("101", "HR", pytest.approx(value))


def test_they_can_be_kept(folder):
    whole = read_physionet2012("a", folder)
    assert len(whole.merged("keep").observations) == len(whole.observations) == 8


def test_unknown_rules_and_sets_are_answered_with_the_known(folder):
    with pytest.raises(ValueError, match="duplicates is 'median'; use any of: 'mean', 'last', 'first', 'keep'"):
        read_physionet2012("a", folder).merged("median")
    with pytest.raises(ValueError, match="there is no set 'x'; use any of: 'a', 'b', 'c'"):
        read_physionet2012("x", folder)


def test_absent_files_are_named_with_where_to_get_them(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"set-b.tar.gz and Outcomes-b.txt not found in .*physionet.org"):
        read_physionet2012("b", folder)
    monkeypatch.setenv("SMOOTHCDE_DATA", str(folder))
    with pytest.raises(FileNotFoundError, match=r"`smoothcde datasets physionet2012 --download` fetches it from https"):
        read_physionet2012("b")
    with pytest.raises(
        FileNotFoundError, match=r"physionet2012 was not found in '.*'; put set-c.tar.gz and Outcomes-c"
    ):
        read_physionet2012("c")  # not among what is downloaded


def test_a_damaged_archive_is_to_be_downloaded_again(folder):
    archive = folder / "set-a.tar.gz"
    archive.write_bytes(archive.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"set-a.tar.gz is damaged .*; download it again from"):
        read_physionet2012("a", folder)


def test_the_folder_is_below_the_one_that_the_environment_names(folder, monkeypatch):
    monkeypatch.setenv("SMOOTHCDE_DATA", str(folder.parent))
    assert len(read_physionet2012("a").labels) == 3


@pytest.mark.parametrize(("name", "deaths"), [("a", 554), ("b", 568)])
def test_the_real_sets(name, deaths):
    if DATA is None or not (Path(DATA) / "PhysioNet2012" / f"set-{name}.tar.gz").exists():
        pytest.skip(f"set SMOOTHCDE_DATA to a folder with PhysioNet2012/set-{name}.tar.gz to read it")
    found = read_physionet2012(name)
    assert len(found.static) == len(found.labels) == 4000
    assert found.labels["in_hospital_death"].sum() == deaths
    assert found.observations["variable"].nunique() == 37
    assert len(found.observations) > 1_700_000
    if name == "a":
        assert found.conflicting == 1167
        assert found.without_series == ["140501", "140936", "141264"]


READ = """
import resource, sys
from smoothcde.data.tables import TableLayout, learned_channels, read_header, read_table

layout = TableLayout(variable="variable", value="value")
frame = read_table(sys.argv[1], text=layout.names, columns=layout.columns(read_header(sys.argv[1])))
series = learned_channels(frame, layout)[0].series(frame)
print(len(series), series.channels, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_real_set_is_read_within_a_gigabyte_and_a_half(tmp_path, format):
    if DATA is None or not (Path(DATA) / "PhysioNet2012" / "set-a.tar.gz").exists():
        pytest.skip("set SMOOTHCDE_DATA to a folder with PhysioNet2012/set-a.tar.gz to read it")
    file = tmp_path / f"set-a.{format}"
    write_table(read_physionet2012("a").merged("mean").observations, file)
    printed = subprocess.run([sys.executable, "-c", READ, file], capture_output=True, text=True, check=True).stdout
    count, channels, megabytes = map(int, printed.split())
    assert (count, channels) == (3997, 37)
    assert megabytes < 1500
