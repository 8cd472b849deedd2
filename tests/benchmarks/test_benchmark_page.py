"""docs/benchmarks.md says what the results say."""

import json
import re

import pytest

pytest.importorskip("torchdiffeq")

from benchmarks import page, precision, record

PEERS = {
    "data": "D",
    "series": 7,
    "rounds": 3,
    "reference check": {"largest": 1e-7, "rms": 1e-8, "gradient": 2e-7},
    "products": {"operations": {"field": 4e9}, "operations per second of a large product": 8e9, "share": 0.25},
    "entries": {
        "smoothcde": {
            "training step": 2.0,
            "inference": 1.0,
            "peak megabytes": 1234.5,
            "evaluations": {"needed": 10, "computed": 10, "backward": 0},
            "errors": {"largest": 1e-3, "rms": 1e-4, "gradient": 1e-2},
            "compile": {},
            "tolerance": 1e-3,
        },
        "peer": {
            "training step": 5.0,
            "inference": 0.5,
            "evaluations": {"needed": 10, "computed": 20, "backward": 30},
            "errors": {"largest": 1e-3, "rms": 1e-4, "gradient": 1e-2},
            "compile": {"inference": 5.0, "training step": 12.0},
            "tolerance": 1e-2,
        },
    },
}


def test_the_page_is_what_the_results_give():
    text = page.PAGE.read_text()
    assert page.rendered(text) == text, "run python -m benchmarks.page"


def test_what_a_tolerance_buys_is_told_line_by_line():
    line = {"tolerance": 0.01, "entry": "SciPy", "evaluations": 26.4, "median": 0.14, "worst": 75.0, "beyond ten": 0.9}
    made = page.steps({"series": 3, "settings": {"D": [line]}})
    assert made.splitlines()[-1] == "| D, 0.01, SciPy | 26 | 0.1 | 75.0 | 90% |"


def test_machines_of_one_name_are_told_apart():
    here = {"processor": "P", "machine": "m", "cores": 1, "torch threads": 2, "python": "3", "versions": {"v": "1"}}
    here["date"] = "d"
    alone = page.machines({"latency": here})
    assert alone == "P (m), 1 core, 2 threads in torch; Python 3, v 1; d."
    both = page.machines({"latency": here, "peers_D": here | {"vectors": "AVX2"}, "steps": here})
    assert both.splitlines()[::2] == [
        "latency, steps: P (m), 1 core, 2 threads in torch; Python 3, v 1; d.",
        "peers D: P with AVX2 (m), 1 core, 2 threads in torch; Python 3, v 1; d.",
    ]


def test_a_new_result_changes_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    (tmp_path / "peers_UWaveGestureLibrary.json").write_text(json.dumps(PEERS))
    text = "a\n<!-- table: peers UWaveGestureLibrary -->\nold 3.14\n<!-- end of table -->\nb\n"
    made = page.rendered(text)
    assert made.startswith("a\n<!-- table: peers UWaveGestureLibrary -->\n7 series: D. Medians of 3 rounds.\n")
    assert made.endswith("<!-- end of table -->\nb\n")
    assert "old 3.14" not in made
    cells = [cell.strip() for cell in re.search(r"^\| peer.*$", made, re.MULTILINE)[0].strip("|").split("|")]
    assert cells[:5] == ["peer (tolerance 0.01)", "5.00 s", "2.50 x", "0.50 s", "0.50 x"]
    assert cells[7] == "20 + 30"
    assert cells[-1] == "17.0 s"
    assert "| 1,234 MB |" in made
    assert "reaches 25% of the 8 GFLOP/s" in made
    assert page.rendered(made) == made


def test_a_result_that_is_not_there_is_said_to_be_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    made = page.rendered("<!-- table: latency -->\n1.0\n<!-- end of table -->")
    assert "*Not measured yet: `make bench` writes `benchmarks/results/latency.json`.*" in made
    assert "1.0" not in made


def test_an_unknown_table_is_refused():
    with pytest.raises(ValueError, match="a table 'peer Vowels'; use any of: peers, "):
        page.rendered("<!-- table: peer Vowels -->\n<!-- end of table -->")


def test_precision_is_drawn_and_tabled(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    points = [
        {"tolerance": tolerance, "rms": tolerance, "gradient": tolerance, "training step": 2.5, "inference": 1.0}
        for tolerance in (1e-1, 1e-2)
    ]
    report = {"series": 7, "rounds": 2, "points": dict.fromkeys(precision.COMPARED, points)}
    (tmp_path / "precision_SpokenArabicDigits.json").write_text(json.dumps(report))
    precision.draw(tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")
    made = page.rendered("<!-- table: precision SpokenArabicDigits -->\n<!-- end of table -->")
    assert "| 1e-02 | 1.0e-02 | 2.50 s | 1.0e-02 | 2.50 s | 1.0e-02 | 2.50 s |" in made


def test_many_channels_have_accuracies_and_costs(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    trained = {"channels": 24, "accuracies": [0.8, 0.9], "seconds": 7.0, "weights": 1234}
    step = {"channels": 963, "seconds": 2.2, "megabytes": 1826.0, "evaluations": 38.0, "weights": 5678}
    report = {"seeds": 2, "epochs": 3, "series": 4, "training step": {"rank 16": step}}
    report |= {"JapaneseVowels": {"full": trained}, "NATOPS": {"rank 8": trained}}
    (tmp_path / "many_channels.json").write_text(json.dumps(report))
    made = page.rendered("<!-- table: many_channels -->\n<!-- end of table -->")
    assert "| NATOPS, 24 channels, rank 8 | 85.0% | 80.0% to 90.0% | 1,234 | 7.0 s |" in made
    assert "| 963 channels, rank 16 | 2.2 s | 1,826 MB | 38 | 5,678 |" in made


def test_latency_and_smoothing_have_a_row_per_entry(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    one = {"median": 12.34, "p99": 20.0, "largest error": 1e-4}
    report = {"data": "D", "tolerance": 1e-4, "rounds": 9, "steps of the plan": [3, 2], "entries": {"a": one}}
    (tmp_path / "latency.json").write_text(json.dumps(report))
    assert "| a | 12.3 ms | 20.0 ms |  | 1.0e-04 |" in page.rendered("<!-- table: latency -->\n<!-- end of table -->")
    numbers = {"joint evaluations": 1208, "training step, joint": 3.0, "evaluations per row": 99.6}
    numbers |= {"training step, row": 12.0}
    line = numbers | {"parameters": 252680, "training accuracy": 0.5, "over mvc-gp": dict.fromkeys(numbers, 2.0)}
    report = {"series": 7, "series of a step": 5, "data": "D", "epochs": 2, "rounds": 3, "variants": {"linear": line}}
    (tmp_path / "smoothing.json").write_text(json.dumps(report))
    made = page.rendered("<!-- table: smoothing -->\n<!-- end of table -->")
    assert "| linear | 252,680 | 50.0% | 1,208 (2.0 x) | 3.00 s (2.0 x) | 100 (2.0 x) | 12.0 s (2.0 x) |" in made
