"""`CDEClassifier`: what it learns, and what its parameters do."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from toy_series import QUICK, irregular, quick_classifier, slopes

from smoothcde import MODELS, SeriesSet
from smoothcde.estimators import CDEClassifier
from smoothcde.estimators.architecture import architecture_of
from smoothcde.training import RECIPES, Recipe

LABELS = np.array(["down", "flat", "up"])


@pytest.mark.parametrize("model", MODELS)
def test_every_model_fits_and_predicts_irregular_series(model):
    series, slope = irregular(12)
    settings = {"solver": "bosh3"} if model == "ode-rnn" else None
    classifier = quick_classifier(model, epochs=1, rtol=0.1, atol=0.1, model_options=settings)
    classifier.fit(series, LABELS[slope + 1])
    probabilities = classifier.predict_proba(series)
    assert probabilities.shape == (12, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert set(classifier.predict(series)) <= set(LABELS)
    assert classifier.predictor_.architecture["name"] == model


def test_it_learns():
    values, slope = slopes(60)
    test, truth = slopes(60, seed=1)
    classifier = quick_classifier("mvc-gp", epochs=12, bandwidths=(0.5,)).fit(values, slope)
    assert classifier.score(test, truth) > 0.9


def test_the_default_is_the_documented_model():
    values, slope = slopes(6)
    classifier = CDEClassifier(epochs=1, random_state=0).fit(values, slope)
    found = classifier.predictor_.architecture
    assert (found["name"], found["hidden"], found["bandwidths"]) == ("mvc-gp", 64, [0.1, 0.2, 0.4, 1.4])
    assert (found["rtol"], found["time_scale"], found["time_channel"]) == (1e-2, 7.0, True)
    assert "count_channels" not in found


def test_small_sets_are_passed_over_until_300_steps_are_taken():
    classifier = CDEClassifier()
    assert classifier._recipe(40).epochs == 300
    assert classifier._recipe(640).epochs == 30
    assert CDEClassifier(epochs=7)._recipe(40).epochs == 7
    assert CDEClassifier(recipe="paper-uwave")._recipe(40).epochs == 30


def test_missing_values_and_uneven_stamps_shape_the_model_at_fit():
    series, slope = irregular(12)
    found = quick_classifier("mvc-gp", epochs=1, bandwidths=(0.5,)).fit(series, slope).predictor_.architecture
    assert (found["encoder_inputs"], found["count_channels"]) == ("values+mask+gap", True)
    uneven = SeriesSet.from_arrays(slopes(12)[0], times=[0, 1, 2, 3, 4, 5, 6, 9.0])
    found = quick_classifier("mvc-gp", epochs=1, bandwidths=(0.5,)).fit(uneven, slope).predictor_.architecture
    assert found["encoder_inputs"] == "values+mask+gap"
    assert "count_channels" not in found


@pytest.mark.parametrize(("channels", "expected"), [(3, 64), (31, 64), (74, 24), (960, 16)])
def test_many_channels_get_fewer_hidden_units(channels, expected):
    series = SeriesSet.from_arrays(np.zeros((2, channels, 5)))
    assert architecture_of("mvc-gp", series, 2, RECIPES["tuned"], {}, None)["hidden"] == expected
    assert architecture_of("mvc-gp", series, 2, RECIPES["tuned"], {"hidden": 48}, None)["hidden"] == 48
    assert architecture_of("gru", series, 2, RECIPES["tuned"], {}, None)["hidden"] == 64
    # A field of low rank has no matrix of hidden x channels, and channels read one by one are one.
    assert architecture_of("mvc-gp", series, 2, RECIPES["tuned"], {}, {"rank": 8})["hidden"] == 64
    assert architecture_of("mvc-gp", series, 2, RECIPES["tuned"], {}, None, read=1)["hidden"] == 64


def test_stamps_of_a_clock_are_as_even_as_those_from_zero():
    values, steps = np.zeros((2, 1, 50)), 0.1 * np.arange(50)
    for start in (0.0, 1.7e9):
        even = architecture_of("mvc-gp", SeriesSet.from_arrays(values, start + steps), 2, RECIPES["tuned"], {}, None)
        assert "encoder_inputs" not in even
    jumpy = SeriesSet.from_arrays(values, 1.7e9 + steps + 0.01 * (np.arange(50) % 2))
    assert architecture_of("mvc-gp", jumpy, 2, RECIPES["tuned"], {}, None)["encoder_inputs"] == "values+mask+gap"


def test_a_fit_that_chance_began_goes_on_as_it_began(tmp_path):
    values, slope = slopes(12)
    first = quick_classifier(epochs=2, random_state=None, directory=tmp_path).fit(values, slope)
    again = quick_classifier(epochs=2, random_state=None, directory=tmp_path).fit(values, slope)
    assert again.predictor_.record["recipe"]["seed"] == first.predictor_.record["recipe"]["seed"]
    np.testing.assert_array_equal(again.predict_proba(values), first.predict_proba(values))


def test_calibration_without_validation_is_refused_before_the_training(monkeypatch):
    values, slope = slopes(12)
    monkeypatch.setattr("smoothcde.estimators.base.train", None)
    with pytest.raises(ValueError, match="calibration needs validation series, and none were held out"):
        quick_classifier(calibration="temperature", validation_fraction=0.0).fit(values, slope)


def test_the_usual_recipe_gives_up_where_the_validation_loss_decides():
    values, slope = slopes(12)
    two = slope > 0
    for labels, patience in ((two, 10), (slope, None)):
        found = quick_classifier(epochs=40).fit(values, labels).predictor_.record["recipe"]["patience"]
        assert found == patience
    assert quick_classifier(patience=2).fit(values, two).predictor_.record["recipe"]["patience"] == 2


def test_a_paper_recipe_brings_the_papers_model():
    values, slope = slopes(6)
    classifier = CDEClassifier(recipe="paper-uwave", epochs=1, random_state=0).fit(values, slope)
    found = classifier.predictor_.architecture
    assert (found["hidden"], found["bandwidths"], found["noise"]) == (128, [0.1, 0.2, 0.4], 0.05)
    assert "time_channel" not in found


def test_a_recipe_of_ones_own_is_followed():
    values, slope = slopes(12)
    recipe = Recipe(epochs=2, batch_size=5, model={"hidden": 3})
    classifier = CDEClassifier("gru", recipe=recipe, learning_rate=0.5, random_state=0).fit(values, slope)
    used = classifier.predictor_.record["recipe"]
    assert (used["epochs"], used["batch_size"], used["learning_rate"]) == (2, 5, 0.5)
    assert classifier.predictor_.architecture["hidden"] == 3


def test_the_same_seed_gives_the_same_model_and_another_gives_another():
    series, slope = irregular(18)
    torch.manual_seed(1)
    first = quick_classifier("mvc-gp", epochs=2, bandwidths=(0.5,)).fit(series, slope).predict_proba(series)
    torch.manual_seed(2)
    again = quick_classifier("mvc-gp", epochs=2, bandwidths=(0.5,)).fit(series, slope).predict_proba(series)
    other = quick_classifier("mvc-gp", epochs=2, bandwidths=(0.5,), random_state=1).fit(series, slope)
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other.predict_proba(series))


def test_fitting_leaves_the_users_random_numbers_alone():
    values, slope = slopes(12)
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    quick_classifier().fit(values, slope)
    assert torch.equal(torch.rand(3), expected)


def test_cross_validation_takes_arrays_lists_and_sets():
    series, slope = irregular(24)
    values, _ = slopes(24)
    for X in (values, [v[:, : 5 + i % 3] for i, v in enumerate(values)], series):
        scores = cross_val_score(quick_classifier(epochs=1), X, slope, cv=2, error_score="raise")
        assert scores.shape == (2,)
        assert np.isfinite(scores).all()


def test_grid_search_tries_models_and_settings():
    values, slope = slopes(24)
    grid = {"model": ["gru", "linear"], "hidden": [3, 5]}
    search = GridSearchCV(quick_classifier(epochs=1), grid, cv=2, error_score="raise").fit(values, slope)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.predictor_.architecture["hidden"] in (3, 5)
    assert search.predict(values).shape == (24,)


def test_it_stands_at_the_end_of_a_pipeline():
    values, slope = slopes(24, channels=1)
    pipeline = make_pipeline(StandardScaler(), quick_classifier(epochs=20)).fit(values[:, 0], slope)
    assert pipeline.score(values[:, 0], slope) > 0.6
    weights = np.ones(24)
    pipeline.fit(values[:, 0], slope, cdeclassifier__sample_weight=weights, cdeclassifier__static=weights[:, None])


def test_parameters_survive_a_clone():
    classifier = quick_classifier(class_weight={-1: 2.0}, bandwidths=(0.3, 0.4))
    assert clone(classifier).get_params() == classifier.get_params()


def test_a_heavy_class_draws_predictions():
    noise, slope = np.random.default_rng(0).normal(size=(60, 2, 8)), slopes(60)[1]
    for label in (-1, 0, 1):
        weight = {k: 50.0 if k == label else 0.02 for k in (-1, 0, 1)}
        classifier = quick_classifier(epochs=10, class_weight=weight).fit(noise, slope)
        assert (classifier.predict(noise) == label).mean() > 0.9


def test_balanced_classes_weigh_the_same():
    noise = np.random.default_rng(0).normal(size=(60, 2, 8))
    y = np.where(np.arange(60) < 54, "often", "rare")
    kind = {"epochs": 15, "validation_fraction": 0.0, "hidden": 2}
    plain = quick_classifier(**kind).fit(noise, y).predict_proba(noise)[:, 1].mean()
    balanced = quick_classifier(class_weight="balanced", **kind).fit(noise, y).predict_proba(noise)[:, 1].mean()
    assert plain < 0.3 < balanced


def test_sample_weights_count():
    noise, y = np.random.default_rng(0).normal(size=(60, 2, 8)), np.arange(60) % 2
    classifier = quick_classifier(epochs=15).fit(noise, y, sample_weight=np.where(y == 1, 50.0, 0.02))
    assert (classifier.predict(noise) == 1).mean() > 0.9


def test_calibration_lowers_the_log_loss_on_the_validation_series_and_changes_no_label():
    generator = np.random.default_rng(0)
    values, slope = slopes(60)
    wrong = np.where(generator.random(60) < 0.3, generator.integers(-1, 2, 60), slope)
    held, truth = values[40:], wrong[40:]
    settings = {"epochs": 40, "learning_rate": 0.05}
    plain = quick_classifier(**settings).fit(values[:40], wrong[:40], validation=(held, truth))
    calibrated = quick_classifier(calibration="temperature", **settings)
    calibrated.fit(values[:40], wrong[:40], validation=(held, truth))
    assert plain.predictor_.temperature == 1.0
    assert calibrated.predictor_.temperature != 1.0
    np.testing.assert_array_equal(plain.predict(held), calibrated.predict(held))
    assert log_loss(truth, calibrated.predict_proba(held)) < log_loss(truth, plain.predict_proba(held))


def test_a_given_validation_set_is_used_and_nothing_else_held_out():
    values, slope = slopes(30)
    classifier = quick_classifier().fit(values, slope, validation=slopes(9, seed=1))
    record = classifier.predictor_.record
    assert (record["training_series"], record["validation_series"]) == (30, 9)
    assert "validation_accuracy" in record["epochs"][0]


def test_the_own_split_takes_its_share_of_every_class():
    from smoothcde.estimators.splitting import held_out

    classes = np.repeat([0, 1, 2, 3], [100, 10, 5, 1])
    mask = held_out(116, 0.2, 0, classes)
    np.testing.assert_array_equal(np.bincount(classes[mask], minlength=4), [20, 2, 1, 0])
    assert not np.array_equal(mask, held_out(116, 0.2, 1, classes))


def test_patience_stops_early():
    noise, y = np.random.default_rng(0).normal(size=(30, 2, 8)), np.arange(30) % 2
    classifier = quick_classifier(epochs=200, patience=2, learning_rate=0.1).fit(noise, y)
    record = classifier.predictor_.record
    assert record["stopped"]
    assert len(record["epochs"]) < 200


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "transformer"}, "model is 'transformer'; use any of: 'linear'"),
        ({"recipe": "fast"}, "there is no recipe 'fast'; use any of: 'tuned'"),
        ({"calibration": "isotonic"}, "calibration is 'isotonic'; use any of: None, 'temperature'"),
        ({"validation_fraction": 1.5}, "validation_fraction is 1.5; give a share"),
        ({"validation_metric": "f1"}, "validation_metric is 'f1'; use any of"),
        ({"device": "toaster"}, "device is 'toaster'; use any of: 'auto'"),
        ({"class_weight": "heavy"}, "class_weight is 'heavy'; use None, 'balanced'"),
        ({"class_weight": {9: 1.0}}, "class_weight names the label 9, which y does not hold"),
        ({"epochs": 0}, "epochs is 0; give a whole number of at least 1"),
        ({"calibration": "temperature", "validation_fraction": 0.0}, "calibration needs validation series"),
        ({"model": "gp", "bandwidths": (0.1, 0.2)}, "give one bandwidth, not 2"),
    ],
)
def test_wrong_settings_are_told(settings, words):
    values, slope = slopes(12)
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        CDEClassifier(**(QUICK | {"model": "gru", "epochs": 1} | settings)).fit(values, slope)


def test_an_absent_device_is_named():
    values, slope = slopes()
    with pytest.raises(ValueError, match=r"'cuda:99'.* not there \(.*\); use 'cpu' or 'auto'"):
        quick_classifier(device="cuda:99").fit(values, slope)
