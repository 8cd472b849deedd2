"""Matrices in panels of columns, the order in which compiled products read them."""

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from smoothcde.native.library import call, library


def _loaded(source: str) -> Any:
    found = library(source)
    assert found is not None
    return found


def panel_columns(source: str) -> int:
    """Columns of a panel, which depend on the processor."""
    return int(_loaded(source).panel_columns())


def in_panels(tensor: Tensor, columns: int) -> Tensor:
    """The last dimension in panels, the last of them filled up with zeros."""
    short = -tensor.shape[-1] % columns
    return (pad(tensor, (0, short)) if short else tensor).unflatten(-1, (-1, columns))


def by_tiles(source: str) -> bool:
    """Whether products of this file are made by matrix tiles, which want their right sides in an order of their own."""
    return bool(_loaded(source).products_by_tiles())


def right_sides(source: str, panels: Tensor) -> Tensor:
    """Panels `[..., depth, columns]` in the order in which products of this file read their right sides."""
    panels = panels.contiguous()
    if not by_tiles(source):
        return panels
    count, depth = ctypes.c_int64(math.prod(panels.shape[:-2])), ctypes.c_int64(panels.shape[-2])
    sides = room(count.value, _loaded(source).right_side_numbers(depth))
    call(source, "right_sides", count, depth, panels, sides)
    return sides


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
