"""Matrices in panels of columns, the order in which compiled products read them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from smoothcde.native.library import library


def panel_columns(source: str) -> int:
    """Columns of a panel, which depend on the processor."""
    loaded = library(source)
    assert loaded is not None
    return int(loaded.panel_columns())


def in_panels(tensor: Tensor, columns: int) -> Tensor:
    """The last dimension in panels, the last of them filled up with zeros."""
    short = -tensor.shape[-1] % columns
    return (pad(tensor, (0, short)) if short else tensor).unflatten(-1, (-1, columns))


def room(*shape: int) -> Tensor:
    """Numbers for compiled code to write, whatever torch's defaults are."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def zeros(*shape: int) -> Tensor:
    """The same, to add to."""
    return torch.zeros(shape, dtype=torch.float32, device="cpu")


def differentiable(
    function: Callable[[Sequence[Tensor]], Any], inputs: Sequence[Tensor], needed: Sequence[bool], gradients: Any
) -> list[Tensor | None]:
    """Gradients of a function of tensors that can be differentiated once more: what hand-written backward passes cannot
    give.
    """
    # Under other names: one input may have been made of another, and only what is direct counts.
    inputs = [x.view_as(x) for x in inputs]
    wanted = [x for x, need in zip(inputs, needed, strict=True) if need]
    found = iter(torch.autograd.grad(function(inputs), wanted, gradients, create_graph=True))
    return [next(found) if need else None for need in needed]
