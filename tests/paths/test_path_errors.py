"""What paths say when they are asked for something that makes no sense."""

import numpy as np
import pytest
import torch

from smoothcde.paths import ExactGPPath, GPPath, JoinedPath, KernelPath, LinearPath, SmoothingSplinePath, TimePath
from smoothcde.paths.base import view_weights
from smoothcde.series import SeriesSet


@pytest.fixture
def batch():
    return SeriesSet.from_arrays(np.random.default_rng(0).standard_normal((3, 2, 5))).batch()


FITS = {
    "kernel": lambda batch, h: KernelPath.fit(batch, h),
    "gp": lambda batch, h: GPPath.fit(batch, h, 0.1),
    "exact gp": lambda batch, h: ExactGPPath.fit(batch, h, 0.1),
}


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), (1.0, -2.0)], ids=str)
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_bandwidth_is_positive_and_finite(batch, fit, value):
    with pytest.raises(ValueError, match=r"bandwidth is .*; it must be positive and finite"):
        fit(batch, value)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")], ids=str)
def test_noise_and_prior_scale_are_positive_and_finite(batch, value):
    for cls in (GPPath, ExactGPPath):
        with pytest.raises(ValueError, match=r"noise is .*; it must be positive and finite"):
            cls.fit(batch, 1.0, value)
    with pytest.raises(ValueError, match=r"prior_scale is .*; it must be positive and finite"):
        GPPath.fit(batch, 1.0, 0.1, prior_scale=value)


def test_settings_are_one_number_or_one_per_view(batch):
    weights = torch.ones(3, 2, 5)
    with pytest.raises(ValueError, match=r"bandwidth has shape \(3,\); give one number, or one per view \(2\)"):
        GPPath.fit(batch, (1.0, 2.0, 3.0), 0.1, weights)
    with pytest.raises(ValueError, match=r"noise has shape \(3,\); give one number, or one per view \(2\)"):
        GPPath.fit(batch, 1.0, (0.1, 0.2, 0.3), weights)
    with pytest.raises(ValueError, match=r"bandwidth has shape \(2,\); give one number, or one per view \(3\)"):
        GPPath.fit(batch, (1.0, 2.0), (0.1, 0.2, 0.3))
    with pytest.raises(ValueError, match=r"bandwidth has shape \(1, 2\)"):
        KernelPath.fit(batch, [[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"nodes is \(10, 20\); give one positive number, or one per view \(1\)"):
        GPPath.fit(batch, 1.0, 0.1, nodes=(10, 20))
    with pytest.raises(ValueError, match=r"nodes is 0; give one positive number"):
        GPPath.fit(batch, 1.0, 0.1, nodes=0)


def test_weights_have_one_number_per_series_view_and_stamp(batch):
    for weights in (torch.ones(3, 2, 4), torch.ones(2, 2, 5)):
        for fit in (
            lambda w: KernelPath.fit(batch, 1.0, w),
            lambda w: GPPath.fit(batch, 1.0, 0.1, w),
            lambda w: ExactGPPath.fit(batch, 1.0, 0.1, w),
        ):
            with pytest.raises(ValueError, match=r"weights have shape .*; expected .* = \[3, views, 5\]"):
                fit(weights)
    with pytest.raises(ValueError, match=r"weights have shape \(3, 5\); expected \[n, views, length\]"):
        view_weights(torch.ones(3, 5), batch)


def test_unknown_kernels_are_told_the_known_ones(batch):
    known = "'gaussian', 'laplacian', 'cauchy', 'epanechnikov', 'tricube'"
    with pytest.raises(ValueError, match=f"kernel is 'box'; use any of: {known}"):
        KernelPath.fit(batch, 1.0, kernel="box")


@pytest.mark.parametrize("shape", [(2,), (4, 3), (3, 1, 1)], ids=str)
def test_times_are_a_number_or_one_or_several_per_row(batch, shape):
    path = LinearPath.fit(batch)
    for ask in (path.evaluate, path.derivative, GPPath.fit(batch, 1.0, 0.1, variance=True).variance):
        with pytest.raises(ValueError, match=r"times have shape .*; give a number, one time per row \(3,\)"):
            ask(torch.zeros(shape))


@pytest.mark.parametrize("order", [0, -1])
def test_a_derivative_has_order_one_or_more(batch, order):
    with pytest.raises(ValueError, match=f"order is {order}; .* at least 1, use evaluate"):
        LinearPath.fit(batch).derivative(1.0, order)


def test_variance_must_be_asked_for_when_fitting(batch):
    with pytest.raises(ValueError, match=r"fitted without its variance; call GPPath.fit\(..., variance=True\)"):
        GPPath.fit(batch, 1.0, 0.1).variance(1.0)


def test_joined_paths_have_the_same_rows(batch):
    one, two = GPPath.fit(batch, 1.0, 0.1), GPPath.fit(batch, (1.0, 2.0), 0.1)
    with pytest.raises(ValueError, match=r"paths with \[3, 6\] rows cannot be joined; fit them to the same batch"):
        JoinedPath.of(two, one)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")], ids=str)
def test_a_time_channels_scale_is_positive(batch, scale):
    with pytest.raises(ValueError, match=r"scale is .*; it must be positive"):
        TimePath.beside(LinearPath.fit(batch), scale)


@pytest.mark.parametrize("smoothing", [-0.1, float("nan")], ids=str)
def test_smoothing_is_not_negative(batch, smoothing):
    with pytest.raises(ValueError, match=r"smoothing is .*; it must be zero or positive"):
        SmoothingSplinePath.fit(batch, smoothing)


def test_windows_in_another_unit_than_the_bandwidth_are_refused_before_they_take_all_memory():
    batch = SeriesSet.from_arrays(np.ones((1, 1, 3)), [0.0, 3600.0, 720000.0]).batch()
    with pytest.raises(ValueError, match=r"bandwidth of 1 on a window of 720000 needs .* nodes.*same unit of time"):
        GPPath.fit(batch, 1.0, 0.01)


def test_a_variance_on_a_long_window_is_refused_with_the_way_out(batch):
    GPPath.fit(batch, 0.001, 0.1)
    with pytest.raises(ValueError, match=r"a bandwidth of 0.001 on a window of 4 needs .* or fit without variance"):
        GPPath.fit(batch, 0.001, 0.1, variance=True)
