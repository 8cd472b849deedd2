"""The page holds every result there is, and needs nothing but itself."""

import re
from html import escape
from pathlib import Path

import pytest
from rich.table import Table

from smoothcde.report import report_page
from smoothcde.report.markdown import filled
from smoothcde.reproduce.blocks import FigureBlock, TableBlock
from smoothcde.reproduce.catalogue import EXPERIMENTS
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.store import Store
from smoothcde.reproduce.trial import Trial

ROOT = Path(__file__).parents[2]
COMMITTED = Store(ROOT / "results")


def fake(trial: Trial) -> dict:
    """A result of the shape its measure gives."""
    if trial.measure == "noise":
        return {
            "levels": [{"level": x, "accuracy": 0.9 - x / 10, "joint_nfe": 100 + x, "row_nfe": 50} for x in (0.0, 0.7)]
        }
    if trial.measure == "forecast":
        return {"mse": 0.4, "mae": 0.3, "nfe": 20.0, "train_seconds": 50.0}
    if trial.measure == "memory":
        return {"parameters": 1000, "hidden": 4, "megabytes": 12.5}
    if trial.measure == "attention":
        return {
            "stamps": [0.0, 1.0],
            "values": [[0.5, 0.1], [0.7, 0.2]],
            "moments": [0.0, 1.0],
            "paths": [[[0.5, 0.1], [0.6, 0.2]]],
            "steps": [[0.0, 0.4, 1.0]],
            "nfe": [14],
            "attention": [[0.25, 0.75]],
        }
    keys = ("joint_nfe", "row_nfe", "train_seconds", "test_seconds", "fit_seconds", "epochs", "parameters")
    numbers = dict.fromkeys(keys, 10.0)
    return {"accuracy": 0.8765, "largest_cosine": 0.5, "largest_divergence": 0.2, **numbers}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store in which every trial of every experiment has a result."""
    store = Store(tmp_path_factory.mktemp("whole"))
    for experiment in EXPERIMENTS.values():
        for trial in experiment.trials():
            store.add(trial, fake(trial), {})
    return store


@pytest.fixture(scope="module")
def page(whole):
    return report_page(whole)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_shows_something_well_formed(whole, name):
    experiment = EXPERIMENTS[name]
    blocks = experiment.show(Results(whole.found(experiment.trials())))
    assert blocks
    for block in blocks:
        if isinstance(block, TableBlock):
            assert block.rows
            assert {len(row) for row in block.rows} == {len(block.headings)}
        else:
            assert isinstance(block, FigureBlock)
            assert block.lines
            assert {line.panel for line in block.lines} <= set(range(len(block.panels)))
            assert all(len(line.x) == len(line.y) for line in block.lines)


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if EXPERIMENTS[name].quick()])
def test_quick_versions_show_something_too(tmp_path, name):
    store, experiment = Store(tmp_path), EXPERIMENTS[name]
    for trial in experiment.quick():
        store.add(trial, fake(trial), {})
    assert experiment.show(Results(store.found(experiment.quick())))
    assert f"smoothcde reproduce {name} --quick" in report_page(store)


def test_the_page_has_a_section_and_a_command_per_experiment(page):
    for name, experiment in EXPERIMENTS.items():
        assert f'<h2 id="{name}">' in page
        assert f"<code>smoothcde reproduce {name}</code>" in page
        assert escape(experiment.title) in page
    assert "87.65" in page
    assert "paper 95.39 ± 0.28" in page


def test_the_page_asks_nothing_of_the_network(page):
    body = page[: page.index("<script>")] + page[page.index("</script>") :]
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", body)
    assert "@import" not in page[: page.index("<script>")]


def test_without_results_the_page_says_what_to_run(tmp_path):
    with pytest.raises(ValueError, match="holds no results; run `smoothcde reproduce main --quick` first"):
        report_page(Store(tmp_path))


@pytest.mark.parametrize(("name", "marker"), [("paper.md", "verdicts"), ("forecasting.md", "forecasting")])
def test_the_tables_of_the_documentation_are_those_of_the_results(name, marker):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert f"<!-- results: {marker} -->" in page
    assert filled(page, COMMITTED) == page, f"run: python -m smoothcde.report.markdown docs/{name} results"


def test_the_page_of_the_committed_results_can_be_made():
    assert "<h2" in report_page(COMMITTED)


def test_markdown_between_other_markers_is_left_alone(whole):
    page = "before\n<!-- results: orders -->\nold\n<!-- end -->\nafter\n"
    made = filled(page, whole)
    assert made.startswith("before\n<!-- results: orders -->\n")
    assert made.endswith("<!-- end -->\nafter\n")
    assert "old" not in made
    assert "| mvc-gp | bosh3 | 87.65" in made


def test_tables_print_in_a_terminal(whole):
    from smoothcde.cli.reproduce import _listing

    assert isinstance(_listing(EXPERIMENTS.values(), whole), Table)
