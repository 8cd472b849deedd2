"""Wrong inputs, and the sentence each gets."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cli_tables import command, per_series, tidy, waves
from wrong_inputs import FAILED, FIT, NO_MODEL, TIDY, USAGE, WRONG, changed

from smoothcde.estimators import CDEClassifier, Predictor


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model fitted on waves with a static column."""
    folder = tmp_path_factory.mktemp("wrong")
    waves().drop(columns="dose").to_csv(folder / "t.csv", index=False)
    per_series(waves(), "dose").to_csv(folder / "s.csv", index=False)
    result = command(
        "fit",
        folder / "t.csv",
        "--target",
        "outcome",
        "--static",
        folder / "s.csv",
        "--model",
        "gp",
        "--hidden",
        4,
        "--epochs",
        1,
        "--out",
        folder / "m",
    )
    assert result.exit_code == 0, result.output
    return folder / "m"


def prepare(folder, files, monkeypatch):
    monkeypatch.chdir(folder)
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        if isinstance(content, pd.DataFrame):
            content.to_csv(file, index=False)
        else:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_input_gets_its_sentence(case, tmp_path, monkeypatch):
    code, arguments, files, sentence = WRONG[case]
    prepare(tmp_path, files, monkeypatch)
    before = sorted(path.name for path in tmp_path.iterdir())
    result = command(*arguments, width=400)
    assert sentence in result.stderr
    assert (result.exit_code, result.stdout) == (code, "")
    left = [path for path in tmp_path.iterdir() if path.name not in before and any(path.iterdir())]
    assert left == []  # nothing half-done


@pytest.mark.parametrize("case", NO_MODEL)
def test_a_model_that_cannot_answer_says_why(case, tmp_path, monkeypatch, model):
    code, arguments, files, sentence = NO_MODEL[case]
    prepare(tmp_path, files, monkeypatch)
    result = command(*(model if argument == "MODEL" else argument for argument in arguments), width=400)
    assert sentence in result.stderr
    assert (result.exit_code, result.stdout) == (code, "")


def test_a_model_that_was_not_fitted_on_a_table_cannot_read_one(tmp_path, model):
    replace(Predictor.load(model), record={}).save(tmp_path / "m")
    waves().to_csv(tmp_path / "t.csv", index=False)
    result = command("predict", tmp_path / "m", tmp_path / "t.csv", width=400)
    assert result.exit_code == FAILED
    assert "this model was not trained by `smoothcde fit`, so it does not know how to read a table" in result.stderr


def test_there_are_more_than_enough_of_them():
    assert len(WRONG) + len(NO_MODEL) >= 25


def test_scripts_get_the_sentence_as_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = command(*FIT, "--json")
    assert result.exit_code == FAILED
    assert json.loads(result.stdout) == {"error": "there is no file 't.csv'; check its name and folder"}


def test_columns_that_say_nothing_are_named_and_left_out(tmp_path, monkeypatch):
    frame = changed(note="fine", always=3, never=np.nan).drop(columns="dose")
    prepare(tmp_path, {"t.csv": frame}, monkeypatch)
    result = command(*FIT, "--model", "gru", "--hidden", 4, "--json")
    assert result.exit_code == 0, result.output
    for words in (
        "'note' ('fine') holds no numbers: left out",
        "'always' is always 3: left out",
        "'never' is empty: left out",
    ):
        assert f"Note: column {words}" in result.stderr
    assert json.loads(result.stdout)["channels"] == ["pulse", "sat"]


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """A model of a tidy table of dates."""
    folder = tmp_path_factory.mktemp("dated")
    frame = tidy(waves())
    frame["time"] = pd.Timestamp("2024-05-01") + pd.to_timedelta(frame["time"], unit="h")
    frame.to_csv(folder / "t.csv", index=False)
    per_series(waves(), "outcome").to_csv(folder / "labels.csv", index=False)
    asked = ("fit", folder / "t.csv", "--labels", folder / "labels.csv", *TIDY, "--epochs", 1, "--out", folder / "m")
    told = command(*asked, "--model", "gru", "--hidden", 4)
    assert told.exit_code == 0, told.output
    assert "2 channels (pulse, sat)" in told.stderr
    return folder


