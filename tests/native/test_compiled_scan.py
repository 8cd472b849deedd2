"""The recurrence of selective state spaces in compiled code equals torch's, gradients included."""

import pytest
import torch

from smoothcde.models.selective_scan import selective_scan
from smoothcde.native import selective_scan as compiled
from smoothcde.native import without_compiled_code

# Series, stamps, channels, states: whole vectors and not, one piece of stamps and several, the usual size and others.
SHAPES = [(3, 200, 24, 16), (5, 64, 16, 16), (2, 65, 5, 1), (4, 1, 33, 7), (1, 130, 1, 64), (6, 9, 40, 20)]


def parts_of(series, stamps, channels, states, dtype=torch.float64):
    draw = torch.Generator().manual_seed(3)
    wide, narrow = (series, stamps, channels), (series, stamps, states)
    shapes = (wide, wide, (channels, states), narrow, narrow, (channels,))
    inputs, gaps, rates, write, read, skip = (torch.randn(s, generator=draw, dtype=torch.float64) for s in shapes)
    gaps = torch.nn.functional.softplus(gaps - 2)
    return [part.to(dtype).requires_grad_() for part in (inputs, gaps, -rates.exp(), write, read, skip)]


@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_and_gradients_are_those_of_double_precision(shape):
    ours, theirs = parts_of(*shape, torch.float32), parts_of(*shape)
    found, expected = selective_scan(*ours), selective_scan(*theirs)
    assert type(found.grad_fn).__name__ == "_ScanBackward"
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        assert torch.equal(selective_scan(*ours), found)
    g = torch.randn(found.shape, generator=torch.Generator().manual_seed(4))
    gradients = torch.autograd.grad(found, ours, g), torch.autograd.grad(expected, theirs, g.double())
    for one, other in zip(*gradients, strict=True):
        assert float((one - other).abs().max()) <= 1e-5 * max(1.0, float(other.abs().max()))


def test_memory_in_any_order_will_do():
    """Inputs come out of a convolution, gradients of a sum: neither lies in memory as the scan reads it."""
    shape = (2, 70, 12, 16)
    ours, theirs = parts_of(*shape, torch.float32), parts_of(*shape)
    turned = [ours[0].detach().mT.contiguous().mT.requires_grad_(), *ours[1:]]
    found, expected = selective_scan(*turned), selective_scan(*theirs)
    gradients = torch.autograd.grad(found.sum(), turned), torch.autograd.grad(expected.sum(), theirs)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


def test_what_is_kept_for_the_backward_is_little():
    parts, kept = parts_of(2, 640, 32, 16, torch.float32), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        selective_scan(*parts)
    assert sum(kept) == 2 * 640 * 32 * 16 // 64 + sum(part.numel() for part in parts)


def test_second_derivatives_are_those_of_double_precision():
    def curvature(parts):
        first = torch.autograd.grad(selective_scan(*parts).square().sum(), parts, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first) + selective_scan(*parts).sum(), parts)

    shape = (2, 5, 3, 4)
    for one, other in zip(curvature(parts_of(*shape, torch.float32)), curvature(parts_of(*shape)), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


def test_a_series_does_not_depend_on_its_neighbours_to_the_last_bit():
    inputs, gaps, rates, write, read, skip = parts_of(5, 90, 20, 16, torch.float32)
    together = selective_scan(inputs, gaps, rates, write, read, skip)
    for i in range(5):
        one = slice(i, i + 1)
        assert torch.equal(selective_scan(inputs[one], gaps[one], rates, write[one], read[one], skip), together[one])


def test_vanishing_and_exploding_decays():
    """exp(-1000) is as good as zero; what grows past the range of float32 does so here, too."""
    inputs, gaps, rates, write, read, skip = parts_of(1, 5, 3, 2, torch.float32)
    gone = selective_scan(inputs, torch.full_like(gaps, 1000.0), rates.detach() * 0 - 1, write, read, skip)
    assert torch.isfinite(gone).all()
    with without_compiled_code():
        plain = selective_scan(inputs, torch.full_like(gaps, 1000.0), rates.detach() * 0 - 1, write, read, skip)
    torch.testing.assert_close(gone, plain, rtol=1e-5, atol=1e-5)
    lost = selective_scan(inputs * torch.nan, gaps, rates, write, read, skip)
    assert torch.isnan(lost).all()


def test_states_that_are_too_many_are_left_to_torch():
    assert compiled.fits(64)
    assert not compiled.fits(65)
    found = selective_scan(*parts_of(2, 3, 4, 65, torch.float32))
    torch.testing.assert_close(found.double(), selective_scan(*parts_of(2, 3, 4, 65)), rtol=1e-4, atol=1e-4)
