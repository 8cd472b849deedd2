"""Posterior means of many small Gaussian processes by compiled code, as one node of torch's graph."""

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float64
from torch import Tensor

from smoothcde.native.library import call, library, structure
from smoothcde.native.panels import differentiable

SOURCE = "posterior.c"
MOST = 64
"""Polynomials, up to which this is faster than LAPACK."""
FEW = 50_000
"""Products, about, up to which one thread does them all: it is done before others have woken up."""

_Sizes = structure(
    "_Sizes", ctypes.c_int64, "views", "rows", "windows", "kernels", "places", "count", "columns", "threads"
)

Plain = Callable[[Tensor], Tensor]


class Observed(NamedTuple):
    """Places in [-1, 1], of all rows or of each one, and what was observed there."""

    x: Float64[Tensor, "windows places"]
    targets: Float64[Tensor, "rows places columns"]


def posterior_means(
    precision: Float64[Tensor, "views rows places"],
    observed: Observed,
    kernel: Float64[Tensor, "views kernels count count"],
    plain: Plain,
) -> Float64[Tensor, "views rows count columns"]:
    """K (I + A^T P A K)^-1 A^T P x, with A the Chebyshev polynomials at the places and P their precision; `kernel` is
    one for all rows of a view, or each row's.

    Only the precision gets a gradient. `plain` is the same from it in torch's own operations, for second derivatives.
    """
    if torch.is_grad_enabled() and precision.requires_grad:
        return _Means.apply(precision, observed, kernel, plain)  # type: ignore[return-value]
    return _solved(precision, observed, kernel)[0]


def _solved(precision: Tensor, observed: Observed, kernel: Tensor) -> tuple[Tensor, ...]:
    """Means; and what the way back needs, in the order in which it takes them."""
    (views, rows, _), count, columns = precision.shape, kernel.shape[-1], observed.targets.shape[2]
    means = _room(views, rows, count, columns)
    factors, pivots = (
        _room(views, rows, count, system_row(SOURCE, count, columns)),
        _room(views, rows, count, dtype=torch.int64),
    )
    x, targets, kernels = (t.detach().contiguous() for t in (*observed, kernel))
    given = (x, precision.detach().contiguous(), targets, kernels)
    call(SOURCE, "posterior_means", _sizes(precision, observed, kernel), *_places(*given, means, factors, pivots))
    return means, x, targets, kernels, factors, pivots


def _sizes(precision: Tensor, observed: Observed, kernel: Tensor) -> ctypes.Structure:
    (views, rows, places), count, columns = precision.shape, kernel.shape[-1], observed.targets.shape[2]
    threads = torch.get_num_threads() if views * rows * count * (count + places) > FEW else 1
    return _Sizes(views, rows, len(observed.x), kernel.shape[1], places, count, columns, threads)


def system_row(source: str, count: int, columns: int) -> int:
    """Numbers of a row of a system with its right-hand sides, as compiled code has them."""
    loaded = library(source)
    assert loaded is not None
    return int(loaded.system_row(ctypes.c_int64(count), ctypes.c_int64(columns)))


def _room(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="cpu")


def _places(*tensors: Tensor) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


class _Means(torch.autograd.Function):
    """Keeps the means and the systems' factors."""

    @staticmethod
    def forward(ctx, precision, observed: Observed, kernel, plain: Plain):
        ctx.plain = plain
        means, x, targets, *kept = _solved(precision, observed, kernel)
        ctx.save_for_backward(precision, x, targets, means, *kept)
        return means

    @staticmethod
    def backward(ctx, *gradients):
        (g,), (precision, x, targets, *kept) = gradients, ctx.saved_tensors
        if torch.is_grad_enabled():  # someone wants second derivatives
            (found,) = differentiable(lambda inputs: ctx.plain(inputs[0]), [precision], [True], g)
            return found, None, None, None
        found = _room(*precision.shape)
        sizes = _sizes(precision, Observed(x, targets), kept[1])
        call(SOURCE, "posterior_means_back", sizes, *_places(g.contiguous(), x, targets, *kept, found))
        return found, None, None, None
