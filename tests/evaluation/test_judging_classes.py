"""Metrics of predicted probabilities, against scikit-learn's."""

import json

import numpy as np
import pytest
from sklearn import metrics as peer

from smoothcde.evaluation import Estimate, evaluate_classification
from smoothcde.evaluation.bootstrap import estimates
from smoothcde.evaluation.classification import auroc, average_precision, mean_of


def predictions(classes, count=200, decimals=16, seed=0):
    """True classes and probabilities that know something of them; few decimals give many ties."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=count)
    logits = rng.normal(size=(count, classes)) + np.eye(classes)[truth]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    p = np.round(p, decimals)
    return truth, p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("decimals", [16, 1])
def test_two_classes_are_judged_as_scikit_learn_does(decimals):
    truth, p = predictions(2, decimals=decimals)
    p = np.clip(p, 1e-9, 1 - 1e-9)
    found = {name: e.value for name, e in evaluate_classification(truth, p, [0, 1], resamples=0).metrics.items()}
    assert found == pytest.approx(
        {
            "accuracy": peer.accuracy_score(truth, p.argmax(axis=1)),
            "AUROC": peer.roc_auc_score(truth, p[:, 1]),
            "AUPRC": peer.average_precision_score(truth, p[:, 1]),
            "log loss": peer.log_loss(truth, p),
            "Brier score": peer.brier_score_loss(truth, p[:, 1]),
        }
    )


def test_many_classes_are_judged_one_against_the_rest():
    truth, p = predictions(4)
    names = np.array(["cat", "dog", "eel", "fox"])
    found = {name: e.value for name, e in evaluate_classification(names[truth], p, names, resamples=0).metrics.items()}
    assert found == pytest.approx(
        {
            "accuracy": peer.accuracy_score(truth, p.argmax(axis=1)),
            "AUROC": peer.roc_auc_score(truth, p, multi_class="ovr"),
            "AUPRC": peer.average_precision_score(np.eye(4)[truth], p),
            "log loss": peer.log_loss(truth, p),
            "Brier score": ((p - np.eye(4)[truth]) ** 2).sum(axis=1).mean(),
        }
    )


@pytest.mark.parametrize(
    ("metric", "reference"), [(auroc, "roc_auc_score"), (average_precision, "average_precision_score")]
)
def test_counts_of_a_resample_are_weights(metric, reference):
    truth, p = predictions(2, count=60, decimals=1)
    weights = np.random.default_rng(1).multinomial(60, np.full(60, 1 / 60), size=5).astype(float)
    found = metric(truth == 1, p[:, 1])(weights)
    for value, counts in zip(found, weights.astype(int), strict=True):
        drawn = np.repeat(np.arange(60), counts)
        assert value == pytest.approx(getattr(peer, reference)(truth[drawn], p[drawn, 1]))


def test_confusion_has_true_classes_as_rows():
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    report = evaluate_classification(["no", "no", "yes"], p, ["no", "yes"], resamples=0)
    assert report.confusion.tolist() == [[1, 1], [0, 1]]


def test_one_true_class_leaves_ranking_metrics_undefined():
    report = evaluate_classification([1, 1], np.array([[0.3, 0.7], [0.6, 0.4]]), [0, 1], resamples=20)
    for name in ("AUROC", "AUPRC"):
        assert str(report.metrics[name]) == "not defined"
        assert report.metrics[name].as_dict() == {"value": None, "low": None, "high": None}
    assert report.metrics["accuracy"].value == 0.5
    json.dumps(report.as_dict(), allow_nan=False)


def test_a_certain_mistake_costs_much_but_not_infinitely():
    report = evaluate_classification([1], np.array([[1.0, 0.0]]), [0, 1], resamples=0)
    assert 30 < report.metrics["log loss"].value < 40


def test_intervals_are_those_of_the_normal_approximation():
    values = np.random.default_rng(0).normal(3.0, 2.0, size=2000)
    found = estimates({"mean": mean_of(values)}, 2000, resamples=4000)["mean"]
    half = 1.96 * values.std() / np.sqrt(2000)
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1 * half)


def test_intervals_narrow_with_less_confidence_and_repeat_with_the_seed():
    truth, p = predictions(3)
    wide, again = (evaluate_classification(truth, p, range(3), resamples=300).metrics for _ in range(2))
    narrow = evaluate_classification(truth, p, range(3), resamples=300, confidence=0.5).metrics
    other = evaluate_classification(truth, p, range(3), resamples=300, seed=1).metrics
    for name, estimate in wide.items():
        assert estimate == again[name] != other[name]
        assert estimate.low < narrow[name].low < narrow[name].value < narrow[name].high < estimate.high


def test_chunks_of_resamples_change_nothing_but_memory(monkeypatch):
    truth, p = predictions(2)
    whole = evaluate_classification(truth, p, [0, 1], resamples=50)
    monkeypatch.setattr("smoothcde.evaluation.bootstrap._CHUNK", 7 * len(truth))
    pieces = evaluate_classification(truth, p, [0, 1], resamples=50)
    for name, estimate in whole.metrics.items():
        assert vars(pieces.metrics[name]) == pytest.approx(vars(estimate), rel=1e-12)


def test_an_estimate_reads_as_a_sentence_part():
    assert str(Estimate(0.5, 0.25, 0.75)) == "0.5000 (0.2500 to 0.7500)"
    assert str(Estimate(0.5)) == "0.5000"


HALF = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    ("truth", "p", "options", "message"),
    [
        ([0], HALF, {}, r"probabilities have shape \(2, 2\); expected \(1, 2\), series by classes"),
        ([], np.zeros((0, 2)), {}, "there is no series to judge"),
        ([0, 1], HALF * 3, {}, "sum to 1 for each series; apply a softmax"),
        ([0, 1], HALF * np.nan, {}, "must be finite"),
        ([0, 7], HALF, {}, "the true classes 7 are not among those of the model: 0, 1"),
        ([0, 1], HALF, {"resamples": -1}, "resamples is -1; give 0 for no interval"),
        ([0, 1], HALF, {"confidence": 95.0}, "confidence is 95.0; give a number between 0 and 1"),
    ],
)
def test_what_cannot_be_judged_is_explained(truth, p, options, message):
    with pytest.raises(ValueError, match=message):
        evaluate_classification(truth, p, [0, 1], **options)


def test_a_report_on_classes_of_an_array_is_json():
    report = evaluate_classification([0, 1], np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]), resamples=0)
    assert json.loads(json.dumps(report.as_dict()))["classes"] == [0, 1]
