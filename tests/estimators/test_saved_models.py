"""Fit, save, load: the same answers, in this process and in another."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from toy_series import irregular, quick_classifier, quick_regressor, slopes

from smoothcde import MODELS, SeriesSet
from smoothcde.estimators import CDEClassifier, CDERegressor, Predictor
from smoothcde.models import build_model
from smoothcde.storage import Contents, ModelFileError, read_directory, write_directory
from smoothcde.training import Recipe

ELSEWHERE = """
import sys, numpy as np
from smoothcde.estimators import CDEClassifier, Predictor
from smoothcde.series import SeriesSet
folder = sys.argv[1]
stored = np.load(folder + "/series.npz")
series = SeriesSet(stored["values"], stored["times"], stored["offsets"], stored["start"], stored["end"],
                   tuple(range(len(stored["start"]))), ("heart", "breath"), stored["static"], ("age",))
np.savez(folder + "/answers.npz", outputs=Predictor.load(folder + "/model").outputs(series),
         probabilities=CDEClassifier.load(folder + "/model").predict_proba(series),
         labels=CDEClassifier.load(folder + "/model").predict(series))
"""


def test_another_process_gives_identical_answers(tmp_path):
    series, slope = irregular(12, static=np.arange(12.0), channel_names=("heart", "breath"))
    series = replace(series, static_names=("age",))
    classifier = quick_classifier("mvc-gp", bandwidths=(0.2, 0.8), calibration="temperature")
    classifier.fit(series, np.array(["down", "flat", "up"])[slope + 1]).save(tmp_path / "model")
    arrays = {name: getattr(series, name) for name in ("values", "times", "offsets", "start", "end", "static")}
    np.savez(tmp_path / "series.npz", **arrays)
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], check=True)
    answers = np.load(tmp_path / "answers.npz")
    np.testing.assert_array_equal(answers["outputs"], classifier.predictor_.outputs(series))
    np.testing.assert_array_equal(answers["probabilities"], classifier.predict_proba(series))
    np.testing.assert_array_equal(answers["labels"], classifier.predict(series))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_model_comes_back_as_it_was(tmp_path, name, dtype):
    series, _ = irregular(5)
    architecture = {"name": name, "channels": 2, "outputs": 3, "time_scale": 9.7, "hidden": 4}
    architecture["bandwidths"] = [0.3, 0.7] if name.startswith("mv") else [0.3]
    model = build_model(**architecture).to(dtype) if dtype == torch.float64 else build_model(**architecture)
    scaler = quick_classifier(epochs=1).fit(*irregular(12)).predictor_.scaler
    predictor = Predictor(
        "classification", architecture, model, scaler, series.channel_names, labels=np.array(["a", "b", "c"])
    )
    predictor.save(tmp_path / "model")
    state = torch.get_rng_state()
    loaded = Predictor.load(tmp_path / "model")
    assert torch.equal(state, torch.get_rng_state())
    np.testing.assert_array_equal(loaded.outputs(series), predictor.outputs(series))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["ja, ü \u2028", "no"], dtype=object),
        np.array([3, 70000]),
        np.array([3, 7], dtype=np.uint8),
        np.array([False, True]),
        np.array([1.0, 2.0]),
        np.array([1.0, 2.0], dtype=np.float32),
        np.array([2**60, 2**60 + 1]),
    ],
)
def test_labels_come_back_with_their_types(tmp_path, labels):
    values, slope = slopes(12)
    classifier = quick_classifier(epochs=1).fit(values, labels[slope % 2])
    classifier.save(tmp_path / "model")
    loaded = CDEClassifier.load(tmp_path / "model")
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert [type(label) for label in loaded.classes_.tolist()] == [type(label) for label in labels.tolist()]
    np.testing.assert_array_equal(loaded.classes_, labels)
    np.testing.assert_array_equal(loaded.predict(values), classifier.predict(values))


def test_a_predictor_prints_as_what_it_is():
    values, slope = slopes(12)
    classifier, regressor = quick_classifier(epochs=1).fit(values, slope), quick_regressor(epochs=1).fit(values, slope)
    assert re.fullmatch(
        r"Predictor\(gru, classification, 3 classes, 2 channels, \d+ parameters\)", repr(classifier.predictor_)
    )
    assert "regression, 1 target, 2 channels" in repr(regressor.predictor_)


def test_labels_that_json_cannot_hold_are_told(tmp_path):
    values, slope = slopes(12)
    predictor = quick_classifier(epochs=1).fit(values, slope).predictor_
    labels = np.array([("a", 1), ("b", 2), ("c", 3), None], dtype=object)[:3]
    with pytest.raises(ModelFileError, match="is a tuple; labels in a model file are text or numbers"):
        replace(predictor, labels=labels).save(tmp_path / "model")


def test_a_loaded_estimator_has_its_parameters_and_can_be_fitted_again(tmp_path):
    values, slope = slopes(12, channels=1)
    table = pd.DataFrame(values[:, 0], columns=[f"t{i}" for i in range(8)])
    recipe = Recipe(epochs=2, model={"hidden": 3})
    classifier = CDEClassifier("gru", recipe=recipe, class_weight={-1: 2.0, 0: 1.0, 1: 3.0}, random_state=4)
    classifier.fit(table, slope).save(tmp_path / "model")
    loaded = CDEClassifier.load(tmp_path / "model")
    assert loaded.get_params() == classifier.get_params()
    assert loaded.n_features_in_ == 8
    assert list(loaded.feature_names_in_) == list(table.columns)
    np.testing.assert_array_equal(loaded.predict_proba(table), classifier.predict_proba(table))
    np.testing.assert_array_equal(loaded.fit(table, slope).predict_proba(table), classifier.predict_proba(table))


def test_the_document_tells_versions_and_the_training(tmp_path):
    values, slope = slopes(12)
    quick_classifier().fit(values, slope).save(tmp_path / "model")
    document = json.loads((tmp_path / "model" / "model.json").read_text())
    assert document["versions"].keys() >= {"smoothcde", "torch", "numpy", "python"}
    assert len(document["record"]["epochs"]) == 3
    assert document["architecture"]["name"] == "gru"
    assert document["labels"]["values"] == [-1, 0, 1]


def test_an_estimator_of_the_other_kind_is_named(tmp_path):
    values, slope = slopes(12)
    quick_regressor(epochs=1).fit(values, slope).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"holds a model for regression.*load it with CDERegressor"):
        CDEClassifier.load(tmp_path / "model")
    assert CDERegressor.load(tmp_path / "model").predict(values).shape == (12,)


def _break(document, path, value):
    *parents, last = path
    for key in parents:
        document = document[key]
    document[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["task"], "os.system"),
        (["dtype"], "load"),
        (["architecture", "name"], "../../model"),
        (["architecture", "name"], "os.system"),
        (["architecture", "hidden"], 10**12),
        (["architecture", "hidden"], "many"),
        (["architecture", "surprise"], 1),
        (["architecture", "time_scale"], -1.0),
        (["architecture", "channels"], 3),
        (["labels"], None),
        (["labels", "dtype"], "O8"),
        (["labels", "dtype"], "bool"),
        (["labels", "values"], [0, 1]),
        (["labels", "values"], [[0], [1], [2]]),
        (["channels", "mean"], [0.0]),
        (["channels", "scale"], [0.0, 1.0]),
        (["channels", "names"], [1, 2]),
        (["temperature"], 0.0),
        (["temperature"], "hot"),
        (["static"], {"names": ["age"], "mean": [0.0], "scale": [1.0]}),
        (["record"], None),
    ],
)
def test_a_document_that_describes_no_model_is_refused(tmp_path, path, value):
    values, slope = slopes(12)
    quick_classifier(epochs=1).fit(values, slope).save(tmp_path / "model")
    contents = read_directory(tmp_path / "model")
    _break(contents.document, path, value)
    write_directory(tmp_path / "model", contents)
    with pytest.raises(ModelFileError, match="does not describe a model"):
        Predictor.load(tmp_path / "model")


def test_weights_of_another_model_are_refused(tmp_path):
    values, slope = slopes(12)
    quick_classifier(epochs=1).fit(values, slope).save(tmp_path / "model")
    contents = read_directory(tmp_path / "model")
    tensors = dict(contents.tensors)
    tensors["readout.bias"] = torch.zeros(7)
    write_directory(tmp_path / "model", Contents(contents.document, tensors))
    with pytest.raises(ModelFileError, match=r"weight readout.bias has shape \(7,\), the architecture asks for \(3,\)"):
        Predictor.load(tmp_path / "model")


@pytest.mark.parametrize("model", ["mvc-gp", "mvc-kernel", "cubic", "gru-d"])
# Products of single precision round by the size of the batch, and a solver with a tolerance of 1e-2 passes that on.
@pytest.mark.parametrize(("precision", "tolerance"), [("32-true", 1e-4), ("64-true", 1e-9)])
def test_one_series_at_a_time_is_the_same_as_all_at_once(model, precision, tolerance):
    series, slope = irregular(12)
    classifier = quick_classifier(model, epochs=2, precision=precision).fit(series, slope)
    together = classifier.predict_proba(series)
    alone = np.concatenate([classifier.predict_proba(series[i]) for i in range(12)])
    np.testing.assert_allclose(alone, together, atol=tolerance, rtol=0)
    labels = [classifier.predict(series[i])[0] for i in range(12)]
    np.testing.assert_array_equal(labels, classifier.predict(series))


def test_more_series_than_a_batch_holds(monkeypatch):
    series, slope = irregular(12)
    classifier = quick_classifier().fit(series, slope)
    together = classifier.predict_proba(series)
    monkeypatch.setattr("smoothcde.estimators.predictor.BATCH_SIZE", 5)
    np.testing.assert_allclose(classifier.predict_proba(series), together, atol=1e-6)
    assert classifier.predictor_.outputs(series[:0]).shape == (0, 3)


def test_solve_gives_the_batch_and_all_the_model_says():
    series, slope = irregular(12)
    predictor = quick_classifier("mvc-gp", epochs=1, bandwidths=(0.2, 0.8)).fit(series, slope).predictor_
    batch, outcome = predictor.solve(series[:3])
    assert len(batch) == 3
    assert outcome.attention is not None
    assert outcome.attention.shape[:2] == (3, 2)
    np.testing.assert_allclose(outcome.outputs.numpy(), predictor.outputs(series)[:3], atol=1e-5)


def test_a_regression_has_no_probabilities():
    values, slope = slopes(12)
    predictor = quick_regressor(epochs=1).fit(values, slope).predictor_
    with pytest.raises(ValueError, match="has no probabilities; use `predict`"):
        predictor.probabilities(SeriesSet.from_arrays(values))
