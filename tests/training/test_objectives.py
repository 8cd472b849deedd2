"""Objectives: torch and scikit-learn agree on losses and scores."""

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

from smoothcde.training import CrossEntropy, Objective, SquaredError

RANDOM = np.random.default_rng(0)
OUTPUTS = torch.as_tensor(RANDOM.normal(size=(12, 3)))
CLASSES = np.arange(12) % 3
WEIGHTS = RANDOM.uniform(0.1, 2, size=12)


def tensors(objective, targets):
    return objective.targets(targets), torch.as_tensor(WEIGHTS / WEIGHTS.sum())


@pytest.mark.parametrize("objective", [CrossEntropy(), SquaredError()])
def test_they_keep_the_protocol(objective):
    assert isinstance(objective, Objective)


def test_cross_entropy_is_the_weighted_mean_of_torchs():
    targets, weights = tensors(CrossEntropy(), CLASSES)
    each = torch.nn.functional.cross_entropy(OUTPUTS, targets, reduction="none").numpy()
    assert float(CrossEntropy().loss(OUTPUTS, targets, weights)) == pytest.approx(np.average(each, weights=WEIGHTS))


def test_accuracy_is_weighted():
    targets, weights = tensors(CrossEntropy(), CLASSES)
    expected = accuracy_score(CLASSES, OUTPUTS.argmax(dim=1), sample_weight=WEIGHTS)
    assert CrossEntropy().score(OUTPUTS, targets, weights) == pytest.approx(expected)


def test_the_area_under_the_curve_is_weighted_and_of_one_against_the_rest():
    objective = CrossEntropy("auroc")
    assert objective.metric == "auroc"
    binary, weights = tensors(objective, CLASSES % 2)
    expected = roc_auc_score(CLASSES % 2, (OUTPUTS[:, 1] - OUTPUTS[:, 0]).numpy(), sample_weight=WEIGHTS)
    assert objective.score(OUTPUTS[:, :2], binary, weights) == pytest.approx(expected)
    three, even = objective.targets(CLASSES), torch.ones(12, dtype=torch.float64)
    expected = roc_auc_score(CLASSES, torch.softmax(OUTPUTS, dim=1).numpy(), multi_class="ovr")
    assert objective.score(OUTPUTS, three, even) == pytest.approx(expected)


def test_the_area_skips_classes_that_are_not_there():
    objective, weights = CrossEntropy("auroc"), torch.ones(12, dtype=torch.float64)
    assert 0 <= objective.score(OUTPUTS, objective.targets(CLASSES % 2), weights) <= 1
    assert objective.score(OUTPUTS, objective.targets(np.zeros(12, int)), weights) == 0.5


@pytest.mark.parametrize("columns", [1, 3])
def test_squared_error_and_its_r2_are_weighted(columns):
    truth = RANDOM.normal(size=(12, columns))
    targets, weights = tensors(SquaredError(), truth[:, 0] if columns == 1 else truth)
    outputs = OUTPUTS[:, :columns]
    each = ((outputs.numpy() - truth) ** 2).mean(axis=1)
    assert float(SquaredError().loss(outputs, targets, weights)) == pytest.approx(np.average(each, weights=WEIGHTS))
    expected = r2_score(truth, outputs.numpy(), sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="the model has 5 outputs and the targets"):
        SquaredError().loss(outputs[:, :1].expand(-1, 5), targets, weights)
    assert SquaredError().score(outputs, targets, weights) == pytest.approx(expected)


def test_what_cannot_be_a_target_is_refused():
    with pytest.raises(ValueError, match=r"targets have shape \(2,\) and type <U1; give one class index"):
        CrossEntropy().targets(np.array(["a", "b"]))
    with pytest.raises(ValueError, match=r"give one class index 0, 1, 2, \.\.\. per series"):
        CrossEntropy().targets(np.array([-1, 0]))
    with pytest.raises(ValueError, match=r"targets have shape \(1, 1, 1\); give \(n,\) or \(n, outputs\)"):
        SquaredError().targets(np.zeros((1, 1, 1)))
    with pytest.raises(ValueError, match="the target of series number 1 is not finite; leave it out"):
        SquaredError().targets(np.array([0.0, np.nan]))
    with pytest.raises(ValueError, match="metric is 'f1'; use any of: 'accuracy', 'auroc'"):
        CrossEntropy("f1")
