"""`CDERegressor`: one target or several, in their own units."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score
from toy_series import irregular, quick_regressor, slopes


def test_it_learns_numbers_of_any_size():
    values, slope = slopes(60)
    test, truth = slopes(60, seed=1)
    regressor = quick_regressor("mvc-gp", hidden=8, epochs=30, bandwidths=(0.5,)).fit(values, 1e6 + 1e3 * slope)
    assert regressor.score(test, 1e6 + 1e3 * truth) > 0.8


def test_units_of_the_target_do_not_matter():
    values, slope = slopes(24)
    plain = quick_regressor(precision="64-true").fit(values, slope).predict(values)
    scaled = quick_regressor(precision="64-true").fit(values, 1e4 * slope - 7).predict(values)
    np.testing.assert_allclose(scaled, 1e4 * plain - 7, rtol=1e-9)


def test_several_targets_keep_their_shape_and_names():
    values, slope = slopes(60)
    targets = pd.DataFrame({"up": slope, "down": -5.0 * slope})
    regressor = quick_regressor(epochs=40).fit(values, targets)
    predicted = regressor.predict(values)
    assert predicted.shape == (60, 2)
    assert regressor.n_outputs_ == 2
    assert regressor.predictor_.target_names == ("up", "down")
    assert regressor.score(values, targets) > 0.8


def test_a_flat_target_gives_flat_predictions_and_a_column_a_column():
    values, slope = slopes(12)
    flat = quick_regressor().fit(values, slope).predict(values)
    column = quick_regressor().fit(values, slope[:, None]).predict(values)
    assert flat.shape == (12,)
    assert column.shape == (12, 1)
    np.testing.assert_array_equal(flat, column[:, 0])


def test_a_constant_target_is_learnt():
    values, _ = slopes(12)
    regressor = quick_regressor(epochs=60, learning_rate=0.1).fit(values, np.full(12, 42.0))
    np.testing.assert_allclose(regressor.predict(values), 42.0, atol=0.5)


def test_sample_weights_count():
    noise, y = np.random.default_rng(0).normal(size=(40, 2, 8)), np.repeat([0.0, 10.0], 20)
    light, heavy = (
        quick_regressor(hidden=2, epochs=20, validation_fraction=0.0).fit(noise, y, sample_weight=weights)
        for weights in (np.where(y > 0, 0.01, 1.0), np.where(y > 0, 1.0, 0.01))
    )
    assert light.predict(noise).mean() + 2 < heavy.predict(noise).mean()


def test_cross_validation_and_a_given_validation_set():
    series, slope = irregular(18)
    assert np.isfinite(cross_val_score(quick_regressor(epochs=1), series, slope, cv=2, error_score="raise")).all()
    record = quick_regressor().fit(series, slope, validation=irregular(5, seed=1)).predictor_.record
    assert (record["training_series"], record["validation_series"]) == (18, 5)
    with pytest.raises(ValueError, match="the validation set has 1 targets, training has 2"):
        quick_regressor().fit(series, np.stack([slope, slope], 1), validation=irregular(5, seed=1))


def test_saved_regressors_keep_shape_and_parameters(tmp_path):
    values, slope = slopes(12)
    for y in (slope, slope[:, None], np.stack([slope, slope**2], axis=1)):
        regressor = quick_regressor().fit(values, y)
        regressor.save(tmp_path / "model")
        loaded = type(regressor).load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict(values), regressor.predict(values))
        assert loaded.get_params() == regressor.get_params()
