"""Results on disk: kept as they come, found by their settings."""

import json

import pytest

from smoothcde.experiments.ledger import Ledger

KEY, RESULT = {"data": "A", "seed": 0}, {"accuracy": 0.5, "nfe": None}


def test_a_result_is_on_disk_as_soon_as_it_is_added(tmp_path):
    file = tmp_path / "folder" / "results.json"
    ledger = Ledger(file)
    ledger.add(KEY, RESULT)
    assert json.loads(file.read_text()) == {"results": [{"settings": KEY, "result": RESULT}]}
    assert Ledger(file).find(KEY) == RESULT
    assert [path.name for path in file.parent.iterdir()] == ["results.json"]


def test_only_the_very_same_settings_are_found(tmp_path):
    ledger = Ledger(tmp_path / "results.json")
    ledger.add(KEY, RESULT)
    ledger.add(KEY | {"seed": 1}, RESULT | {"accuracy": 0.7})
    assert Ledger(tmp_path / "results.json").find(KEY | {"seed": 1}) == {"accuracy": 0.7, "nfe": None}
    for other in (KEY | {"seed": 2}, {"data": "A"}, KEY | {"more": 1}):
        assert ledger.find(other) is None


def test_without_a_file_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger()
    ledger.add(KEY, RESULT)
    assert ledger.find(KEY) == RESULT
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_the_old_results(tmp_path):
    file = tmp_path / "results.json"
    ledger = Ledger(file)
    ledger.add(KEY, RESULT)
    with pytest.raises(TypeError):
        ledger.add({"data": "B"}, {"accuracy": object()})
    assert Ledger(file).find(KEY) == RESULT


@pytest.mark.parametrize("text", ["", "[]", "{}", "{half"])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    file = tmp_path / "results.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="holds no results of a comparison; name another file, or remove it"):
        Ledger(file)
    assert file.read_text() == text
