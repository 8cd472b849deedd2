"""scikit-learn's own checks of estimators."""

import inspect

import pytest
from sklearn.utils.estimator_checks import check_regressors_train, parametrize_with_checks

from smoothcde.estimators import CDEClassifier, CDERegressor
from smoothcde.training import Recipe

# Small and quick. Double precision, because two checks compare a batch with its parts to 1e-7, and float32 products
# round by the size of the batch.
QUICK = {
    "hidden": 8,
    "bandwidths": (0.5,),
    "epochs": 10,
    "batch_size": 512,
    "learning_rate": 0.1,
    "rtol": 0.1,
    "atol": 0.1,
    "model_options": {"solver": "bosh3"},
    "precision": "64-true",
}
WEIGHTS = (
    "a weight of zero or two is not the same as leaving a series out or giving it twice: series are drawn into "
    "mini-batches and a validation split by their number"
)
SHORT = "white noise in ten columns is not learnt in ten steps; `test_a_longer_training_learns_white_noise` runs it"


@pytest.fixture(autouse=True)
def constructors_as_users_have_them(monkeypatch):
    # The tests' check of types refuses wrong parameters in the constructor; scikit-learn asks to wait for `fit`.
    for estimator in (CDEClassifier, CDERegressor):
        monkeypatch.setattr(estimator, "__init__", inspect.unwrap(estimator.__init__))


def expected_to_fail(estimator) -> dict[str, str]:
    """What fails, and why it may."""
    reasons = {"check_sample_weight_equivalence_on_dense_data": WEIGHTS}
    return reasons | {"check_regressors_train": SHORT} if isinstance(estimator, CDERegressor) else reasons


@parametrize_with_checks([CDEClassifier(**QUICK), CDERegressor(**QUICK)], expected_failed_checks=expected_to_fail)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [{"readonly_memmap": False}, {"readonly_memmap": True, "X_dtype": "float32"}])
def test_a_longer_training_learns_white_noise(kind):
    longer = {"epochs": 70, "hidden": 16, "learning_rate": 0.05, "recipe": Recipe(), "validation_fraction": 0.0}
    check_regressors_train("CDERegressor", CDERegressor(**(QUICK | longer)), **kind)
