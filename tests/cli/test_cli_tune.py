"""`smoothcde tune`: from a table to the model of the best settings."""

import json

import pytest
from cli_tables import command, waves

from smoothcde.estimators import CDEClassifier


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    waves().to_csv(folder / "wide.csv", index=False)
    return folder


def tuned(place, out, *more):
    table = ("tune", place / "wide.csv", "--target", "outcome", "--channels", "pulse,sat", "--model", "gp")
    return command(*table, "--epochs", 2, "--out", place / out, *more)


def test_the_best_settings_are_trained_and_saved(place):
    result = tuned(place, "best", "--trials", 2)
    assert result.exit_code == 0, result.output
    assert "trial 0: loss " in result.stderr
    assert "those that fit would choose" in result.stderr
    assert "training with the settings of trial" in result.stderr
    assert f"Model saved in '{place / 'best'}'" in result.stdout
    assert sorted(path.name for path in place.iterdir() if path.name.startswith("best")) == [
        "best",
        "best.metrics.csv",
        "best.trials.db",
    ]
    assert command("evaluate", place / "best", place / "wide.csv").exit_code == 0


def test_a_script_is_told_all_trials_and_a_fit_repeats_the_best(place):
    result = tuned(place, "for-script", "--trials", 3, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert [trial["trial"] for trial in sorted(document["trials"], key=lambda t: t["trial"])] == [0, 1, 2]
    best = document["trials"][0]
    assert document["best"]["validation_loss"] == pytest.approx(best["loss"], abs=1e-6)
    options = [
        word
        for name, value in document["settings"].items()
        for word in (f"--{name.replace('_', '-')}", ",".join(map(str, value)) if isinstance(value, list) else value)
    ]
    table = ("fit", place / "wide.csv", "--target", "outcome", "--channels", "pulse,sat", "--model", "gp")
    again = command(*table, "--epochs", 2, "--out", place / "again", *options)
    assert again.exit_code == 0, again.output
    models = [CDEClassifier.load(place / name) for name in ("for-script", "again")]
    states = [model.predictor_.model.state_dict() for model in models]
    assert all((states[0][name] == states[1][name]).all() for name in states[0])


def test_a_search_is_taken_up_again(place):
    assert tuned(place, "twice", "--trials", 1).exit_code == 0
    again = tuned(place, "twice", "--trials", 2, "--overwrite")
    assert "trial 0" not in again.stderr.split("┏")[0]
    assert "trial 1" in again.stderr
    other = tuned(place, "twice", "--trials", 2, "--overwrite", "--batch-size", 5)
    assert other.exit_code == 1
    assert "began otherwise: batch_size differ; name another --storage" in other.stderr.replace("\n", " ")


def test_what_is_wrong_is_told_before_any_trial(place):
    assert tuned(place, "x", "--trials", 0).exit_code == 2
    assert "say what to predict" in command("tune", place / "wide.csv", "--out", place / "x").stderr
    (place / "full").mkdir()
    (place / "full" / "thesis.txt").write_text("mine")
    result = tuned(place, "full", "--overwrite")
    assert result.exit_code == 2
    assert "is there already and is no model" in result.stderr


def test_settings_that_nothing_can_judge_are_not_searched(place):
    few = waves().query("id < '002'")
    few.to_csv(place / "few.csv", index=False)
    result = command("tune", place / "few.csv", "--target", "outcome", "--epochs", 1, "--out", place / "few")
    assert result.exit_code == 1
    assert "there are no validation series to judge settings by; give --validation, or more series" in result.stderr


def test_a_note_is_given_once_however_many_trials_bring_it_up(place):
    frame = waves().query("id < '006'")
    frame.to_csv(place / "numbers.csv", index=False)
    table = ("tune", place / "numbers.csv", "--target", "dose", "--task", "regression", "--channels", "pulse")
    result = command(*table, "--model", "gp", "--epochs", 2, "--trials", 2, "--out", place / "numbers")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("R^2 score is not well-defined") == 1
