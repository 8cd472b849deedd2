"""Graphs of frozen predictors: the same answers as the predictor's, in torch and in onnxruntime."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from smoothcde.data import ChannelScaler
from smoothcde.estimators import Predictor
from smoothcde.estimators.scaling import ColumnScaler
from smoothcde.export import ScoringGraph, export_onnx, export_torch, graph_inputs
from smoothcde.models import build_model
from smoothcde.series import SeriesSet
from smoothcde.solve import StepPlan

LENGTH, LONGEST = 14, 6.0


def irregular(n=12, seed=0, together=False):
    """Series of two channels in units of their own, with own stamps, windows and, unless together, missing values."""
    generator = np.random.default_rng(seed)
    values, times, start, end = [], [], [], []
    for _ in range(n):
        t = np.sort(generator.uniform(0, generator.uniform(3, 5.4), size=generator.integers(5, LENGTH + 1)))
        waves = 20 + 7 * np.sin(np.outer([0.7, 1.3], t) + generator.uniform(0, 6, (2, 1)))
        if not together:
            waves[generator.random(waves.shape) < 0.3] = np.nan
        values.append(waves)
        times.append(t + 1000)
        start.append(999.8 + t[0] * (generator.random() < 0.5))
        end.append(1000 + t[-1] + generator.uniform(0, 0.3))
    static = generator.normal(3, 2, size=(n, 1))
    return SeriesSet.from_arrays(values, times, window=(start, end), static=static)


def predictor(name, task="classification", **settings):
    """An untrained one; what it says does not matter, only that all say the same."""
    torch.manual_seed(0)
    views = {"bandwidths": (0.3, 0.8), "encoder_width": 4} if name.startswith("mv") else {"bandwidths": (0.4,)}
    architecture = {"name": name, "channels": 2, "outputs": 3, "time_scale": LONGEST, "hidden": 5, "width": 6}
    architecture |= {"static": 1, "noise": 0.1, **views, **settings}
    series = irregular()
    answers = {"labels": np.array(["a", "b", "c"]), "temperature": 1.7}
    if task == "regression":
        answers = {"targets": ColumnScaler(np.arange(3.0), np.array([1.0, 10.0, 0.1])), "target_names": ("x", "y", "z")}
    ends = ((0.3, 0.6, 1.0), (0.5, 1.0))[: len(architecture["bandwidths"])]
    return Predictor(
        task=task,
        architecture=architecture,
        model=build_model(**architecture).eval(),
        scaler=ChannelScaler.fit(series),
        channel_names=series.channel_names,
        static_names=series.static_names,
        static_scaler=ColumnScaler.fit(series.static),
        plan=StepPlan(ends, (1.0,) * len(ends), "bosh3", 0.05, 0.05, 1.0, 1.0, 12),
        **answers,
    )


def planned_answers(found, series):
    """What the predictor says by its plan alone, and which series it flags."""
    flagged = found.flagged(series)
    assert not flagged.all()
    answers = found.probabilities(series) if found.task == "classification" else found.predict(series)
    return answers, flagged


CASES = {
    "mvc-gp": ("mvc-gp", {"encoder_inputs": "values+mask+gap", "count_channels": True, "time_channel": True}),
    "mv-gp": ("mv-gp", {}),
    "gp": ("gp", {"count_channels": True}),
    "mvc-kernel": ("mvc-kernel", {"time_channel": True}),
    "gp with integrals": ("gp", {"time_channel": True, "time_unit": 0.2, "integral_channels": True}),
    "cauchy kernel": ("kernel", {"kernel": "cauchy"}),
}


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("case", CASES)
def test_a_graph_says_what_its_predictor_says(case, task):
    """With missing values, unequal lengths and windows, static features and units."""
    name, settings = CASES[case]
    found, series = predictor(name, task, **settings), irregular(seed=1)
    graph = ScoringGraph(found, LENGTH + 2, LONGEST)
    with torch.no_grad():
        answers, ratio, outside = graph(**{k: torch.as_tensor(v) for k, v in graph_inputs(graph, series).items()})
    expected, flagged = planned_answers(found, series)
    assert outside.tolist() == flagged.tolist() == (~(ratio.numpy() <= 1)).tolist()
    assert_allclose(answers[~outside], expected[~flagged], rtol=1e-4, atol=1e-5)


def test_channels_that_are_observed_together_need_one_system():
    found, series = predictor("mv-gp"), irregular(seed=1, together=True)
    answers = []
    for together in (False, True):
        graph = ScoringGraph(found, LENGTH, LONGEST, together=together)
        with torch.no_grad():
            inputs = {k: torch.as_tensor(v) for k, v in graph_inputs(graph, series).items()}
            answers.append(graph(**inputs)[0])
    assert inputs["mask"].ndim == 2
    assert_allclose(answers[0], answers[1], rtol=1e-5)


def test_windows_longer_than_the_graph_was_made_for_are_outside():
    found, series = predictor("gp"), irregular(seed=1)
    graph = ScoringGraph(found, LENGTH, longest=4.0)
    with torch.no_grad():
        outside = graph(**{k: torch.as_tensor(v) for k, v in graph_inputs(graph, series).items()})[2].numpy()
    assert outside[series.end - series.start > 4.0].all()
    assert not outside.all()


@pytest.fixture(scope="module", params=["mvc-gp"])
def files(request, tmp_path_factory):
    """A predictor, its graph, and an ONNX file of it."""
    pytest.importorskip("onnxruntime")
    name, settings = CASES[request.param]
    found = predictor(name, **settings)
    found = replace(found, plan=replace(found.plan, ends=((0.6, 1.0), (1.0,))))
    file = tmp_path_factory.mktemp("onnx") / "model.onnx"
    return found, export_onnx(found, file, length=LENGTH, longest=LONGEST), file


def test_onnxruntime_says_what_torch_says_for_any_number_of_series(files):
    import onnxruntime

    found, graph, file = files
    session = onnxruntime.InferenceSession(file)
    for n in (1, 2, 7):
        series = irregular(n, seed=n)
        inputs = graph_inputs(graph, series)
        with torch.no_grad():
            expected = graph(**{k: torch.as_tensor(v) for k, v in inputs.items()})
        answers, ratio, outside = session.run(["answers", "error_ratio", "outside"], inputs)
        assert_allclose(answers, expected[0], atol=1e-4)
        assert_allclose(ratio, expected[1], rtol=1e-3)
        assert outside.tolist() == expected[2].tolist()
        if not outside.all():
            assert_allclose(answers[~outside], found.probabilities(series)[~outside], atol=1e-4)


def test_an_onnx_file_describes_itself(files):
    import onnxruntime

    found, _, file = files
    about = onnxruntime.InferenceSession(file).get_modelmeta().custom_metadata_map
    assert json.loads(about["channels"]) == list(found.channel_names)
    assert "a" in about["labels"]
    assert json.loads(about["length"]) == LENGTH
    assert float(about["rtol"]) == found.plan.rtol
    assert set(json.loads(about["inputs"])) >= {"values", "times", "mask", "lengths", "start", "end"}
    assert "torch" in json.loads(about["versions"])


def test_a_torch_program_says_the_same(tmp_path):
    found, series = predictor("kernel"), irregular(5, seed=3)
    found = replace(found, plan=replace(found.plan, ends=((1.0,),)))
    graph = export_torch(found, tmp_path / "model.pt2", length=LENGTH, longest=LONGEST)
    program = torch.export.load(tmp_path / "model.pt2").module()
    inputs = {k: torch.as_tensor(v) for k, v in graph_inputs(graph, series).items()}
    with torch.no_grad():
        for n in (1, 5):
            some = {k: v[:n] for k, v in inputs.items()}
            assert_allclose(program(**some)[0], graph(**some)[0], rtol=1e-6)


def test_wrong_use_is_explained(tmp_path):
    found = predictor("gp")
    with pytest.raises(ValueError, match=r"make them with predictor.frozen\(calibration_series\)"):
        ScoringGraph(replace(found, plan=None), LENGTH)
    with pytest.raises(ValueError, match="length is 0"):
        ScoringGraph(found, 0)
    with pytest.raises(ValueError, match="graphs have Gaussian process and kernel paths only"):
        ScoringGraph(predictor("cubic"), LENGTH)
    with pytest.raises(ValueError, match="kink at every stamp"):
        ScoringGraph(predictor("linear"), LENGTH)
    with pytest.raises(ValueError, match="unknowns, more than 400"):
        ScoringGraph(found, LENGTH, longest=1e4)
    with pytest.raises(ValueError, match="the graph was made for 6; thin it out"):
        graph_inputs(ScoringGraph(found, 6), irregular())
    with pytest.raises(ValueError, match="export again with together=False"):
        graph_inputs(ScoringGraph(found, LENGTH, together=True), irregular())
    with pytest.raises(ValueError, match="nothing is outside them"):
        replace(found, plan=None).flagged(irregular())


def test_a_plan_is_kept_with_the_model(tmp_path):
    found, series = predictor("mvc-gp"), irregular(seed=5)
    found.save(tmp_path / "model")
    again = Predictor.load(tmp_path / "model")
    assert again.plan == found.plan
    assert_allclose(again.probabilities(series), found.probabilities(series))
    assert again.flagged(series).tolist() == found.flagged(series).tolist()


@pytest.mark.slow
@pytest.mark.skipif("SMOOTHCDE_DATA" not in os.environ, reason="set SMOOTHCDE_DATA to a folder with UEA data")
def test_frozen_steps_serve_recorded_gestures():
    """99% of unseen series within ten tolerances of the adaptive solution, 99.5% of predictions alike."""
    from smoothcde import CDEClassifier, load_uea
    from smoothcde.solve.plan import distance

    train, labels = load_uea("UWaveGestureLibrary", "train")
    test, _ = load_uea("UWaveGestureLibrary", "test")
    classifier = CDEClassifier(
        hidden=64, bandwidths=(0.1, 0.2, 0.4), noise=0.05, epochs=25, batch_size=32, rtol=1e-3, atol=1e-3,
        random_state=0, validation_fraction=0.0,
    ).fit(train, labels)  # fmt: skip
    adaptive = classifier.predictor_
    frozen = adaptive.frozen(train)
    assert (frozen.predict(test) == adaptive.predict(test)).mean() >= 0.995
    model, batch = adaptive.model, adaptive.prepare(test).batch()
    with torch.no_grad():
        begun = model.begin(batch)
        state = frozen.plan.follow(begun.term, begun.z0).state
        fine = model.solve(batch, options=replace(model.options, rtol=1e-5, atol=1e-5)).solution.state
    off = distance(state, fine, (1e-3, 1e-3)).reshape(3, -1).max(axis=0)
    assert (off <= 10).mean() >= 0.99
    assert frozen.flagged(test).mean() < 0.05
    assert frozen.flagged(replace(test, values=test.values * 10)).mean() >= 0.99
