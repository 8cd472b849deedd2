"""Wherever a trial runs, and however often it is interrupted, its result is the same, and no result is made twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from small_trials import TRIALS, determined, small

from smoothcde.reproduce import measures
from smoothcde.reproduce.engine import ENGINES, run_trials
from smoothcde.reproduce.store import Store

SCRIPT = Path(__file__).with_name("small_trials.py")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Results of this process, one after the other."""
    folder = tmp_path_factory.mktemp("here")
    store = Store(folder)
    assert not run_trials(TRIALS, store, folder / "work", "here")
    return determined(store.found(TRIALS))


def test_every_trial_has_its_result(expected):
    assert len(expected) == len(TRIALS)
    assert len({result["losses"][0] for result in expected.values()}) == len(TRIALS)


def test_what_has_a_result_is_not_run_again(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setitem(measures.MEASURES, "score", lambda trial, work: ran.append(trial) or {"accuracy": 1.0})
    store = Store(tmp_path)
    run_trials(TRIALS[:2], store, tmp_path / "work", "here")
    run_trials(TRIALS, store, tmp_path / "work", "here")
    assert ran == TRIALS


def test_a_failing_trial_is_reported_and_the_others_go_on(tmp_path):
    wrong, told = small(solver="euler"), []
    store = Store(tmp_path)
    failures = run_trials([wrong, TRIALS[0]], store, tmp_path / "work", "here", on_end=told.append)
    assert [ended.trial for ended in failures] == [wrong]
    assert failures[0].failure.startswith("ValueError: solver is 'euler'; use any of: ")
    assert "Traceback" in failures[0].details
    assert len(told) == 2
    assert store.find(TRIALS[0]) is not None
    assert store.find(wrong) is None


def test_an_engine_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no engine 'slurm'; use any of: 'here', 'joblib', 'ray'"):
        run_trials(TRIALS, Store(tmp_path), tmp_path, "slurm")


def start(folder: Path) -> subprocess.Popen:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, str(SCRIPT), str(folder)], env=environment, start_new_session=True)


def test_a_killed_run_goes_on_and_ends_the_same(tmp_path, expected):
    """Several processes by joblib, all killed after the first result."""
    store, deadline = Store(tmp_path), time.monotonic() + 120
    process = start(tmp_path)
    while not (first := store.found(TRIALS)) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert first
    before = {trial: store.file_of(trial).stat().st_mtime_ns for trial in store.found(TRIALS)}
    assert start(tmp_path).wait(timeout=120) == 0
    assert determined(store.found(TRIALS)) == expected
    assert {trial: store.file_of(trial).stat().st_mtime_ns for trial in before} == before


@pytest.mark.slow
def test_a_cluster_gives_the_same_numbers(tmp_path, expected):
    ray = pytest.importorskip("ray", reason="needs the extra smoothcde[ray]")
    store = Store(tmp_path)
    try:
        assert not run_trials(TRIALS, store, tmp_path / "work", "ray", workers=2)
    finally:
        ray.shutdown()
    assert determined(store.found(TRIALS)) == expected


@pytest.mark.parametrize("measure", ["noise", "attention"])
def test_measurements_share_a_training(tmp_path, measure, monkeypatch):
    store, trial = Store(tmp_path), small("mvc-gp", bandwidths=(0.2, 0.4))
    run_trials([trial], store, tmp_path / "work", "here")
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "work").rglob("*") if file.is_file()}
    other = trial.measured(measure)
    assert not run_trials([other], store, tmp_path / "work", "here")
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "work").rglob("*") if file.is_file()} == files
    found = store.find(other)
    if measure == "noise":
        assert found["levels"][0]["accuracy"] == store.find(trial)["accuracy"]
        assert [point["level"] for point in found["levels"]] == list(measures.NOISE_LEVELS)
    else:
        assert len(found["attention"]) == len(found["paths"]) == len(found["steps"]) == 2
        assert sum(found["attention"][0]) == pytest.approx(1, abs=1e-3)


def test_engines_are_those_the_command_offers():
    assert list(ENGINES) == ["here", "joblib", "ray"]


def test_a_process_that_is_killed_is_told_with_a_remedy(tmp_path, monkeypatch):
    class Killed:
        def __init__(self, *arguments, **options): ...

        def __call__(self, tasks):
            raise TerminatedWorkerError("A worker process managed by the executor was unexpectedly terminated")

    monkeypatch.setattr("joblib.Parallel", Killed)
    with pytest.raises(ChildProcessError, match=r"results so far are kept .* run the same again, with fewer workers"):
        run_trials([small()], Store(tmp_path), tmp_path, engine="joblib")
