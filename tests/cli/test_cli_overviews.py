"""Help, models and data sets: what a newcomer looks at first."""

import io
import json
import tarfile
from dataclasses import replace

import pandas as pd
import pytest
from cli_tables import command

from smoothcde.cli.options import listed_channels
from smoothcde.data.known import KNOWN, Remote
from smoothcde.models import MODELS

COMMANDS = ("fit", "predict", "evaluate", "explain", "models", "datasets", "demo", "compare", "footprint")


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_a_narrow_terminal(name):
    result = command(*([name] if name else []), "--help", width=80)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in result.stdout  # nothing cut off
    assert f"Usage: smoothcde {name}".strip() in result.stdout


def test_commands_on_tables_come_first():
    lines = command("--help", width=80).stdout
    places = [lines.index(f"│ {name} ") for name in COMMANDS]
    assert places == sorted(places)


def test_no_command_shows_the_help():
    assert "smoothcde fit train.csv" in command().output


def test_every_model_has_its_line():
    lines = [line.split(maxsplit=1) for line in command("models", width=80).stdout.splitlines()]
    assert [name for name, _ in lines] == list(MODELS)
    assert all(len(words) > 10 for _, words in lines)
    assert list(json.loads(command("models", "--json").stdout)["models"]) == list(MODELS)


def test_data_sets_say_whether_they_are_there_and_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    text = command("datasets").stdout
    assert f"absent from {tmp_path / 'PhysioNet2012'}" in text
    assert "smoothcde datasets physionet2012 --download" in text
    assert "or put set-a.tar.gz and Outcomes-a.txt from https://physionet.org" in text
    assert "JapaneseVowels: 640 utterances" in text
    found = json.loads(command("datasets", "--json").stdout)["datasets"]
    assert found["physionet2012"]["folder"] is None
    assert found["JapaneseVowels"]["folder"].endswith("JapaneseVowels")
    assert found["PEMS-SF"]["addresses"] == ["https://timeseriesclassification.com/aeon-toolkit/PEMS-SF.zip"]
    assert {"ETTm1", "SpeechCommands", "FreeSpokenDigits"} <= set(found)
    monkeypatch.delenv("SMOOTHCDE_DATA")
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
    assert f"absent from {tmp_path / 'cache' / 'smoothcde' / 'PhysioNet2012'}" in command("datasets").stdout


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_set_of_the_archive_becomes_tables(tmp_path, format):
    result = command("datasets", "BasicMotions", "--out", tmp_path, "--format", format)
    assert result.exit_code == 0, result.output
    assert "40 series, 6 channels, 4 classes" in result.stdout
    table = (pd.read_csv if format == "csv" else pd.read_parquet)(tmp_path / f"train.{format}")
    assert list(table.columns) == ["id", "time", *(f"channel_{c}" for c in range(6)), "label"]
    assert len(table) == 40 * 100


RECORD = "Time,Parameter,Value\n00:00,RecordID,{0}\n00:00,Age,54\n00:00,Weight,-1\n00:07,HR,73\n00:07,HR,75\n"


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    place = tmp_path / "data" / "PhysioNet2012"
    place.mkdir(parents=True)
    with tarfile.open(place / "set-a.tar.gz", "w:gz") as archive:
        for name in ("101", "102"):
            text = RECORD.format(name).encode()
            entry = tarfile.TarInfo(f"set-a/{name}.txt")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    outcomes = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n101,6,1,5,-1,0\n102,6,1,5,2,1\n"
    (place / "Outcomes-a.txt").write_text(outcomes)
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path / "data"))
    return tmp_path


@pytest.mark.parametrize(("rule", "values"), [("mean", [74, 74]), ("last", [75, 75]), ("keep", [73, 75, 73, 75])])
def test_the_challenge_becomes_three_tables_a_set(challenge, rule, values):
    result = command("datasets", "physionet2012", "--out", challenge / "t", "--duplicates", rule, "--json")
    assert result.exit_code == 0, result.output
    tables = json.loads(result.stdout)["tables"]
    assert list(tables) == ["set-a", "set-a-labels", "set-a-static"]
    table = pd.read_csv(tables["set-a"]["file"])
    assert table["value"].tolist() == values
    assert pd.read_csv(tables["set-a-labels"]["file"])["in_hospital_death"].tolist() == [0, 1]
    assert pd.read_csv(tables["set-a-static"]["file"])["Weight"].isna().all()
    if rule == "mean":
        assert tables["set-a"]["about"].endswith("2 repeated ones merged (mean), in conflict in 2 stays")


def test_an_absent_set_says_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    result = command("datasets", "physionet2012", "--out", tmp_path / "t", width=400)
    assert result.exit_code == 1
    assert f"was not found in '{tmp_path / 'PhysioNet2012'}'; `smoothcde datasets physionet2012" in result.stderr
    assert "or put set-a.tar.gz and Outcomes-a.txt from" in result.stderr


def test_a_set_is_downloaded_and_becomes_tables(tmp_path, monkeypatch):
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path / "data"))
    recording = "date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT\n2016-07-01 00:00:00,5.8,2,1.6,0.5,4.2,1.3,30.5\n"

    def arrives(data, remote, fresh, place, progress):
        assert (remote.address.rpartition("/")[2], progress) == ("ETTm1.csv", False)
        fresh.write_text(recording)

    monkeypatch.setattr("smoothcde.data.download._download", arrives)
    result = command("datasets", "ETTm1", "--download", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"dataset": "ETTm1", "folder": str(tmp_path / "data" / "ETT")}
    result = command("datasets", "ETTm1", "--download", "--out", tmp_path / "t")
    assert "1 row, 7 channels" in result.stdout
    table = pd.read_csv(tmp_path / "t" / "ETTm1.csv")
    assert table.iloc[0].tolist() == ["ETTm1", "2016-07-01", 5.8, 2.0, 1.6, 0.5, 4.2, 1.3, 30.5]


def test_a_download_that_fails_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    monkeypatch.setitem(KNOWN, "ETTm1", replace(KNOWN["ETTm1"], remotes=(Remote("http://127.0.0.1:9/x", "ETTm1.csv"),)))
    result = command("datasets", "ETTm1", "--download", width=400)
    assert result.exit_code == 1
    assert "Error: ETTm1 could not be downloaded from http://127.0.0.1:9/x (no connection); check" in result.stderr
    assert "Traceback" not in result.output


def test_what_to_download_has_to_be_said():
    assert command("datasets", "--download").exit_code == 2


def test_channels_are_named_with_commas_between_and_in_quotes_where_they_hold_one():
    assert listed_channels("pulse, sat") == ("pulse", "sat")
    assert listed_channels('"pulse, left", sat,') == ("pulse, left", "sat")
    assert listed_channels(None) == ()
