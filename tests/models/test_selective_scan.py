"""The recurrence of Mamba against mambapy's own scans, and its gradients against differences."""

import pytest
import torch
from mambapy.mamba import MambaBlock, MambaConfig

from smoothcde.models.selective_scan import check_sizes, selective_scan


def scan_inputs(n=3, length=7, inner=4, state=2, dtype=torch.float64):
    draw = torch.Generator().manual_seed(5)
    wide, narrow = (n, length, inner), (n, length, state)
    parts = [torch.randn(shape, generator=draw, dtype=dtype) for shape in (wide, wide, (inner, state), narrow, narrow)]
    parts[1], parts[2] = torch.nn.functional.softplus(parts[1] - 2), -parts[2].exp()
    parts.append(torch.randn(inner, generator=draw, dtype=dtype))
    return [part.requires_grad_() for part in parts]


@pytest.mark.parametrize("length", [1, 2, 7])
def test_gradients(length):
    assert torch.autograd.gradcheck(selective_scan, scan_inputs(length=length))


@pytest.mark.parametrize("theirs", ["selective_scan", "selective_scan_seq"])
def test_it_is_mambapys_scan_with_its_gradients(theirs):
    parts = scan_inputs(n=5, length=37, inner=12, state=16, dtype=torch.float32)
    block = MambaBlock(MambaConfig(d_model=6, n_layers=1, d_state=16))
    expected, found = getattr(block, theirs)(*parts), selective_scan(*parts)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        assert torch.equal(selective_scan(*parts), found)
    weights = torch.randn_like(expected)
    grads = [torch.autograd.grad((out * weights).sum(), parts) for out in (found, expected)]
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-4)


def test_only_states_are_kept_for_the_backward():
    parts = scan_inputs(n=2, length=50, inner=8, state=16)
    kept = {}
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.setdefault(t.data_ptr(), t), lambda t: t):
        selective_scan(*parts)
    states = 2 * 50 * 8 * 16
    assert states <= sum(t.numel() for t in kept.values()) < 1.6 * states


def test_second_derivatives():
    assert torch.autograd.gradgradcheck(selective_scan, scan_inputs(n=2, length=3, inner=2))


@pytest.mark.parametrize("wrong", [1, 2, 3, 4, 5])
def test_parts_that_do_not_go_together_are_refused(wrong):
    parts = scan_inputs()
    check_sizes(*parts)
    parts[wrong] = parts[wrong][:1]
    with pytest.raises(ValueError, match="do not go with the inputs; expected"):
        check_sizes(*parts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_change_in_place_between_forward_and_backward_is_noticed(dtype):
    parts = scan_inputs(inner=16, dtype=dtype)
    inputs = parts[0] * 1
    said = selective_scan(inputs, *parts[1:])
    inputs.mul_(100)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        said.sum().backward()
