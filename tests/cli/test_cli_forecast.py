"""`smoothcde forecast`: from a table to what comes next."""

import json

import numpy as np
import pandas as pd
import pytest
from cli_tables import command, waves

from smoothcde import CDEForecaster, SeriesSet

SMALL = ("--context", 8, "--horizon", 4, "--epochs", 2, "--hidden", 6)


def load(length=120, seed=0):
    """An hourly recording of two channels with gaps, by the clock."""
    generator = np.random.default_rng(seed)
    hours = np.arange(length)
    frame = pd.DataFrame({"time": pd.Timestamp("2024-05-01") + pd.to_timedelta(hours, unit="h")})
    frame["load"] = np.round(10 + 3 * np.sin(2 * np.pi * hours / 24) + 0.2 * generator.normal(size=length), 3)
    frame["heat"] = np.round(np.cos(2 * np.pi * hours / 24), 3)
    frame.loc[generator.random(length) < 0.2, "heat"] = np.nan
    return frame[generator.random(length) >= 0.1].reset_index(drop=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forecast")
    load().to_csv(folder / "load.csv", index=False)
    return folder


def test_a_table_of_dates_is_forecast_judged_drawn_and_remembered(place):
    arguments = ("--out", place / "next.csv", "--model-dir", place / "model", "--plot", place / "next.png")
    told = command(
        "forecast",
        place / "load.csv",
        *SMALL,
        "--quantiles",
        "0.1,0.5,0.9",
        "--period",
        86400,
        "--backtest",
        *arguments,
    )
    assert told.exit_code == 0, told.output
    for words in ("Backtest over", "linear-forecast", "last-value", "coverage (meant: 80%)", "4 rows written to"):
        assert words in told.stdout
    table = pd.read_csv(place / "next.csv")
    names = [f"{name}{end}" for name in ("load", "heat") for end in ("", "_q0.1", "_q0.5", "_q0.9")]
    assert list(table.columns) == ["time", *names]
    last = pd.to_datetime(load()["time"]).max()
    assert pd.to_datetime(table["time"]).tolist() == [last + pd.Timedelta(hours=k) for k in range(1, 5)]
    assert (place / "next.png").read_bytes().startswith(b"\x89PNG")
    # The saved forecaster does it again, to the digit, and so does the library.
    again = command("forecast", place / "load.csv", "--model-dir", place / "model", "--out", place / "again.parquet")
    assert again.exit_code == 0, again.output
    typed = pd.read_parquet(place / "again.parquet")
    np.testing.assert_allclose(typed["load"], table["load"], rtol=1e-6)
    assert typed["time"].tolist() == pd.to_datetime(table["time"]).tolist()  # dates where columns have types
    frame = load().assign(id="series")
    series = SeriesSet.from_frame(frame, id="id", time="time")
    values = CDEForecaster.load(place / "model").predict(series).values
    np.testing.assert_allclose(table[["load", "heat"]].to_numpy(), values[0], rtol=1e-6)


def test_tidy_tables_of_several_series_with_numbers_for_times(place):
    tables = [load(60, seed=k).assign(id=f"s{k}", time=lambda f: f.index * 0.5) for k in range(2)]
    tidy = pd.concat(tables).melt(["id", "time"], ["load", "heat"], "variable", "value").dropna()
    tidy.to_csv(place / "tidy.csv", index=False)
    arguments = ("--variable", "variable", "--value", "value", "--model", "gru", "--json")
    told = command("forecast", place / "tidy.csv", *SMALL, *arguments)
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    assert document["rows"] == 8
    assert {row["id"] for row in document["forecasts"]} == {"s0", "s1"}
    assert document["columns"] == ["id", "time", "heat", "load"]
    refused = command("forecast", place / "tidy.csv", *SMALL)
    assert refused.exit_code == 1
    assert "looks tidy; add --variable variable --value value" in refused.stderr


def test_a_moment_to_forecast_from(place):
    moment = ("--end", "2024-05-03T12:00")
    told = command("forecast", place / "load.csv", *SMALL, "--model", "last-value", *moment, "--json")
    rows = json.loads(told.stdout)["forecasts"]
    assert [row["time"] for row in rows] == [f"2024-05-03T{h}:00:00" for h in (13, 14, 15, 16)]
    known = load().set_index("time")["load"][: pd.Timestamp("2024-05-03T12:00")]
    assert rows[0]["load"] == pytest.approx(known.iloc[-1], rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--model", "arima"), 2, "there is no model 'arima'"),
        (("--quantiles", "low,high"), 1, "--quantiles is 'low,high'; give numbers with commas between"),
        (("--quantiles", "0.1,0.9"), 1, "as many below 0.5 as above and 0.5 itself"),
        (("--context", 200), 1, "no series spans 200 + 4 steps of 3600"),
        (("--end", "2030-01-01"), 1, "no observation of series 'series' in the 8 steps"),
        (("--id", "plant"), 1, "no column 'plant'; the table has"),
        (("--plot", "next.bmp"), 1, "name a .png, .pdf or .svg file"),
    ],
)
def test_wrong_use_is_told_in_a_sentence(place, arguments, code, words):
    told = command("forecast", place / "load.csv", *SMALL, "--model", "last-value", *arguments)
    assert told.exit_code == code
    assert words in " ".join(told.stderr.split())


