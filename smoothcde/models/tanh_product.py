"""f(z) dX/dt of a tanh field as one node of the graph: what a solver calls thousands of times."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

import torch
from jaxtyping import Float
from torch import Tensor

from smoothcde.native import differentiable

MANY_CHANNELS = 8
"""From here on a batched matrix product is faster than a sum of scaled slices; below, it is many times slower."""

CACHED = 2**19
"""Entries of field matrices that are worked on at a time: more would go to memory and come back for every operation."""

FEW = 2**13
"""Entries of field matrices up to which it is cheapest to start few operations, whatever they compute."""


def tanh_product(
    z: Float[Tensor, "rows hidden"],
    dx: Float[Tensor, "rows channels"],
    inner: tuple[Float[Tensor, "views hidden width"], Float[Tensor, "views width"]],
    outer: tuple[Float[Tensor, "views width channels*hidden"], Float[Tensor, "views channels*hidden"]],
    activation: str,
    sizes: Sequence[int],
) -> Float[Tensor, "rows hidden"]:
    """sum_c tanh(W2 act(W1 z + b1) + b2)_c dx_c, with weights and biases per view and `sizes` rows of each view."""
    sizes = tuple(sizes)
    if torch.is_grad_enabled():
        return _TanhProduct.apply(z, dx, *inner, *outer, activation, sizes)  # type: ignore[return-value]
    if len(z) * outer[0].shape[2] <= FEW:
        return plain_product((z, dx, *inner, *outer), sizes, activation)
    return _evaluate(z, dx, *inner, *outer, activation, sizes, kept=False)[0]


def affine(
    x: Float[Tensor, "rows inputs"],
    weight: Float[Tensor, "views inputs outputs"],
    bias: Float[Tensor, "views outputs"],
    sizes: Sequence[int],
    scale: float = 1.0,
) -> Float[Tensor, "rows outputs"]:
    """scale (x W + b), each slice of rows with its own view's weights."""
    first, last, whole = _present(tuple(sizes))
    if last - first == 1:
        return torch.addmm(bias[first], x, weight[first], beta=scale, alpha=scale)
    if whole:
        slices = x.view(last - first, sizes[first], x.shape[1])
        product = torch.baddbmm(bias[first:last, None], slices, weight[first:last], beta=scale, alpha=scale)
        return product.flatten(0, 1)
    slices = zip(x.split(sizes), bias, weight, strict=True)
    return torch.cat([torch.addmm(b, part, w, beta=scale, alpha=scale) for part, b, w in slices])


@lru_cache
def _present(sizes: tuple[int, ...]) -> tuple[int, int, bool]:
    """The first and behind the last view that has rows, and whether all between them have equally many."""
    present = [view for view, size in enumerate(sizes) if size] or [0]
    first, last = present[0], present[-1] + 1
    return first, last, len(set(sizes[first:last])) == 1


class _TanhProduct(torch.autograd.Function):
    """All of a field's evaluation, keeping for the backward pass only z, the activations, and s."""

    @staticmethod
    def forward(ctx, z, dx, inner_weight, inner_bias, outer_weight, outer_bias, activation, sizes):
        weights = inner_weight, inner_bias, outer_weight, outer_bias
        total, a, s = _evaluate(z, dx, *weights, activation, sizes, kept=True)
        ctx.save_for_backward(z, dx, inner_weight, inner_bias, outer_weight, outer_bias, a, s)
        ctx.activation, ctx.sizes = activation, sizes
        return total

    @staticmethod
    def backward(ctx, *gradients):
        (g,) = gradients
        *inputs, a, s = ctx.saved_tensors
        if torch.is_grad_enabled():  # someone wants second derivatives: plain operations have them
            plain = partial(plain_product, rows_of_view=ctx.sizes, activation=ctx.activation)
            return *differentiable(plain, inputs, ctx.needs_input_grad[:6], g), None, None
        z, dx, inner_weight, _, outer_weight, _ = inputs
        if s.numel() <= CACHED:
            through = _through(g, dx, s)
            to_a, to_outer_weight, to_outer_bias = _affine_backward(through.flatten(1), a, outer_weight, ctx.sizes)
        else:
            to_a, to_outer_weight, to_outer_bias = _backward_in_pieces(g, dx, a, s, outer_weight, ctx.sizes)
        to_dx = None
        if ctx.needs_input_grad[1]:
            to_dx = 2 * torch.bmm(s, g[:, :, None])[:, :, 0] - g.sum(dim=1, keepdim=True)
        back = torch.ops.aten.tanh_backward if ctx.activation == "tanh" else _relu_backward
        to_z, to_inner_weight, to_inner_bias = _affine_backward(back(to_a, a), z, inner_weight, ctx.sizes)
        return to_z, to_dx, to_inner_weight, to_inner_bias, to_outer_weight, to_outer_bias, None, None


