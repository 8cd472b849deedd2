"""Paths of all views in one go by compiled code equal torch's, gradients included."""

import numpy as np
import pytest
import torch

from smoothcde.native import gp_paths, without_compiled_code
from smoothcde.paths import ExactGPPath, GPPath
from smoothcde.paths.gp import LONG_SERIES
from smoothcde.series import SeriesSet

BANDWIDTHS = (0.8, 1.5, 4.0)
# Series, stamps, channels, on a common grid: with fewer and more channels and series than go together.
SHAPES = {
    "ragged": (7, 60, 3, False),
    "aligned": (7, 60, 3, True),
    "a single one": (1, 60, 1, False),
    "fewer stamps than polynomials": (5, 12, 2, True),
    "wide": (2, 70, 17, True),
    "many": (300, 60, 2, True),
}


def batch_of(n, stamps, channels, aligned, missing=(), dtype=torch.float32):
    draw = np.random.default_rng(n)
    times = [np.sort(draw.uniform(0, 10, stamps)) for _ in range(n)]
    values = draw.standard_normal((n, channels, stamps))
    for stamp in missing:
        values[:, :, stamp] = np.nan
    return SeriesSet.from_arrays(list(values), [times[0]] * n if aligned else times).batch(dtype=dtype)


def attention(batch):
    n, stamps, _ = batch.values.shape
    scores = torch.randn(n, len(BANDWIDTHS), stamps, generator=torch.Generator().manual_seed(5))
    return (2 * scores).softmax(dim=2).requires_grad_()


def compiled(path) -> bool:
    return type(path.coefficients.grad_fn.next_functions[0][0]).__name__ == "_PathsBackward"


def gradients(path, weights):
    draw = torch.Generator().manual_seed(6)
    outputs = [path.coefficients, path.slopes]
    g = [torch.randn(part.shape, generator=draw).to(part.dtype) for part in outputs]
    return torch.autograd.grad(outputs, weights, g)[0]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("settings", [{}, {"prior_mean": 0.7, "prior_scale": 1.5}], ids=["usual prior", "another"])
def test_paths_slopes_and_gradients_are_those_of_torch_in_double_precision(shape, settings):
    batch = batch_of(*shape, missing=(3, 4))
    weights = attention(batch)
    found = GPPath.fit(batch, BANDWIDTHS, 0.1, weights, **settings)
    assert compiled(found)
    with torch.no_grad():
        again = GPPath.fit(batch, BANDWIDTHS, 0.1, weights, **settings)
        assert torch.equal(again.coefficients, found.coefficients)
        assert torch.equal(again.slopes, found.slopes)
    precise = weights.detach().double().requires_grad_()
    with without_compiled_code():
        double = batch_of(*shape, missing=(3, 4), dtype=torch.float64)
        expected = GPPath.fit(double, BANDWIDTHS, 0.1, precise, **settings)
    for one, other in ((found.coefficients, expected.coefficients), (found.slopes, expected.slopes)):
        torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-6 * float(other.detach().abs().max()))
    for name in ("start", "end", "panel", "longest"):
        assert torch.equal(getattr(found, name), getattr(expected, name))
    one, other = gradients(found, weights), gradients(expected, precise)
    torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-6 * float(other.detach().abs().max()))


def test_without_weights_every_observation_counts_alike():
    batch = batch_of(4, 60, 2, aligned=False, missing=(0, 59))
    found = GPPath.fit(batch, BANDWIDTHS, (0.1, 0.2, 0.4))
    exact = ExactGPPath.fit(batch, BANDWIDTHS, (0.1, 0.2, 0.4))
    for share in (0.1, 0.5, 0.95):
        times = exact.start + share * (exact.end - exact.start)
        torch.testing.assert_close(found.evaluate(times).double(), exact.evaluate(times), rtol=0, atol=2e-5)


def test_second_derivatives_are_those_of_torch():
    batch = batch_of(2, 60, 2, aligned=False)
    weights = attention(batch)

    def curvature():
        path = GPPath.fit(batch, BANDWIDTHS, 0.3, weights)
        (first,) = torch.autograd.grad(path.slopes.square().sum(), weights, create_graph=True)
        return torch.autograd.grad(first.square().sum(), weights)[0]

    found = curvature()
    with without_compiled_code():
        expected = curvature()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("aligned", [True, False])
def test_long_series_are_gone_through_in_parts(aligned):
    shape = (2, LONG_SERIES + 321, 2, aligned)
    batch, double = batch_of(*shape, missing=(3, 4)), batch_of(*shape, missing=(3, 4), dtype=torch.float64)
    weights = attention(batch)
    precise = weights.detach().double().requires_grad_()
    found, expected = (
        GPPath.fit(batch, (1.5, 2.0, 4.0), 0.1, weights),
        GPPath.fit(double, (1.5, 2.0, 4.0), 0.1, precise),
    )
    assert found.coefficients.shape[1] == 1
    assert expected.coefficients.shape[1] > 1  # panels
    times = found.times_at(np.linspace(0, 1, 101).tolist())
    one, other = found.evaluate(times), expected.evaluate(times)
    torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-6 * float(other.detach().abs().max()))
    one, other = (torch.autograd.grad(x.square().sum(), w)[0] for x, w in ((one, weights), (other, precise)))
    torch.testing.assert_close(one.double(), other, rtol=0, atol=1e-5 * float(other.abs().max()))


def test_rows_do_not_hang_on_their_neighbours():
    batch, few = batch_of(9, 60, 3, aligned=False), torch.tensor([2, 5])
    counts = (40, 20, 12)
    whole = GPPath.fit(batch, BANDWIDTHS, 0.1, nodes=counts).coefficients.unflatten(0, (3, -1))
    alone = GPPath.fit(batch.select(few), BANDWIDTHS, 0.1, nodes=counts).coefficients.unflatten(0, (3, -1))
    assert torch.equal(alone, whole[:, few])


def test_a_series_without_observations_is_the_prior():
    batch = batch_of(3, 40, 2, aligned=True, missing=range(40))
    path = GPPath.fit(batch, BANDWIDTHS, 0.1, attention(batch), prior_mean=0.5)
    assert torch.equal(path.evaluate(3.0), torch.full((9, 2), 0.5))
    assert not path.derivative(3.0).any()


def test_what_it_gives_no_gradient_to_is_left_to_torch():
    batch = batch_of(3, 60, 2, aligned=False)
    weights, noise = attention(batch), torch.tensor(0.1, requires_grad=True)
    assert torch.autograd.grad(GPPath.fit(batch, BANDWIDTHS, noise, weights).coefficients.sum(), noise)[0]
    assert GPPath.fit(batch, BANDWIDTHS, 0.1, weights, variance=True).covariance is not None
    assert not compiled(GPPath.fit(batch, BANDWIDTHS, 0.1, weights, nodes=gp_paths.MOST + 1))
    batch.mask[1, 7, 1] = False  # a channel with stamps of its own
    apart = batch.select(torch.arange(3))
    assert not compiled(GPPath.fit(apart, BANDWIDTHS, 0.1, weights))