def test_a_saved_forecaster_is_not_bent(place):
    command("forecast", place / "load.csv", *SMALL, "--model", "last-value", "--model-dir", place / "fixed")
    told = command("forecast", place / "load.csv", "--horizon", 9, "--model-dir", place / "fixed")
    assert told.exit_code == 1
    assert "--horizon is 9, and the forecaster in" in told.stderr
    (place / "other").mkdir()
    (place / "other" / "notes.txt").write_text("mine")
    told = command("forecast", place / "load.csv", "--model-dir", place / "other")
    assert "is there already and holds no model; choose another --model-dir" in told.stderr


def test_times_come_back_with_their_fractions_and_their_zone(tmp_path):
    values = np.sin(np.arange(60) / 4)
    quick = ("--context", 6, "--horizon", 4, "--model", "last-value", "--json")
    stamps = pd.date_range("2024-03-30", periods=60, freq="250ms")
    pd.DataFrame({"time": [t.isoformat() for t in stamps], "load": values}).to_csv(tmp_path / "t.csv", index=False)
    told = json.loads(command("forecast", tmp_path / "t.csv", *quick).stdout)
    assert [row["time"] for row in told["forecasts"]][:2] == [
        "2024-03-30T00:00:15.000000",
        "2024-03-30T00:00:15.250000",
    ]
    zoned = pd.date_range("2024-03-30", periods=60, freq="1h", tz="UTC").tz_convert("Europe/Berlin")
    pd.DataFrame({"time": [t.isoformat() for t in zoned], "load": values}).to_csv(tmp_path / "z.csv", index=False)
    told = json.loads(command("forecast", tmp_path / "z.csv", *quick).stdout)
    assert pd.Timestamp(told["forecasts"][0]["time"]) == zoned[-1] + pd.Timedelta(hours=1)
    spans = pd.DataFrame({"time": pd.to_timedelta(np.arange(60), unit="s"), "load": values})
    spans.to_parquet(tmp_path / "s.parquet")
    told = json.loads(command("forecast", tmp_path / "s.parquet", *quick).stdout)
    assert told["forecasts"][0]["time"] == 60.0


def test_what_a_saved_forecaster_does_not_do_is_refused(place, tmp_path):
    first = command("forecast", place / "load.csv", *SMALL, "--model", "last-value", "--model-dir", tmp_path / "m")
    assert first.exit_code == 0, first.output
    for asked in (("--quantiles", "0.1,0.5,0.9"), ("--step", 7), ("--period", 24), ("--model", "mvc-gp")):
        told = command("forecast", place / "load.csv", "--model-dir", tmp_path / "m", *asked)
        assert told.exit_code == 1
        assert f"{asked[0]} is " in told.stderr
        assert "leave the option out, add --overwrite to train anew, or choose another --model-dir" in told.stderr
    for asked in (("--epochs", 50), ("--hidden", 32), ("--learning-rate", 0.5), ("--seed", 9)):
        told = command("forecast", place / "load.csv", "--model-dir", tmp_path / "m", *asked)
        assert told.exit_code == 1
        assert f"{asked[0]} is {asked[1]}, and the forecaster in" in told.stderr
    same = ("--model", "last-value", "--model-dir", tmp_path / "m", "--seed", 0)
    assert command("forecast", place / "load.csv", *SMALL, *same).exit_code == 0  # every night
    anew = command(
        "forecast",
        place / "load.csv",
        *SMALL,
        "--model",
        "linear-forecast",
        "--overwrite",
        "--model-dir",
        tmp_path / "m",
    )
    assert anew.exit_code == 0, anew.output
    again = command("forecast", place / "load.csv", "--model-dir", tmp_path / "m")
    assert "linear-forecast, 4 steps forecast" in again.stderr
    load().rename(columns={"time": "when"}).to_csv(tmp_path / "when.csv", index=False)
    told = command("forecast", tmp_path / "when.csv", "--model-dir", tmp_path / "m", "--time", "when", "--json")
    assert told.exit_code == 0, told.output


