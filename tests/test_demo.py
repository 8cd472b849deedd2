"""The demonstration and the command line."""

import io

import pytest
from matplotlib.image import imread
from rich.console import Console
from typer.testing import CliRunner

from smoothcde.cli import app
from smoothcde.data import load_uea
from smoothcde.demo import run_demo

COLUMNS = ("model", "test accuracy", "joint NFE", "NFE per row", "training time", "parameters")


@pytest.fixture(scope="module")
def one_epoch(tmp_path_factory):
    """Its folder, its entries and what it printed."""
    out, printed = tmp_path_factory.mktemp("demo") / "pictures", io.StringIO()
    entries = run_demo(out, epochs=1, console=Console(file=printed, width=120))
    return out, entries, printed.getvalue()


def test_the_demo_draws_a_picture(one_epoch):
    out, _, printed = one_epoch
    height, width, _ = imread(out / "demo.png").shape
    assert min(height, width) > 500
    assert "demo.png" in printed


def test_the_demo_prints_a_table_of_both_models(one_epoch):
    _, entries, printed = one_epoch
    for words in (*COLUMNS, "mvc-gp", "natural cubic", "270 series to learn from, 370 to be judged by"):
        assert words in printed
    for entry in entries:
        assert f"{entry.measured.accuracy:.1%}" in printed
        assert f"{entry.parameters:,}" in printed


def test_the_demo_compares_models_of_the_same_size_and_tolerance(one_epoch):
    _, (smooth, spline), _ = one_epoch
    assert (smooth.name, spline.name) == ("mvc-gp", "natural cubic")
    assert spline.parameters == pytest.approx(smooth.parameters, rel=0.01)
    assert smooth.model.options == spline.model.options


def test_smoothing_takes_fewer_evaluations_than_the_spline(one_epoch):
    _, (smooth, spline), _ = one_epoch
    assert smooth.measured.row_nfe < spline.measured.row_nfe
    assert smooth.measured.joint_nfe < spline.measured.joint_nfe


def command(*arguments):
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"})


def test_the_demo_command_draws_and_prints(tmp_path, monkeypatch):
    def every_tenth(name, split):
        series, labels = load_uea(name, split)
        return series[::10], labels[::10]

    monkeypatch.setattr("smoothcde.demo.load_uea", every_tenth)
    result = command("demo", "--epochs", "1", "--out", str(tmp_path), "--seed", "1")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "demo.png").exists()
    assert "test accuracy" in result.output


def test_the_demo_command_needs_an_epoch():
    result = command("demo", "--epochs", "0")
    assert result.exit_code == 2
    assert "--epochs" in result.output


def test_help_names_every_command():
    for arguments in (["--help"], []):
        output = command(*arguments).output
        assert "demo" in output
        for name in ("models", "compare", "footprint"):
            assert name in output
