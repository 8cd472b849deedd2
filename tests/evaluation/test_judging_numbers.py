"""Metrics of predicted numbers, against scikit-learn's."""

import json

import numpy as np
import pytest
from sklearn import metrics as peer

from smoothcde.evaluation import evaluate_regression


@pytest.mark.parametrize("level", [0.0, 1e6])
def test_numbers_are_judged_as_scikit_learn_does(level):
    rng = np.random.default_rng(0)
    truth = level + rng.normal(size=(80, 2)) * [1.0, 20.0]
    predicted = truth + rng.normal(size=(80, 2))
    report = evaluate_regression(truth, predicted, ["dose", "stay"], resamples=0)
    for j, name in enumerate(report.targets):
        found = {key: estimate.value for key, estimate in report.metrics[name].items()}
        assert found == pytest.approx(
            {
                "MSE": peer.mean_squared_error(truth[:, j], predicted[:, j]),
                "MAE": peer.mean_absolute_error(truth[:, j], predicted[:, j]),
                "R2": peer.r2_score(truth[:, j], predicted[:, j]),
            }
        )


def test_one_target_needs_no_second_dimension():
    report = evaluate_regression(np.arange(4.0), np.arange(4.0) + 1)
    assert (report.targets, report.series) == (("target 0",), 4)
    assert report.metrics["target 0"]["MSE"].value == 1.0


def test_constant_truth_has_no_r2_but_errors():
    report = evaluate_regression(np.full(5, 0.1), np.arange(5.0), resamples=30)
    assert report.metrics["target 0"]["R2"].as_dict()["value"] is None
    assert report.metrics["target 0"]["MAE"].low > 0
    json.dumps(report.as_dict(), allow_nan=False)


def test_intervals_hold_the_value():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=100)
    for estimate in evaluate_regression(truth, truth + rng.normal(size=100)).metrics["target 0"].values():
        assert estimate.low < estimate.value < estimate.high


@pytest.mark.parametrize(
    ("truth", "predicted", "names", "message"),
    [
        (np.zeros(3), np.zeros(2), None, r"true values have shape \(3,\), predicted ones \(2,\)"),
        (np.zeros(0), np.zeros(0), None, "there is no series to judge"),
        (np.array([np.nan]), np.zeros(1), None, "some true values are NaN or infinite; leave those series out"),
        (np.zeros(1), np.array([np.inf]), None, "some predicted values are NaN"),
        (np.zeros((3, 2)), np.zeros((3, 2)), ["a"], "there are 1 names for 2 targets"),
    ],
)
def test_numbers_that_cannot_be_judged_are_explained(truth, predicted, names, message):
    with pytest.raises(ValueError, match=message):
        evaluate_regression(truth, predicted, names)
