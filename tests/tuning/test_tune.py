"""A search keeps its trials, goes on where it was, and gives an estimator that is no worse on the validation series."""

import numpy as np
import pytest

from smoothcde import CDEClassifier, CDEForecaster, CDERegressor, SearchSpace, SeriesSet, tune
from smoothcde.training.errors import TrainingError

SMALL = SearchSpace(hidden=(4, 8), narrowest=(0.1, 0.3), views=(1, 2))


def waves(count=24, seed=0):
    rng = np.random.default_rng(seed)
    times = [np.sort(rng.uniform(0, 10, size=rng.integers(6, 10))) for _ in range(count)]
    values = [((1 + 2 * (i % 2)) * np.sin(t) + 0.1 * rng.normal(size=len(t)))[None] for i, t in enumerate(times)]
    return SeriesSet.from_arrays(values, times), np.array(["quiet", "loud"] * (count // 2))


def classifier(**settings):
    return CDEClassifier("gp", hidden=4, epochs=3, random_state=0, **settings)


def test_the_first_trial_is_the_estimator_as_it_is():
    series, labels = waves()
    found = tune(classifier(), series, labels, trials=1, space=SMALL)
    assert found.settings == {}
    assert found.estimator.get_params() == classifier().get_params()
    record = classifier().fit(series, labels).predictor_.record
    best = record["epochs"][record["best_epoch"] - 1]
    assert found.judged_by == "loss"
    assert found.table["loss"].tolist() == [pytest.approx(best["validation_loss"], abs=1e-6)]


def test_the_best_trial_has_the_least_loss_and_its_settings_repeat_it():
    series, labels = waves()
    told = []
    found = tune(classifier(), series, labels, trials=4, space=SMALL, on_trial=told.append)
    assert [row["trial"] for row in told] == [0, 1, 2, 3]
    losses = found.table["loss"].dropna().tolist()
    assert losses == sorted(losses)
    record = found.estimator.fit(series, labels).predictor_.record
    assert record["epochs"][record["best_epoch"] - 1]["validation_loss"] == pytest.approx(losses[0], abs=1e-6)
    for name, value in found.settings.items():
        assert getattr(found.estimator, name) == value


def test_without_a_storage_the_same_seed_tries_the_same_settings():
    series, labels = waves()
    tables = [tune(classifier(), series, labels, trials=3, space=SMALL).table for _ in range(2)]
    assert tables[0]["settings"].tolist() == tables[1]["settings"].tolist()


def test_more_accuracy_is_better_and_ties_go_to_the_lower_loss():
    series, labels = waves()
    found = tune(classifier(validation_metric="accuracy"), series, labels, trials=4, space=SMALL)
    ended = found.table[found.table["state"] == "finished"]
    rank = list(zip(-ended["accuracy"], ended["loss"], strict=True))
    assert found.judged_by == "accuracy"
    assert rank == sorted(rank)


def test_a_search_goes_on_where_it_was(tmp_path):
    series, labels = waves()
    file, told = tmp_path / "new" / "trials.db", []
    tune(classifier(), series, labels, trials=2, storage=file, space=SMALL)
    found = tune(classifier(), series, labels, trials=3, storage=file, space=SMALL, on_trial=told.append)
    assert [row["trial"] for row in told] == [2]
    assert sorted(found.table["trial"]) == [0, 1, 2]
    assert tune(classifier(), series, labels, trials=3, storage=file, space=SMALL).table.equals(found.table)


def test_an_interrupted_trial_does_not_count(tmp_path):
    series, labels = waves()
    file = tmp_path / "trials.db"

    class Impatient(CDEClassifier):
        def fit(self, *arguments, **more):
            raise KeyboardInterrupt

    Impatient.__name__ = "CDEClassifier"
    with pytest.raises(KeyboardInterrupt):
        tune(Impatient(**classifier().get_params()), series, labels, trials=2, storage=file, space=SMALL)
    found = tune(classifier(), series, labels, trials=2, storage=file, space=SMALL)
    assert len(found.table) == 2
    assert {} in found.table["settings"].tolist()


def test_another_search_is_not_mixed_in(tmp_path):
    series, labels = waves()
    file = tmp_path / "trials.db"
    tune(classifier(), series, labels, trials=1, storage=file, space=SMALL)
    for estimator, y, different in (
        (classifier(batch_size=5), labels, "batch_size"),
        (classifier(), labels[::-1], "series and targets"),
    ):
        with pytest.raises(ValueError, match=f"holds a search that began otherwise: {different} differ; name another"):
            tune(estimator, series, y, trials=2, storage=file, space=SMALL)
    with pytest.raises(ValueError, match="began otherwise: validation differ"):
        tune(classifier(), series, labels, validation=(series[:8], labels[:8]), trials=2, storage=file, space=SMALL)


def test_a_training_that_fails_is_a_failed_trial(monkeypatch):
    series, labels = waves()
    fit = CDEClassifier.fit

    def fails_at_first(self, *arguments, **more):
        if self.dropout is not None:
            raise TrainingError("the loss is no number")
        return fit(self, *arguments, **more)

    monkeypatch.setattr(CDEClassifier, "fit", fails_at_first)
    found = tune(classifier(), series, labels, trials=2, space=SMALL)
    assert found.table["state"].tolist() == ["finished", "failed"]
    assert found.table["failure"].iloc[1] == "the loss is no number"


def test_a_validation_that_is_no_number_is_a_failed_trial(monkeypatch):
    series, labels = waves()
    fit = CDEClassifier.fit

    def blind(self, *arguments, **more):
        fit(self, *arguments, **more)
        if self.dropout is not None:
            for entry in self.predictor_.record["epochs"]:
                entry["validation_loss"] = float("nan")
        return self

    monkeypatch.setattr(CDEClassifier, "fit", blind)
    told = []
    found = tune(classifier(), series, labels, trials=2, space=SMALL, on_trial=told.append)
    assert found.table["state"].tolist() == ["finished", "failed"]
    assert told[1]["failure"] == "the validation loss is no number in any epoch"


def test_trials_that_fall_behind_are_stopped_early():
    series, labels = waves()
    slow = SearchSpace(hidden=(4,), learning_rate=(1e-9, 1e-1), narrowest=None, noise=None, dropout=None)
    found = tune(CDEClassifier("gp", hidden=4, epochs=4, random_state=0), series, labels, trials=12, space=slow)
    stopped = found.table[found.table["state"] == "stopped early"]
    assert len(stopped)
    assert max(setting["learning_rate"] for setting in stopped["settings"]) < found.settings["learning_rate"]


def test_numbers_and_forecasts_can_be_tuned_too():
    series, labels = waves()
    regressor = CDERegressor("gp", hidden=4, epochs=2, random_state=0)
    found = tune(regressor, series, (labels == "loud").astype(float), trials=2, space=SMALL)
    assert isinstance(found.estimator, CDERegressor)
    hours = np.arange(120.0)
    recording = SeriesSet.from_arrays([np.sin(hours / 4)[None]], [hours])
    forecaster = CDEForecaster(12, 4, "gp", hidden=4, epochs=2, random_state=0)
    found = tune(forecaster, recording, trials=2, space=SMALL)
    assert isinstance(found.estimator, CDEForecaster)
    assert found.estimator.baseline
    assert found.table["loss"].notna().any()


def test_settings_cannot_be_judged_without_validation_series():
    series, labels = waves()
    with pytest.raises(ValueError, match="there are no validation series to judge settings by; give `validation`"):
        tune(classifier(validation_fraction=0.0), series, labels, trials=1)
    given = (series[:8], labels[:8])
    assert len(tune(classifier(validation_fraction=0.0), series, labels, validation=given, trials=1).table) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": 0}, "trials is 0"),
        ({"hours": 0.0}, "hours is 0.0; give the hours"),
        ({"storage": "nosuch://place"}, "'nosuch://place' cannot be opened as a store of trials"),
    ],
)
def test_wrong_use_is_refused(wrong, message):
    series, labels = waves()
    with pytest.raises(ValueError, match=message):
        tune(classifier(), series, labels, **wrong)
