"""`smoothcde export`: from a table and a model to a file that runs elsewhere."""

import json

import numpy as np
import pytest
import torch
from cli_tables import command, waves

from smoothcde.estimators import Predictor


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    waves().drop(columns="dose").to_csv(folder / "t.csv", index=False)
    result = command(
        "fit", folder / "t.csv", "--target", "outcome", "--model", "gp", "--hidden", 4, "--epochs", 1,
        "--out", folder / "m",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return folder


def test_a_model_becomes_a_program_that_gives_its_answers(fitted):
    table = fitted / "t.csv"
    file = fitted / "m.pt2"
    result = command("export", fitted / "m", "--format", "torch", "--table", table, "--out", file, "--json")
    assert result.exit_code == 0, result.output
    about = json.loads(result.stdout)
    assert about["length"] == waves().groupby("id").size().max()
    assert about["calibration_series"] == 24
    length, first = about["length"], waves().query("id == '000'")
    n = len(first)
    values, mask = torch.zeros(1, length, 2, dtype=torch.float64), torch.zeros(1, length, 2, dtype=torch.bool)
    times = torch.zeros(1, length, dtype=torch.float64)
    observed = first[["pulse", "sat"]].to_numpy()
    values[0, :n], mask[0, :n] = torch.tensor(np.nan_to_num(observed)), torch.tensor(~np.isnan(observed))
    times[0, :n] = torch.tensor(first["time"].to_numpy())
    program = torch.export.load(file).module()
    answers, _, outside = program(
        values=values,
        times=times,
        mask=mask,
        lengths=torch.tensor([n]),
        start=times[:, 0],
        end=times[:, n - 1],
    )
    expected = command("predict", fitted / "m", table, "--json")
    assert expected.exit_code == 0, expected.output
    probability = json.loads(expected.stdout)["predictions"][0]
    assert not outside.any()
    labels = list(Predictor.load(fitted / "m").labels)
    np.testing.assert_allclose(answers[0], [probability[f"probability_{label}"] for label in labels], atol=0.05)


def test_without_series_to_fix_steps_on_there_is_no_file(fitted):
    result = command("export", fitted / "m", "--out", fitted / "none.onnx")
    assert result.exit_code == 1
    assert "the model's steps are not frozen yet; give series to fix them on with --table FILE" in result.stderr
    assert not (fitted / "none.onnx").exists()


def test_an_unknown_format_is_refused(fitted):
    result = command("export", fitted / "m", "--format", "tflite", "--table", fitted / "t.csv", "--out", "m.tflite")
    assert result.exit_code == 2
    assert "onnx" in result.stderr
