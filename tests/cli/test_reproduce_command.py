"""`smoothcde reproduce` and `smoothcde report` from the command line."""

import pytest
from typer.testing import CliRunner

from smoothcde.cli import app

RUN = CliRunner()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_all_experiments_are_listed_with_their_cost():
    done = RUN.invoke(app, ["reproduce", "--list"], terminal_width=200)
    assert done.exit_code == 0
    for name in ("main", "noise", "heads", "orders", "hours left"):
        assert name in done.output


def test_without_a_name_the_list_is_shown():
    assert "main" in RUN.invoke(app, ["reproduce"]).output


def test_an_experiment_that_does_not_exist_is_told():
    done = RUN.invoke(app, ["reproduce", "mian"])
    assert done.exit_code == 2
    assert "there is no experiment 'mian'" in done.output


def test_no_budget_runs_nothing_and_says_so():
    done = RUN.invoke(app, ["reproduce", "main", "--quick", "--hours", "0"])
    assert done.exit_code == 0, done.output
    assert "0 trials to run" in done.output
    assert "4 do not fit into the budget" in done.output


def test_a_model_outside_the_experiment_is_refused():
    done = RUN.invoke(app, ["reproduce", "main", "--quick", "--model", "gru"])
    assert done.exit_code == 2
    assert "there is no model in it 'gru'" in done.output


def test_an_experiment_without_a_quick_version_says_so():
    done = RUN.invoke(app, ["reproduce", "orders", "--quick"])
    assert done.exit_code == 1
    assert "orders has no quick version" in done.output


def test_a_report_needs_results():
    done = RUN.invoke(app, ["report"])
    assert done.exit_code == 1
    assert "there is no folder results of results; run `smoothcde reproduce main --quick` first" in done.output
