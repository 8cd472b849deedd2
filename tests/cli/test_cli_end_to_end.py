"""From a table to a model, predictions, figures of merit and a page, by commands alone."""

import json

import numpy as np
import pandas as pd
import pytest
from cli_tables import command, per_series, tidy, waves

from smoothcde.estimators import CDEClassifier, Predictor

QUICK = ("--epochs", 2, "--hidden", 8, "--model", "gp")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with tables, and a model fitted on the wide one."""
    folder = tmp_path_factory.mktemp("cli")
    frame = waves()
    frame.to_csv(folder / "wide.csv", index=False)
    frame.drop(columns=["outcome", "dose"]).to_parquet(folder / "wide.parquet", index=False)
    result = command(
        "fit", folder / "wide.csv", "--target", "outcome", "--channels", "pulse,sat", *QUICK, "--out", folder / "m"
    )
    assert result.exit_code == 0, result.output
    return folder


def test_fit_says_where_the_model_is_and_how_good(place):
    again = command(
        "fit", place / "wide.csv", "--target", "outcome", "--channels", "pulse,sat", *QUICK, "--out", place / "again"
    )
    assert again.exit_code == 0, again.output
    assert "outcome looks like classification; say otherwise with --task" in again.stderr
    assert "24 series, 2 channels (pulse, sat), 4 to 7 times" in again.stderr
    assert "Best of 2 epochs" in again.stdout
    assert f"Model saved in '{place / 'again'}'" in again.stdout
    assert sorted(path.name for path in place.iterdir() if path.name.startswith("again")) == [
        "again",
        "again.metrics.csv",
    ]
    assert pd.read_csv(place / "again.metrics.csv")["epoch"].tolist() == [1, 2]


def test_the_same_seed_gives_the_same_model(place):
    for seed, same in ((0, True), (1, False)):
        out = place / f"seed{seed}"
        command(
            "fit",
            place / "wide.csv",
            "--target",
            "outcome",
            "--channels",
            "pulse,sat",
            *QUICK,
            "--seed",
            seed,
            "--out",
            out,
        )
        found = (out / "weights.safetensors").read_bytes() == (place / "m" / "weights.safetensors").read_bytes()
        assert found == same


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_predictions_need_only_a_file_and_are_those_of_the_library(place, name):
    result = command("predict", place / "m", place / "wide.parquet", "--out", place / name)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"24 predictions written to '{place / name}'\n"
    table = pd.read_csv(place / name, dtype={"id": str}) if name.endswith("csv") else pd.read_parquet(place / name)
    assert list(table.columns) == ["id", "prediction", "probability_loud", "probability_quiet"]
    assert table["id"].tolist() == [f"{i:03d}" for i in range(24)]
    series = CDEClassifier.load(place / "m")
    from smoothcde.series import SeriesSet

    known = SeriesSet.from_frame(waves(), id="id", time="time", channels=["pulse", "sat"])
    np.testing.assert_allclose(table.iloc[:, 2:].to_numpy(), series.predict_proba(known), rtol=1e-6)


def test_predictions_are_printed_without_a_file(place):
    rows = command("predict", place / "m", place / "wide.csv").stdout.splitlines()
    assert rows[0] == "id,prediction,probability_loud,probability_quiet"
    assert len(rows) == 25
    document = json.loads(command("predict", place / "m", place / "wide.csv", "--json").stdout)
    assert document["series"] == len(document["predictions"]) == 24
    assert list(document["predictions"][0]) == rows[0].split(",")


def test_a_prediction_at_a_moment_sees_nothing_later(place):
    early = waves()
    early[early["time"] <= 5].to_csv(place / "early.csv", index=False)
    windowed = command("predict", place / "m", place / "wide.csv", "--end", 5, "--ids", place / "early.csv")
    cut = command("predict", place / "m", place / "early.csv", "--end", 5)
    assert windowed.exit_code == 0, windowed.output
    assert windowed.stdout == cut.stdout
    assert windowed.stdout != command("predict", place / "m", place / "wide.csv", "--ids", place / "early.csv").stdout


def test_series_without_rows_can_be_predicted(place):
    (place / "ids.csv").write_text("id\n003\nnew\n")
    result = command("predict", place / "m", place / "wide.csv", "--ids", place / "ids.csv")
    assert "1 series have no observation in the table: new" in result.stderr
    assert [line.split(",")[0] for line in result.stdout.splitlines()] == ["id", "003", "new"]


def test_evaluate_prints_metrics_intervals_and_confusion(place):
    result = command("evaluate", place / "m", place / "wide.csv", "--resamples", 50, "--out", place / "report.json")
    assert result.exit_code == 0, result.output
    for words in ("24 series", "accuracy", "AUROC", "AUPRC", "log loss", "95% interval", "true \\ predicted"):
        assert words in result.stdout
    assert "AUROC and AUPRC are of class quiet" in result.stdout
    printed = json.loads(command("evaluate", place / "m", place / "wide.csv", "--resamples", 50, "--json").stdout)
    assert printed == json.loads((place / "report.json").read_text())
    assert np.sum(printed["confusion"]) == printed["series"] == 24
    assert printed["metrics"]["accuracy"]["value"] == np.trace(printed["confusion"]) / 24


def test_evaluate_judges_series_that_only_the_labels_name(place):
    labels = per_series(waves(), "outcome")
    labels.loc[len(labels)] = ["new", "loud"]
    labels[labels["id"] != "002"].to_csv(place / "labels.csv", index=False)
    options = ("--labels", place / "labels.csv", "--resamples", 0, "--json")
    result = command("evaluate", place / "m", place / "wide.parquet", *options)
    assert "1 of 24 series have no target and are left out: 002" in result.stderr
    assert "have no row in the table: new; judged as series without observations" in result.stderr
    assert json.loads(result.stdout)["series"] == 24


def test_explain_writes_a_page_of_the_series_asked_for(place):
    page = place / "page.html"
    result = command("explain", place / "m", place / "wide.csv", "--series", "003", "--series", "001", "--out", page)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"Series 003, 001 explained in '{page}'\n"
    text = page.read_text()
    assert text.lstrip().lower().startswith("<!doctype html")
    assert "003" in text
    first = json.loads(command("explain", place / "m", place / "wide.csv", "--out", page, "--json").stdout)
    assert first == {"page": str(page), "series": ["000"]}


def test_a_tidy_table_with_labels_and_static_columns(place, tmp_path):
    frame = waves()
    tidy(frame).to_csv(tmp_path / "tidy.csv", index=False)
    labels = per_series(frame, "outcome")
    labels.loc[len(labels)] = ["999", "loud"]
    labels.to_csv(tmp_path / "labels.csv", index=False)
    static = per_series(frame, "dose").assign(unit=["north", "south"] * 12)
    static.loc[3, "dose"] = np.nan
    static.to_csv(tmp_path / "static.csv", index=False)
    files = ("--labels", tmp_path / "labels.csv", "--static", tmp_path / "static.csv")
    columns = ("--variable", "variable", "--value", "value")
    result = command(
        "fit", tmp_path / "tidy.csv", *columns, *files, *QUICK, "--out", tmp_path / "m", "--json", "--start", 0
    )
    assert result.exit_code == 0, result.output
    assert "have no row in the table: 999; left out of training" in result.stderr
    document = json.loads(result.stdout)
    assert document["static"] == ["dose", "dose missing", "unit=north", "unit=south"]
    assert (document["channels"], document["classes"], document["epochs"]) == (["pulse", "sat"], ["loud", "quiet"], 2)
    result = command("predict", tmp_path / "m", tmp_path / "tidy.csv", "--static", tmp_path / "static.csv", "--json")
    assert json.loads(result.stdout)["series"] == 24
    assert Predictor.load(tmp_path / "m").record["table"]["layout"]["start"] == 0.0


def test_numbers_are_predicted_judged_and_several_at_once(place, tmp_path):
    options = ("--target", "dose", "--target", "level", "--channels", "pulse,sat", *QUICK, "--out", tmp_path / "m")
    frame = waves()
    frame.assign(level=frame["dose"] * 2 + 1).to_csv(tmp_path / "t.csv", index=False)
    result = command("fit", tmp_path / "t.csv", *options)
    assert result.exit_code == 0, result.output
    assert "looks like regression" in result.stderr
    rows = command("predict", tmp_path / "m", tmp_path / "t.csv").stdout.splitlines()
    assert rows[0] == "id,prediction_dose,prediction_level"
    report = json.loads(command("evaluate", tmp_path / "m", tmp_path / "t.csv", "--json").stdout)
    assert set(report["metrics"]) == {"dose", "level"}
    predicted = np.array([float(row.split(",")[1]) for row in rows[1:]])
    error = predicted - per_series(frame, "dose")["dose"].to_numpy()
    assert report["metrics"]["dose"]["MAE"]["value"] == pytest.approx(np.abs(error).mean())
    assert "R2" in command("evaluate", tmp_path / "m", tmp_path / "t.csv", "--resamples", 0).stdout


def test_dates_are_times(place, tmp_path):
    frame = waves()
    frame["time"] = (pd.Timestamp("2024-05-17T08:30") + pd.to_timedelta(frame["time"], unit="h")).dt.strftime(
        "%Y-%m-%dT%H:%M:%S"
    )
    frame.to_csv(tmp_path / "dates.csv", index=False)
    result = command("fit", tmp_path / "dates.csv", "--target", "outcome", *QUICK, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    early = command("predict", tmp_path / "m", tmp_path / "dates.csv", "--end", "2024-05-17T12:00")
    assert early.exit_code == 0, early.output
    assert early.stdout != command("predict", tmp_path / "m", tmp_path / "dates.csv").stdout


def test_too_few_series_to_validate_on_are_told(tmp_path):
    waves(count=2).to_csv(tmp_path / "two.csv", index=False)
    result = command("fit", tmp_path / "two.csv", "--target", "outcome", *QUICK, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    assert "too few series to hold any out, so nothing tells how good the model is" in result.output


def test_a_validation_table_takes_the_place_of_the_split(place, tmp_path):
    waves(8, seed=1).to_csv(tmp_path / "v.csv", index=False)
    options = ("--target", "outcome", *QUICK, "--validation", tmp_path / "v.csv", "--out", tmp_path / "m", "--json")
    document = json.loads(command("fit", place / "wide.csv", *options).stdout)
    assert (document["training_series"], document["validation_series"]) == (24, 8)


def test_an_interrupted_fit_goes_on(place, tmp_path, monkeypatch):
    options = (
        "fit",
        place / "wide.csv",
        "--target",
        "outcome",
        "--channels",
        "pulse,sat",
        *QUICK,
        "--out",
        tmp_path / "m",
    )

    def power_cut(self, directory):
        raise OSError("no power")

    with monkeypatch.context() as patch:
        patch.setattr("smoothcde.estimators.CDEClassifier.save", power_cut)
        result = command(*options)
    assert (result.exit_code, "Error: no power" in result.stderr) == (1, True)
    assert not (tmp_path / "m").exists()
    result = command(*options)
    assert f"going on with the training in '{tmp_path / 'm.training'}'" in result.stderr
    weights = [(folder / "m" / "weights.safetensors").read_bytes() for folder in (tmp_path, place)]
    assert weights[0] == weights[1]


def test_overwrite_replaces_a_model(place, tmp_path):
    options = ("fit", place / "wide.csv", "--target", "outcome", *QUICK, "--out", tmp_path / "m")
    assert command(*options).exit_code == 0
    first = (tmp_path / "m" / "weights.safetensors").read_bytes()
    assert command(*options, "--seed", 1, "--overwrite").exit_code == 0
    assert (tmp_path / "m" / "weights.safetensors").read_bytes() != first


def test_a_neighbour_of_the_model_is_left_alone(tmp_path):
    waves().to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "--target", "outcome", *QUICK, "--out", tmp_path / "m")
    (tmp_path / "m.training").mkdir()
    (tmp_path / "m.training" / "mine.csv").write_text("a")
    result = command(*fit)
    assert result.exit_code == 1
    assert "is where the training would be kept, and holds mine.csv; move it" in result.stderr
    assert (tmp_path / "m.training" / "mine.csv").read_text() == "a"
    (tmp_path / "m.training").rename(tmp_path / "elsewhere")
    (tmp_path / "m.metrics.csv").write_text("mine")
    result = command(*fit)
    assert "m.metrics.csv' is there already; move it, choose another --out, or add --overwrite" in result.stderr
    assert (tmp_path / "m.metrics.csv").read_text() == "mine"


def test_what_is_in_the_way_of_a_model_is_told_before_the_training(tmp_path):
    waves().to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "--target", "outcome", *QUICK, "--out", tmp_path / "m")
    assert command(*fit).exit_code == 0
    (tmp_path / "m" / "notes.txt").write_text("mine")
    result = command(*fit, "--overwrite")
    assert result.exit_code == 1
    assert "holds other files (notes.txt)" in result.stderr
    assert "looks like classification" not in result.stderr


def test_windows_that_show_nothing_are_refused_and_some_are_noted(place, tmp_path):
    dated = waves().assign(time=lambda table: pd.Timestamp("2024-01-01") + pd.to_timedelta(table["time"], unit="h"))
    dated.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "--target", "outcome", *QUICK, "--out", tmp_path / "m")
    result = command(*fit, "--start", 0, "--end", 48)
    assert result.exit_code == 1
    assert "no time of the table lies in the window from 0 to 48; its times go from 2024-01-01T00:" in result.stderr
    first = waves().groupby("id")["time"].min().sort_values()
    some = command("predict", place / "m", place / "wide.csv", "--end", first.iloc[3], "--out", tmp_path / "p.csv")
    assert some.exit_code == 0, some.output
    assert "20 of 24 series have no time inside the window" in some.stderr
    seen = command("fit", place / "wide.csv", "--target", "outcome", *QUICK, "--end", 5, "--out", tmp_path / "five")
    assert "4 to 7 times" not in seen.stderr


def test_classes_mean_the_same_in_every_file(tmp_path):
    kinds = ["1", "2", "x"]
    table = waves().assign(outcome=lambda t: [kinds[int(name) % 3] for name in t["id"]])
    numbers = table[table["outcome"] != "x"]
    table.to_csv(tmp_path / "all.csv", index=False)
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    fit = ("fit", "--target", "outcome", *QUICK)
    held = ("--validation", tmp_path / "numbers.csv")
    assert command(*fit, tmp_path / "all.csv", *held, "--out", tmp_path / "text").exit_code == 0
    assert command("evaluate", tmp_path / "text", tmp_path / "numbers.csv").exit_code == 0
    assert command(*fit, tmp_path / "numbers.csv", "--out", tmp_path / "number").exit_code == 0
    unknown = command("evaluate", tmp_path / "number", tmp_path / "all.csv")
    assert "target 'outcome' holds x, which the model does not know; it was trained on 1, 2" in unknown.stderr
    coded = table.assign(outcome=table["outcome"].replace({"1": "01", "2": "02", "x": "10"}))
    coded.to_csv(tmp_path / "coded.csv", index=False)
    result = command(*fit, tmp_path / "coded.csv", "--json", "--out", tmp_path / "codes")
    assert json.loads(result.stdout)["classes"] == ["01", "02", "10"]


def test_square_brackets_in_classes_are_shown(tmp_path):
    table = waves().replace({"outcome": {"loud": "[low]", "quiet": "[/high]"}})
    table.to_csv(tmp_path / "t.csv", index=False)
    assert command("fit", tmp_path / "t.csv", "--target", "outcome", *QUICK, "--out", tmp_path / "m").exit_code == 0
    result = command("evaluate", tmp_path / "m", tmp_path / "t.csv")
    assert result.exit_code == 0, result.output
    assert "AUROC and AUPRC are of class [low]" in result.stdout
