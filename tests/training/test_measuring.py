"""Measuring: the share of right labels, and evaluations counted the paper's way and ours."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from smoothcde.models import build_model
from smoothcde.series import SeriesSet
from smoothcde.training import measure_classifier

VALUES = np.random.default_rng(0).normal(size=(10, 2, 9)).cumsum(axis=2)
SERIES = SeriesSet.from_arrays([values[:, : 5 + i % 5] for i, values in enumerate(VALUES)])


def model_of(name="mvc-gp", **settings):
    torch.manual_seed(0)
    several = {"encoder_width": 6, "bandwidths": (0.1, 0.5)} if name.startswith("mv") else {}
    sizes = {"channels": 2, "outputs": 3, "time_scale": 8.0, "hidden": 6, "width": 6}
    return build_model(name, **(sizes | several | settings))


def predictions(model):
    with torch.no_grad():
        return model(SERIES.batch()).argmax(dim=1).numpy()


def test_accuracy_is_the_share_of_right_labels():
    model = model_of()
    labels = predictions(model)
    assert measure_classifier(model, SERIES, labels).accuracy == 1.0
    labels[:3] = (labels[:3] + 1) % 3
    assert measure_classifier(model, SERIES, labels).accuracy == pytest.approx(0.7)
    assert measure_classifier(model, SERIES, labels, batch_size=4).accuracy == pytest.approx(0.7)


@pytest.mark.parametrize("name", ["linear", "gp", "mvc-gp"])
def test_row_nfe_is_the_mean_over_series_and_views(name):
    model = model_of(name)
    with torch.no_grad():
        nfe = model.solve(SERIES.batch()).solution.stats.nfe
    assert len(nfe) == 10 * model.views
    assert measure_classifier(model, SERIES, np.zeros(10, int)).row_nfe == pytest.approx(nfe.mean())


@pytest.mark.parametrize("name", ["linear", "mvc-gp"])
def test_joint_nfe_is_the_cost_of_a_batch_with_one_step_size_and_kinks_stepped_over(name):
    model = model_of(name)
    joint = replace(model.options, step_control="joint", knots="step_over")
    costs = []
    for chosen in np.array_split(np.arange(10), 3):
        with torch.no_grad():
            nfe = model.solve(SERIES.batch(chosen), options=joint).solution.stats.nfe
        assert len(set(nfe)) == 1  # every row pays what the stiffest costs
        costs.append(nfe[0])
    assert measure_classifier(model, SERIES, np.zeros(10, int), batch_size=4).joint_nfe == pytest.approx(np.mean(costs))


def test_a_model_in_float64_is_measured_too():
    measured = measure_classifier(model_of().double(), SERIES, predictions(model_of()))
    assert measured.accuracy == 1.0


def test_no_gradient_is_kept():
    model = model_of()
    measure_classifier(model, SERIES, np.zeros(10, int))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_as_many_labels_as_series_are_needed():
    with pytest.raises(ValueError, match="there are 10 series and 12 labels; give one label per series"):
        measure_classifier(model_of(), SERIES, np.zeros(12, int))
