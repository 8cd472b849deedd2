"""aeon's own checks of estimators, and the adapters' answers."""

import inspect

import numpy as np
import pytest
from aeon.testing.estimator_checking import check_estimator
from sklearn.base import clone
from toy_series import quick_classifier, quick_regressor, slopes

from smoothcde.estimators.aeon import AeonCDEClassifier, AeonCDERegressor


@pytest.mark.parametrize("adapter", [AeonCDEClassifier, AeonCDERegressor])
def test_aeon_finds_nothing_wrong(adapter, monkeypatch):
    # The tests' check of types wraps constructors in one of any arguments, which aeon would refuse.
    monkeypatch.setattr(adapter, "__init__", inspect.unwrap(adapter.__init__))
    results = check_estimator(adapter)
    assert len(results) > 15
    assert {name: words for name, words in results.items() if words != "PASSED"} == {}


def test_the_classifier_answers_as_the_estimator_inside():
    values, slope = slopes(12)
    inside = quick_classifier()
    adapter = AeonCDEClassifier(inside).fit(values, slope)
    np.testing.assert_array_equal(adapter.predict_proba(values), clone(inside).fit(values, slope).predict_proba(values))
    assert not hasattr(inside, "predictor_")


def test_the_regressor_answers_as_the_estimator_inside():
    values, slope = slopes(12)
    inside = quick_regressor()
    adapter = AeonCDERegressor(inside).fit(values, slope.astype(float))
    np.testing.assert_array_equal(adapter.predict(values), clone(inside).fit(values, slope).predict(values))
