"""Results are kept per trial, count as long as their setting does, and are averaged over seeds."""

import json

import pytest
from small_trials import fake, small

from smoothcde.reproduce.blocks import compared
from smoothcde.reproduce.costs import hours_of, within
from smoothcde.reproduce.results import Results, Spread
from smoothcde.reproduce.settings import setting_of
from smoothcde.reproduce.store import Store
from smoothcde.reproduce.trial import Trial


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def test_what_was_kept_is_found(store):
    store.add(small(), fake(0.75), {"torch": "2"})
    assert store.find(small())["accuracy"] == 0.75
    assert store.find(small(seed=1)) is None


def test_a_result_of_another_setting_does_not_count(store):
    store.add(small(), fake(), {})
    file = store.file_of(small())
    kept = json.loads(file.read_text())
    kept["setting"]["learning_rate"] = 123.0
    file.write_text(json.dumps(kept))
    assert store.find(small()) is None


def test_a_file_that_is_no_result_is_told(store):
    store.add(small(), fake(), {})
    store.file_of(small()).write_text("{}")
    with pytest.raises(ValueError, match="holds no result of a trial; remove it to have the trial run again"):
        store.find(small())


def test_a_file_says_everything_about_its_result(store):
    store.add(small(solver="bosh3"), fake(), {"torch": "2.13"})
    kept = json.loads(store.file_of(small(solver="bosh3")).read_text())
    assert kept["trial"]["changes"]["solver"] == "bosh3"
    assert kept["setting"]["solver"] == "bosh3"
    assert kept["made_with"] == {"torch": "2.13"}


def test_seeds_are_averaged(store):
    for seed, accuracy in enumerate((0.8, 0.9)):
        store.add(small(seed=seed), fake(accuracy), {})
    store.add(small("cubic"), fake(0.5), {})
    results = Results(store.found([small(seed=seed) for seed in range(3)] + [small("cubic")]))
    found = results.spread(small(), "accuracy")
    assert (found.mean, found.deviation, found.seeds) == (pytest.approx(0.85), pytest.approx(0.5**0.5 * 0.1), 2)
    assert found.text(1, 100.0) == "85.0 ± 7.1"
    assert results.spread(small("cubic"), "accuracy").deviation is None
    assert results.spread(small("linear"), "accuracy") is None


class TestAFigureBesideThePapers:
    def test_within_twice_the_larger_spread_it_is_the_same(self):
        assert compared(Spread(0.92, 0.01, 3), (93.0, 1.0), factor=100.0).mark == "same"

    def test_beyond_it_is_better_or_worse(self):
        assert compared(Spread(0.95, 0.001, 3), (93.0, 0.5), factor=100.0).mark == "better"
        assert compared(Spread(150.0, 1.0, 3), (93.0, 0.5), more=False).mark == "worse"

    def test_what_was_not_run_is_said_so(self):
        assert compared(None, (93.0, 0.5)).text == "not run"

    def test_seeds_stand_beside_it(self):
        assert compared(Spread(0.95, 0.01, 3), None, factor=100.0).text == "95.00 ± 1.00 (3)"


class TestCosts:
    def test_known_seeds_tell_what_the_next_will_cost(self, store):
        trials = [small(seed=0), small(seed=1)]
        store.add(trials[0], fake(seconds=7200), {})
        assert within(trials, None, store).hours == pytest.approx(2.0)

    def test_without_one_a_table_tells_in_proportion_to_epochs_and_views(self):
        usual = Trial.of("UWaveGestureLibrary", "mvc-gp")
        epochs = setting_of(usual).epochs
        assert hours_of(usual.but(epochs=2 * epochs)) == pytest.approx(2 * hours_of(usual))
        assert hours_of(usual.but(bandwidths=(0.1,) * 6)) == pytest.approx(2 * hours_of(usual))

    def test_a_budget_takes_what_fits_and_names_the_rest(self, store):
        trials = [Trial.of("UWaveGestureLibrary", "mvc-gp", seed) for seed in range(3)]
        one = hours_of(trials[0])
        plan = within(trials, 2.5 * one, store)
        assert list(plan.chosen) == trials[:2]
        assert list(plan.left) == trials[2:]
        assert plan.hours == pytest.approx(2 * one)

    def test_a_dear_trial_is_not_passed_over_for_cheaper_ones(self, store):
        trials = [Trial.of("UWaveGestureLibrary", model) for model in ("gp", "linear", "kernel")]
        plan = within(trials, hours_of(trials[0]) + hours_of(trials[2]), store)
        assert list(plan.chosen) == trials[:1]
        assert list(plan.left) == trials[1:]

    def test_what_has_a_result_costs_nothing(self, store):
        trials = [small(seed=0), small(seed=1)]
        store.add(trials[0], fake(), {})
        assert list(within(trials, None, store).chosen) == trials[1:]
