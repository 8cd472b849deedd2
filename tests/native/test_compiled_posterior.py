"""Posterior means in compiled code equal torch's, gradients included."""

import numpy as np
import pytest
import torch

from smoothcde.native import posterior, without_compiled_code
from smoothcde.paths import GPPath
from smoothcde.series import SeriesSet

# Series, stamps, channels, bandwidths: one polynomial and many, stamps of their own and a common grid, many channels.
SHAPES = {
    "ragged": (7, 30, 3, (1.0, 4.0), False),
    "aligned": (7, 30, 3, (1.0, 4.0), True),
    "a single one": (1, 40, 1, (2.0,), False),
    "wide": (2, 12, 17, (9.0,), True),
    "many": (300, 25, 2, (0.5, 1.0, 2.0), True),
}


def batch_of(n, stamps, channels, aligned, missing=False):
    rng = np.random.default_rng(n)
    times = [np.sort(rng.uniform(0, 10, stamps)) for _ in range(n)]
    times = [times[0]] * n if aligned else times
    values = rng.standard_normal((n, channels, stamps))
    if missing:
        values[:, :, 3] = np.nan
    return SeriesSet.from_arrays(list(values), times).batch(dtype=torch.float64)


def fit(shape, weights=None, **options):
    n, stamps, channels, bandwidth, aligned = shape
    return GPPath.fit(batch_of(n, stamps, channels, aligned), bandwidth, 0.1, weights, **options)


def attention(shape):
    n, stamps, _, bandwidth, _ = shape
    draw = torch.Generator().manual_seed(5)
    return torch.rand(n, len(bandwidth), stamps, generator=draw, dtype=torch.float64).softmax(dim=2).requires_grad_()


def node_of(tensor, name) -> bool:
    """Whether a node is in the graph behind a tensor."""
    ahead, seen = [tensor.grad_fn], set()
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if type(node).__name__ == name:
            return True
        ahead += [before for before, _ in node.next_functions]
    return False


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_paths_and_gradients_are_those_of_torch(shape):
    weights = attention(shape)
    found = fit(shape, weights)
    assert node_of(found.coefficients, "_MeansBackward")
    with torch.no_grad():
        assert torch.equal(fit(shape, weights).coefficients, found.coefficients)
    with without_compiled_code():
        expected = fit(shape, weights)
    assert not node_of(expected.coefficients, "_MeansBackward")
    torch.testing.assert_close(found.coefficients, expected.coefficients, rtol=0, atol=1e-10)
    g = torch.randn(found.coefficients.shape, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    (one,), (other,) = (torch.autograd.grad(path.coefficients, weights, g) for path in (found, expected))
    torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9 * float(other.abs().max()))


def test_gradients_are_differences_and_have_gradients():
    shape = (2, 8, 2, (3.0, 5.0), False)

    def coefficients(weights):
        return fit(shape, weights).coefficients

    weights = attention(shape)
    assert torch.autograd.gradcheck(coefficients, weights, fast_mode=True)
    assert torch.autograd.gradgradcheck(coefficients, weights, fast_mode=True)


def test_stamps_without_observation_are_ignored():
    batch = batch_of(4, 20, 2, aligned=True, missing=True)
    found = GPPath.fit(batch, 2.0, 0.1)
    with without_compiled_code():
        expected = GPPath.fit(batch, 2.0, 0.1)
    torch.testing.assert_close(found.coefficients, expected.coefficients, rtol=0, atol=1e-10)


def test_rows_do_not_hang_on_their_neighbours():
    shape = SHAPES["ragged"]
    batch = batch_of(*shape[:3], shape[4])
    whole = GPPath.fit(batch, 1.5, 0.1, nodes=20).coefficients
    few = torch.tensor([2, 5])
    alone = GPPath.fit(batch.select(few), 1.5, 0.1, nodes=20).coefficients
    assert torch.equal(alone, whole[few])


def test_what_it_gives_no_gradient_to_is_left_to_torch():
    shape, weights = SHAPES["ragged"], attention(SHAPES["ragged"])
    bandwidth = torch.tensor([1.0, 4.0], dtype=torch.float64, requires_grad=True)
    path = GPPath.fit(batch_of(*shape[:3], shape[4]), bandwidth, 0.1, weights, nodes=20)
    assert not node_of(path.coefficients, "_MeansBackward")
    assert torch.autograd.grad(path.coefficients.sum(), bandwidth)[0].all()
    assert not node_of(fit(shape, weights, variance=True).coefficients, "_MeansBackward")
    assert not node_of(fit(shape, weights, nodes=posterior.MOST + 1).coefficients, "_MeansBackward")