def test_times_of_another_kind_than_in_training_are_refused(dated, tmp_path):
    tidy(waves()).to_csv(tmp_path / "hours.csv", index=False)
    told = command("predict", dated / "m", tmp_path / "hours.csv")
    assert told.exit_code == FAILED
    assert "and the model was trained on dates; write dates there, too" in told.stderr


def test_rows_of_unknown_variables_are_told(dated, tmp_path):
    frame = pd.read_csv(dated / "t.csv", dtype={"id": str})
    frame.loc[:2, "variable"] = "Pulse"
    frame.to_csv(tmp_path / "t.csv", index=False)
    told = command("predict", dated / "m", tmp_path / "t.csv")
    assert told.exit_code == 0, told.output
    assert "3 rows of variables that training did not have are left out: 'Pulse'" in told.stderr


def test_several_values_at_one_time_may_be_merged_in_later_tables_too(dated, tmp_path):
    frame = pd.read_csv(dated / "t.csv", dtype={"id": str})
    pd.concat([frame, frame.iloc[:1]]).to_csv(tmp_path / "t.csv", index=False)
    refused = command("predict", dated / "m", tmp_path / "t.csv")
    assert refused.exit_code == FAILED
    assert "add --duplicates mean, last or first" in refused.stderr
    merged, plain = (
        command("predict", dated / "m", file, *rule)
        for file, rule in ((tmp_path / "t.csv", ("--duplicates", "mean")), (dated / "t.csv", ()))
    )
    assert merged.exit_code == 0, merged.output
    assert merged.stdout == plain.stdout
    assert command("predict", dated / "m", tmp_path / "t.csv", "--duplicates", "all").exit_code == USAGE


def test_ids_may_be_called_as_answers_are(tmp_path, monkeypatch):
    prepare(tmp_path, {"t.csv": waves().rename(columns={"id": "prediction"})}, monkeypatch)
    assert command(*FIT, "--id", "prediction", "--model", "gru", "--hidden", 4).exit_code == 0
    told = command("predict", "out", "t.csv")
    assert told.stdout.startswith("id,prediction,probability_loud"), told.output


def test_a_model_may_be_written_to_the_folder_one_is_in(tmp_path, monkeypatch):
    prepare(tmp_path, {"t.csv": waves()}, monkeypatch)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    told = command(
        "fit", "../t.csv", "--target", "outcome", "--epochs", 1, "--model", "gru", "--hidden", 4, "--out", "."
    )
    assert told.exit_code == 0, told.output
    assert (tmp_path / "here" / "manifest.json").exists()
    assert (tmp_path / "here.metrics.csv").exists()


def test_brackets_in_names_are_printed_as_they_are(tmp_path, monkeypatch):
    prepare(tmp_path, {"t.csv": waves()}, monkeypatch)
    result = command("fit", "t.csv", "--target", "[bold]", "--out", "out")
    assert "has no column '[bold]'" in result.stderr


def test_what_is_to_be_predicted_is_no_static_feature(tmp_path, monkeypatch):
    """One file may hold all that is known of each series, the answer included."""
    known = per_series(waves(), "dose", "outcome")
    prepare(tmp_path, {"t.csv": waves().drop(columns=["dose", "outcome"]), "s.csv": known}, monkeypatch)
    given = ("--labels", "s.csv", "--static", "s.csv", "--target", "outcome", "--model", "gru", "--hidden", 4)
    result = command("fit", "t.csv", *given, "--epochs", 1, "--out", "m")
    assert result.exit_code == 0, result.output
    assert "Note: static column 'outcome' is what is to be predicted: left out" in result.stderr
    known.drop(columns="outcome").to_csv("s.csv", index=False)
    assert command("predict", "m", "t.csv", "--static", "s.csv").exit_code == 0


def test_times_in_what_seems_another_unit_are_noted(tmp_path, monkeypatch, model):
    frame = changed(time=3600 * waves()["time"])
    prepare(tmp_path, {"t.csv": frame, "s.csv": per_series(waves(), "dose")}, monkeypatch)
    result = command("predict", model, "t.csv", "--static", "s.csv", width=400)
    assert "and the longest in training lasted" in result.stderr
    assert "; are times in the same unit?" in result.stderr


def test_a_trained_model_has_no_training_folder_to_go_on_in(model):
    assert CDEClassifier.load(model).directory is None
