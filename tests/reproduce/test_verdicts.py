"""Verdicts follow the results."""

import pytest
from small_trials import fake, noisy

from smoothcde.reproduce.settings import PAPER_DATA
from smoothcde.reproduce.store import Store
from smoothcde.reproduce.trial import Trial
from smoothcde.reproduce.verdicts import judge


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def verdict(store, words):
    (found,) = [entry for entry in judge(store) if words in entry.claim]
    return found


def test_without_results_nothing_is_claimed(store):
    assert {entry.verdict for entry in judge(store)} == {"not run"}


@pytest.mark.parametrize(
    ("cubic", "words"),
    [((300.0, 400.0), "holds"), ((150.0, 400.0), "holds in part"), ((150.0, 120.0), "does not hold")],
)
def test_evaluations_of_splines_are_held_against_those_of_mvc_gp(store, cubic, words):
    for data, nfe in zip(PAPER_DATA, cubic, strict=False):
        store.add(Trial.of(data, "mvc-gp"), fake(nfe=100.0), {})
        store.add(Trial.of(data, "cubic"), fake(nfe=nfe), {})
    found = verdict(store, "drives up the number of evaluations")
    assert found.verdict == words
    assert f"Characters cubic {cubic[0] / 100:.1f} x" in found.ours


def test_the_best_of_the_others_is_what_counts(store):
    for model, accuracy in {"mvc-gp": 0.95, "linear": 0.91, "cubic": 0.90, "gru-d": 0.96}.items():
        store.add(Trial.of("UWaveGestureLibrary", model), fake(accuracy), {})
    found = verdict(store, "state of the art")
    assert found.verdict == "does not hold"
    assert found.ours == "UWave -1.0 points over gru-d (3 of 11 models run)"
    assert verdict(store, "more accurate than linear and cubic").verdict == "holds"


def test_a_gap_smaller_than_what_seeds_differ_by_decides_nothing(store):
    for seed, (ours, theirs) in enumerate([(0.95, 0.90), (0.85, 0.92), (0.93, 0.88)]):
        store.add(Trial.of("UWaveGestureLibrary", "mvc-gp", seed), fake(ours), {})
        store.add(Trial.of("UWaveGestureLibrary", "gp", seed), fake(theirs), {})
    assert verdict(store, "more accurate than one GP path").verdict == "within the spread of the seeds"


def test_noise_is_judged_by_growth_and_by_loss(store):
    store.add(Trial.of("UWaveGestureLibrary", "mvc-gp", measure="noise"), noisy(1.2, 0.05), {})
    store.add(Trial.of("UWaveGestureLibrary", "cubic", measure="noise"), noisy(8.0, 0.2), {})
    assert verdict(store, "hardly change under noise").ours == "UWave x 1.20"
    assert verdict(store, "grow drastically").verdict == "holds"
    found = verdict(store, "grows more slowly")
    assert found.verdict == "holds"
    assert found.ours == "UWave: loses 5.0 points, cubic 20.0"


def test_nothing_is_best_before_all_have_run(store):
    store.add(Trial.of("UWaveGestureLibrary", "mvc-gp"), fake(accuracy=0.95), {})
    store.add(Trial.of("UWaveGestureLibrary", "cubic"), fake(accuracy=0.90), {})
    assert verdict(store, "the best of all").verdict == "not run"
    assert "1 of 11 models run" in verdict(store, "the best of all").ours
    mine = Trial.of("ETTm1", "mvc-gp", measure="forecast", reading="days", clock=True)
    store.add(mine, {"mse": 0.3}, {})
    assert verdict(store, "Forecasts of ETTm1").verdict == "not run"
