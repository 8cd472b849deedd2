"""scikit-learn's own checks of estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from smoothcde.estimators import CDEClassifier, CDERegressor

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
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@parametrize_with_checks(
    [CDEClassifier(**QUICK), CDERegressor(**QUICK)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