def _evaluate(z, dx, inner_weight, inner_bias, outer_weight, outer_bias, activation, sizes, kept: bool):
    """The product, the inner activations, and s, of all rows if it is to be kept.

    Both tanh are taken as tanh(u) = 2 s - 1 with s = sigmoid(2 u): on a CPU torch's sigmoid takes a third of the time
    of its tanh, and the factor 2 is free inside the matrix product. The error is one rounding of 1, however small
    tanh(u) is.
    """
    if activation == "tanh":
        a = affine(z, inner_weight, inner_bias, sizes, scale=2.0).sigmoid_().mul_(2).sub_(1)
    else:
        a = affine(z, inner_weight, inner_bias, sizes).relu_()
    if len(a) * outer_weight.shape[2] <= CACHED:
        s = affine(a, outer_weight, outer_bias, sizes, scale=2.0).sigmoid_().unflatten(1, (dx.shape[1], -1))
        total = _contract(s, 2 * dx)
    else:
        total, s = _in_pieces(a, dx, outer_weight, outer_bias, sizes, kept)
    return total.sub_(dx.sum(dim=1, keepdim=True)), a, s


def _pieces(sizes: Sequence[int], width: int) -> Iterator[tuple[int, slice]]:
    """Views and rows of each, so many at a time that their field matrices stay in the cache."""
    most, begin = max(1, CACHED // width), 0
    for view, size in enumerate(sizes):
        for first in range(begin, begin + size, most):
            yield view, slice(first, min(first + most, begin + size))
        begin += size


def _in_pieces(a: Tensor, dx: Tensor, weight: Tensor, bias: Tensor, sizes: Sequence[int], kept: bool):
    """sum_c s_c 2 dx_c, and s of all rows if it is to be kept, else of some."""
    width = weight.shape[2]
    pieces = list(_pieces(sizes, width))
    s = a.new_empty(len(a) if kept else max(part.stop - part.start for _, part in pieces), width)
    total = a.new_empty(len(a), width // dx.shape[1])
    for view, part in pieces:
        block = s[part] if kept else s[: part.stop - part.start]
        torch.addmm(bias[view], a[part], weight[view], beta=2, alpha=2, out=block).sigmoid_()
        total[part] = _contract(block.unflatten(1, (dx.shape[1], -1)), 2 * dx[part])
    return total, s.unflatten(1, (dx.shape[1], -1))


def _through(g: Tensor, dx: Tensor, s: Tensor) -> Tensor:
    """What a gradient of sum_c (2 s_c - 1) dx_c means to u, of which s is the sigmoid at 2 u."""
    return torch.ops.aten.sigmoid_backward(g[:, None, :] * (4 * dx)[:, :, None], s)


def _backward_in_pieces(g: Tensor, dx: Tensor, a: Tensor, s: Tensor, weight: Tensor, sizes: Sequence[int]):
    """The outer layer's part of the backward pass."""
    to_a, to_weight = torch.empty_like(a), torch.zeros_like(weight)
    to_bias = weight.new_zeros(weight.shape[0], weight.shape[2])
    for view, part in _pieces(sizes, weight.shape[2]):
        through = _through(g[part], dx[part], s[part]).flatten(1)
        torch.mm(through, weight[view].mT, out=to_a[part])
        to_weight[view].addmm_(a[part].mT, through)
        to_bias[view] += through.sum(dim=0)
    return to_a, to_weight, to_bias


def _contract(s: Tensor, dx: Tensor) -> Tensor:
    """sum_j s[:, j] dx[:, j]."""
    if dx.shape[1] >= MANY_CHANNELS:
        return torch.bmm(dx[:, None, :], s)[:, 0]
    total = s[:, 0] * dx[:, 0:1]
    for channel in range(1, dx.shape[1]):
        total.addcmul_(s[:, channel], dx[:, channel : channel + 1])
    return total


def _affine_backward(g: Tensor, x: Tensor, weight: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """What a gradient of x W + b, slice by slice, means to x, W and b."""
    if len(set(sizes)) == 1:
        views = len(sizes)
        g_slices, x_slices = g.view(views, sizes[0], -1), x.view(views, sizes[0], -1)
        return torch.bmm(g_slices, weight.mT).flatten(0, 1), torch.bmm(x_slices.mT, g_slices), g_slices.sum(dim=1)
    to_x, to_weight = torch.empty_like(x), torch.empty_like(weight)
    to_bias = weight.new_empty(len(sizes), weight.shape[2])
    parts = zip(g.split(sizes), x.split(sizes), to_x.split(sizes), strict=True)
    for view, (g_part, x_part, to_part) in enumerate(parts):
        torch.mm(g_part, weight[view].mT, out=to_part)
        torch.mm(x_part.mT, g_part, out=to_weight[view])
        torch.sum(g_part, dim=0, out=to_bias[view])
    return to_x, to_weight, to_bias


def _relu_backward(g: Tensor, a: Tensor) -> Tensor:
    return torch.ops.aten.threshold_backward(g, a, 0.0)


def plain_product(inputs: Sequence[Tensor], rows_of_view: Sequence[int], activation: str) -> Tensor:
    """The same in operations that torch differentiates any number of times."""
    z, dx, inner_weight, inner_bias, outer_weight, outer_bias = inputs
    a = affine(z, inner_weight, inner_bias, rows_of_view)
    a = torch.tanh(a) if activation == "tanh" else torch.relu(a)
    matrix = torch.tanh(affine(a, outer_weight, outer_bias, rows_of_view)).unflatten(1, (dx.shape[1], -1))
    return torch.linalg.vecdot(matrix, dx[:, :, None], dim=1)