def test_times_of_another_kind_and_a_file_for_a_folder_are_refused(place, tmp_path):
    first = command("forecast", place / "load.csv", *SMALL, "--model", "last-value", "--model-dir", tmp_path / "m")
    assert first.exit_code == 0, first.output
    load().assign(time=np.arange(len(load())) / 10).to_csv(tmp_path / "numbers.csv", index=False)
    told = command("forecast", tmp_path / "numbers.csv", "--model-dir", tmp_path / "m")
    assert told.exit_code == 1
    assert "and the model was trained on dates; write dates" in told.stderr
    seconds = load().assign(time=(load()["time"] - pd.Timestamp(0)) / pd.Timedelta("1s"))
    seconds.to_csv(tmp_path / "seconds.csv", index=False)
    assert command("forecast", tmp_path / "seconds.csv", "--model-dir", tmp_path / "m").exit_code == 0
    first = command(
        "forecast", tmp_path / "seconds.csv", *SMALL, "--model", "last-value", "--model-dir", tmp_path / "s"
    )
    assert first.exit_code == 0, first.output
    assert command("forecast", place / "load.csv", "--model-dir", tmp_path / "s").exit_code == 0
    first = command(
        "forecast", tmp_path / "numbers.csv", *SMALL, "--model", "last-value", "--model-dir", tmp_path / "n"
    )
    assert first.exit_code == 0, first.output
    told = command("forecast", place / "load.csv", "--model-dir", tmp_path / "n")
    assert "column 'time' holds dates, and the model was trained on numbers" in told.stderr
    load().to_parquet(tmp_path / "dates.parquet")
    told = command("forecast", tmp_path / "dates.parquet", "--model-dir", tmp_path / "n")
    assert "column 'time' holds dates, and the model was trained on numbers" in told.stderr
    load().assign(time=["soon", *range(1, len(load()))]).to_csv(tmp_path / "stray.csv", index=False)
    told = command("forecast", tmp_path / "stray.csv", "--model-dir", tmp_path / "n")
    assert "column 'time' holds 'soon'; write stamps as numbers" in told.stderr
    told = command("forecast", place / "load.csv", *SMALL, "--model-dir", place / "load.csv")
    assert "is a file; give a folder as --model-dir" in told.stderr


def test_channels_that_are_never_observed_are_told(tmp_path):
    load().assign(never=np.nan).to_csv(tmp_path / "t.csv", index=False)
    told = command("forecast", tmp_path / "t.csv", *SMALL, "--model", "last-value", "--channels", "load,never")
    assert told.exit_code == 0, told.output
    assert "never observed in the table: 'never'; what is forecast there is a guess" in told.stderr


def test_series_that_are_too_short_for_a_backtest_are_told_why(tmp_path):
    load().head(14).to_csv(tmp_path / "t.csv", index=False)
    told = command("forecast", tmp_path / "t.csv", *SMALL, "--model", "last-value", "--backtest")
    assert told.exit_code == 1
    assert "(--backtest judges the last fifth of each series, apart from the rest)" in told.stderr
    told = command("forecast", tmp_path / "t.csv", *SMALL, "--quantiles", "0.5,2", "--backtest")
    assert "--backtest" not in told.stderr


def test_only_a_forecaster_is_replaced(place, tmp_path):
    waves().to_csv(tmp_path / "t.csv", index=False)
    asked = ("--target", "outcome", "--model", "gru", "--hidden", 4, "--epochs", 1, "--out", tmp_path / "m")
    assert command("fit", tmp_path / "t.csv", *asked).exit_code == 0
    small = (*SMALL, "--model", "last-value", "--overwrite")
    told = command("forecast", place / "load.csv", *small, "--model-dir", tmp_path / "m")
    assert told.exit_code == 1
    assert "no forecaster" in told.stderr
    assert command("predict", tmp_path / "m", tmp_path / "t.csv").exit_code == 0
    assert command("forecast", place / "load.csv", *small).exit_code == 2


def test_a_picture_of_an_unknown_kind_is_refused_before_the_training(place, tmp_path):
    told = command("forecast", place / "load.csv", *SMALL, "--plot", tmp_path / "next.jpg")
    assert told.exit_code == 1
    assert "next.jpg'; name a .png, .pdf or .svg file" in told.stderr
    assert "steps seen" not in told.stderr


def test_scores_do_not_disturb_forecasts_on_standard_output(place):
    told = command("forecast", place / "load.csv", *SMALL, "--model", "last-value", "--backtest")
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("time,")
    assert "Backtest over" in told.stderr


def test_several_recordings_without_a_name_are_suspected(tmp_path):
    hours = np.tile(np.arange(60.0), 2)
    table = pd.DataFrame({"station": ["a"] * 60 + ["b"] * 60, "time": hours, "load": np.sin(hours)})
    table.to_csv(tmp_path / "t.csv", index=False)
    result = command("forecast", tmp_path / "t.csv", "--epochs", 1, width=400)
    assert result.exit_code == 1
    assert (
        "Does the table hold several recordings? Then name the column that tells them apart with --id" in result.stderr
    )
    result = command("forecast", tmp_path / "t.csv", "--time", "hour", width=400)
    assert "no column 'hour'; the table has 'station', 'time', 'load'\n" in result.stderr


def test_a_forecaster_is_told_from_other_models(place, tmp_path):
    told = command("forecast", place / "load.csv", *SMALL, "--model-dir", tmp_path / "forecaster")
    assert told.exit_code == 0, told.output
    result = command("predict", tmp_path / "forecaster", place / "load.csv", width=400)
    assert result.exit_code == 1
    assert "holds a forecaster; use it with `smoothcde forecast --model-dir`" in result.stderr
