"""The loss of forecasts whose targets are partly missing."""

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_pinball_loss, r2_score

from smoothcde.training import ForecastError, Objective

RANDOM = np.random.default_rng(0)
TRUTH = RANDOM.normal(size=(6, 4, 2))
TRUTH[RANDOM.random(TRUTH.shape) < 0.4] = np.nan
TRUTH[3] = np.nan
SEEN = np.isfinite(TRUTH)
WEIGHTS = torch.as_tensor(SEEN.mean(axis=(1, 2)) / SEEN.mean(axis=(1, 2)).sum())
LEVELS = (0.1, 0.5, 0.9)


def test_it_keeps_the_protocol():
    assert isinstance(ForecastError(), Objective)


def test_with_weights_by_number_the_loss_is_the_mean_over_all_observed():
    outputs = torch.as_tensor(RANDOM.normal(size=(6, 8)))
    targets = ForecastError().targets(TRUTH)
    expected = np.mean((outputs.numpy().reshape(TRUTH.shape)[SEEN] - TRUTH[SEEN]) ** 2)
    assert float(ForecastError().loss(outputs, targets, WEIGHTS)) == pytest.approx(expected)
    score = r2_score(TRUTH[SEEN], outputs.numpy().reshape(TRUTH.shape)[SEEN])
    assert ForecastError().score(outputs, targets, WEIGHTS) == pytest.approx(score)


def test_quantiles_are_trained_by_the_pinball_loss():
    objective, outputs = ForecastError(LEVELS), torch.as_tensor(RANDOM.normal(size=(6, 24)))
    bands = outputs.numpy().reshape(6, 3, 4, 2)
    each = [mean_pinball_loss(TRUTH[SEEN], bands[:, i][SEEN], alpha=level) for i, level in enumerate(LEVELS)]
    targets = objective.targets(TRUTH)
    assert float(objective.loss(outputs, targets, WEIGHTS)) == pytest.approx(np.mean(each))
    assert objective.score(outputs, targets, WEIGHTS) == pytest.approx(r2_score(TRUTH[SEEN], bands[:, 1][SEEN]))


@pytest.mark.parametrize("objective", [ForecastError(), ForecastError(LEVELS)])
def test_missing_targets_give_no_gradient_and_no_nan(objective):
    outputs = torch.zeros(6, 8 * len(objective.quantiles or (0.5,)), dtype=torch.float64, requires_grad=True)
    objective.loss(outputs, objective.targets(TRUTH), WEIGHTS).backward()
    gradient = outputs.grad.reshape(6, -1, 4, 2).abs().sum(dim=1).numpy()
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(gradient > 0, SEEN)


def test_what_cannot_be_a_target_is_refused():
    with pytest.raises(ValueError, match=r"targets have shape \(3,\); give \(n, horizon, channels\), finite"):
        ForecastError().targets(np.zeros(3))
