"""The comparison: every model by one recipe, results kept as they come, one table."""

import json

import pytest
from typer.testing import CliRunner

from smoothcde.cli import app
from smoothcde.data import load_uea
from smoothcde.experiments import compare as comparing
from smoothcde.experiments.compare import Compared, Plan, compare, table_of, verdict_on
from smoothcde.experiments.ledger import Ledger
from smoothcde.models import MODELS

QUICK = Plan(steps=2, hidden=6, width=6)


@pytest.fixture(autouse=True)
def few_series(monkeypatch):
    """Every eighth vowel: enough to run all there is to run."""

    def some(name, split):
        series, labels = load_uea(name, split)
        return series[::8], labels[::8]

    monkeypatch.setattr(comparing, "load_uea", some)


def line(model="gru", accuracy=0.5, **others):
    defaults = {"data": "D", "chance": 0.25, "series": 100, "parameters": 1234, "nfe": None, "seconds": 1.0}
    return Compared(model=model, accuracy=accuracy, **(defaults | others))


def test_models_are_trained_to_one_size_and_judged():
    lines = compare("JapaneseVowels", ("mvc-gp", "gru", "cubic", "boosted summaries"), QUICK)
    assert [each.model for each in lines] == ["mvc-gp", "gru", "cubic", "boosted summaries"]
    smooth, gru, cubic, boosted = lines
    assert gru.parameters == pytest.approx(smooth.parameters, rel=0.05)
    assert cubic.parameters == pytest.approx(smooth.parameters, rel=0.05)
    assert boosted.parameters is None
    assert cubic.nfe > 0
    assert gru.nfe is None
    assert {each.series for each in lines} == {47}
    assert all(0 <= each.accuracy <= 1 for each in lines)


def test_a_stopped_comparison_goes_on_where_it_was(tmp_path, monkeypatch):
    file = tmp_path / "results.json"

    def stop(told):
        if told.model == "gru-d":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare("JapaneseVowels", ("gru", "gru-d", "boosted summaries"), QUICK, Ledger(file), stop)
    assert len(json.loads(file.read_text())["results"]) == 2
    trained = []
    train = comparing.train
    monkeypatch.setattr(comparing, "train", lambda model, *rest: trained.append(model) or train(model, *rest))
    again = compare("JapaneseVowels", ("gru", "gru-d", "boosted summaries"), QUICK, Ledger(file))
    assert not trained
    assert [each.model for each in again] == ["gru", "gru-d", "boosted summaries"]
    assert compare("JapaneseVowels", ("gru",), QUICK, Ledger(file))[0] == again[0]
    compare("JapaneseVowels", ("gru",), Plan(steps=3, hidden=6, width=6), Ledger(file))
    assert len(trained) == 1  # another plan is another result


def test_all_known_results_need_no_data(tmp_path, monkeypatch):
    file = tmp_path / "results.json"
    compare("JapaneseVowels", ("gru",), QUICK, Ledger(file))
    monkeypatch.setattr(comparing, "load_uea", None)
    assert compare("JapaneseVowels", ("gru",), QUICK, Ledger(file))[0].model == "gru"


def test_the_plan_counts_steps_in_whole_epochs():
    plan = Plan(steps=150, batch_size=32)
    assert plan.recipe(270).epochs == 17  # of nine steps
    assert plan.recipe(40).epochs == 75
    assert plan.recipe(270).batch_size == 32


def test_luck_is_told_from_learning():
    assert line(accuracy=0.25).at_chance
    assert line(accuracy=0.37).at_chance  # less than three standard deviations of 4.3%
    assert not line(accuracy=0.39).at_chance
    assert verdict_on([line(), line("mamba", 0.2)]) == "At chance: mamba on D."
    assert verdict_on([line()]) == "No model is at chance."


def test_the_table_has_a_row_per_line():
    columns = {c.header: list(c.cells) for c in table_of([line(), line("cubic", 0.875, nfe=41.6)]).columns}
    assert columns["model"] == ["gru", "cubic"]
    assert columns["test accuracy"] == ["50.0%", "87.5%"]
    assert columns["NFE per row"] == ["-", "42"]
    assert columns["parameters"] == ["1,234", "1,234"]


def test_an_unknown_model_is_answered_with_all_names():
    with pytest.raises(ValueError, match="there is no model 'gruu'; use any of: ") as refused:
        compare("JapaneseVowels", ("gru", "gruu"), QUICK)
    for name in (*MODELS, "boosted summaries", "MiniRocket"):
        assert repr(name) in str(refused.value)


def command(*arguments):
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "140", "NO_COLOR": "1", "TERM": "dumb"})


def test_the_command_prints_one_table_and_keeps_its_results(tmp_path):
    file = tmp_path / "results.json"
    arguments = ("compare", "JapaneseVowels", "BasicMotions", "--model", "gru", "--model", "boosted summaries")
    result = command(*arguments, "--steps", "1", "--results", str(file))
    assert result.exit_code == 0, result.output
    assert result.output.count("Same recipe, same parameter count") == 1
    for words in ("JapaneseVowels", "BasicMotions", "gru", "boosted summaries", "chance", "NFE per row"):
        assert words in result.output
    assert len(json.loads(file.read_text())["results"]) == 4


def test_the_command_answers_a_wrong_name_or_file_in_words(tmp_path):
    wrong = command("compare", "JapaneseVowels", "--model", "gruu", "--results", str(tmp_path / "r.json"))
    assert wrong.exit_code == 2
    assert "there is no model 'gruu'" in wrong.output
    (tmp_path / "r.json").write_text("something else")
    wrong = command("compare", "JapaneseVowels", "--model", "gru", "--results", str(tmp_path / "r.json"))
    assert wrong.exit_code == 2
    assert "holds no results" in wrong.output
    assert command("footprint", "Vowels", "--no-memory").exit_code == 2
    assert command("footprint", "--model", "gruu", "--no-memory").exit_code == 2


def test_the_footprint_command_prints_sizes_without_measuring():
    result = command("footprint", "UWaveGestureLibrary", "--model", "gru", "--model", "mvc-gp", "--no-memory")
    assert result.exit_code == 0, result.output
    for words in ("252,680", "off mvc-gp", "gru"):
        assert words in result.output
