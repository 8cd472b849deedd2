"""Slopes of Gaussian process paths in compiled code equal torch's, gradients included."""

import pytest
import torch

from smoothcde.native import chebyshev, without_compiled_code
from smoothcde.paths import GPPath
from smoothcde.series import SeriesSet

# Series, stamps, channels, bandwidth, moments: less than a block of moments and several, one channel and many.
SHAPES = [(4, 30, 3, 2.0, 6), (1, 9, 1, 0.4, 1), (7, 12, 20, 5.0, 19), (300, 25, 2, 0.5, 8)]


def path_of(n, stamps, channels, bandwidth, dtype=torch.float32):
    draw = torch.Generator().manual_seed(1)
    times = torch.rand(n, stamps, generator=draw, dtype=torch.float64).sort(dim=1).values * 10
    values = torch.randn(n, channels, stamps, generator=draw, dtype=torch.float64)
    series = SeriesSet.from_arrays(list(values.numpy()), list(times.numpy()))
    return GPPath.fit(series.batch(dtype=dtype), bandwidth, 0.1)


def moments_of(path, count):
    """Inside the windows, at their ends, and beyond."""
    share = torch.rand(path.rows, count, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 1.2 - 0.1
    share[0, 0], share[-1, -1] = 0.0, 1.0
    return torch.minimum(path.start[:, None] + share * (path.end - path.start)[:, None], path.end[:, None] + 0.5)


@pytest.mark.parametrize("shape", SHAPES)
def test_slopes_and_gradients_are_those_of_double_precision(shape):
    *sizes, count = shape
    path = path_of(*sizes)
    moments = moments_of(path, count)
    slopes = path.slopes.requires_grad_()
    found = path.derivative(moments)
    assert type(found.grad_fn).__name__ == "_PolynomialsBackward"
    exact = path.slopes.detach().double().requires_grad_()
    expected = type(path)(**{**vars(path), "slopes": exact, "coefficients": exact}).derivative(moments)
    size = float(expected.detach().abs().max())
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-6 * size)
    assert ((found == 0).all(dim=2) | ((moments >= path.start[:, None]) & (moments <= path.end[:, None]))).all()
    g = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    (one,), (other,) = torch.autograd.grad(found, slopes, g), torch.autograd.grad(expected, exact, g.double())
    torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


def test_plain_torch_gives_the_same_and_is_further_off():
    path = path_of(20, 40, 2, 0.5)
    moments = moments_of(path, 12)
    exact = type(path)(**{**vars(path), "slopes": path.slopes.double(), "coefficients": path.slopes.double()})
    with without_compiled_code():
        plain = path.derivative(moments)
    off = [(found.double() - exact.derivative(moments)).abs().max() for found in (path.derivative(moments), plain)]
    assert off[0] < off[1] < 1e-3 * plain.abs().max()


def test_second_derivatives_are_those_of_torch():
    path = path_of(3, 8, 2, 3.0)
    moments, weights = moments_of(path, 4), path.slopes.detach().clone().requires_grad_()

    def curvature():
        slopes = type(path)(**{**vars(path), "slopes": weights}).derivative(moments)
        (first,) = torch.autograd.grad(slopes.pow(3).sum(), weights, create_graph=True)
        return torch.autograd.grad(first.square().sum(), weights)[0]

    found = curvature()
    with without_compiled_code():
        torch.testing.assert_close(found, curvature(), rtol=1e-3, atol=1e-3 * float(found.abs().max()))


def test_moments_that_want_a_gradient_are_left_to_torch():
    path = path_of(2, 9, 2, 2.0)
    shares = torch.tensor([[0.2, 0.5, 0.7], [0.3, 0.4, 0.8]], dtype=torch.float64)
    moments = (path.start[:, None] + shares * (path.end - path.start)[:, None]).requires_grad_()
    (found,) = torch.autograd.grad(path.derivative(moments).sum(), moments)
    expected = path.derivative(moments.detach(), order=2).sum(dim=2).double()
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))


def test_a_row_does_not_depend_on_its_neighbours_to_the_last_bit():
    path = path_of(500, 25, 3, 0.5)
    moments = moments_of(path, 6)
    assert path.rows * 6 * path.slopes.shape[2] * 3 > chebyshev.FEW
    assert torch.equal(path.derivative(moments)[7:9], path.select([7, 8]).derivative(moments[7:9]))


@pytest.mark.parametrize("columns", [256, 36, 1])
@pytest.mark.parametrize("shape", [(5, 9, 13), (1, 1, 1), (300, 30, 3)])
def test_squared_sums_are_those_of_double_precision(shape, columns):
    draw = torch.Generator().manual_seed(4)
    coefficients = torch.randn(shape, generator=draw) * 1e15  # whose squares no float32 holds, once summed
    features = torch.randn(shape[1], columns, generator=draw) * 1e8
    expected = torch.einsum("rkc,km->rmc", coefficients.double(), features.double()).square().sum(dim=2)
    found = chebyshev.squared_sums(coefficients, features)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6 * float(expected.max()))
    alone = chebyshev.squared_sums(coefficients[-1:], features)
    assert torch.equal(found[-1:], alone)
