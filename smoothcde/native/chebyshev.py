"""Values of polynomials in Chebyshev form by compiled code, as one node of torch's graph."""

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from smoothcde.native.library import call, pointers, structure
from smoothcde.native.panels import differentiable, in_panels, panel_columns, room

SOURCE = "chebyshev.c"
FEW = 50_000
"""Products, up to which one thread does them all: it is done before others have woken up."""

_Sizes = structure("_Sizes", ctypes.c_int64, "rows", "moments", "count", "channels", "threads")
_Moments = structure("_Moments", ctypes.c_void_p, "times", "start", "end", "length")

Plain = Callable[[Tensor], Tensor]


class Moments(NamedTuple):
    """When: `times` in each row's window from `start` to `end`; the polynomials' [-1, 1] begins there and has a
    `length` in time.
    """

    times: Float64[Tensor, "rows moments"]
    start: Float64[Tensor, "rows"]
    end: Float64[Tensor, "rows"]
    length: Float64[Tensor, "rows"]


def polynomials(
    coefficients: Float[Tensor, "rows count channels"], moments: Moments, plain: Plain
) -> Float[Tensor, "rows moments channels"]:
    """What polynomials are at moments of each row's own; zero outside its window.

    Moments get no gradient. `plain` is the same from the coefficients in torch's own operations, for second
    derivatives.
    """
    if torch.is_grad_enabled():
        return _Polynomials.apply(coefficients, moments, plain)  # type: ignore[return-value]
    return _Packed(moments, coefficients).forward(coefficients)


def squared_sums(
    coefficients: Float[Tensor, "rows count channels"], features: Float[Tensor, "count columns"]
) -> Float64[Tensor, "rows columns"]:
    """Squares of what features make of coefficients, over all channels; without gradients."""
    (rows, count, channels), columns = coefficients.shape, features.shape[1]
    threads = torch.get_num_threads() if rows * columns * count * channels > FEW else 1
    wide = in_panels(features, panel_columns(SOURCE)).flatten(1).contiguous()
    squares = torch.empty(rows, wide.shape[1], dtype=torch.float64, device="cpu")
    sizes = _Sizes(rows, wide.shape[1], count, channels, threads)
    call(SOURCE, "chebyshev_squared_sums", sizes, coefficients.contiguous(), wide, ctypes.c_void_p(squares.data_ptr()))
    return squares[:, :columns]


class _Packed:
    """Moments as compiled code reads them."""

    def __init__(self, moments: Moments, coefficients: Tensor):
        self.moments = tuple(part.detach().contiguous() for part in moments)
        (rows, count, channels), stages = coefficients.shape, moments.times.shape[1]
        threads = torch.get_num_threads() if rows * stages * count * channels > FEW else 1
        self.sizes = _Sizes(rows, stages, count, channels, threads)

    def forward(self, coefficients: Tensor) -> Tensor:
        s = self.sizes
        values = room(s.rows, s.moments, s.channels)
        moments = _Moments(*pointers(self.moments))
        call(SOURCE, "chebyshev_values", s, moments, coefficients.detach().contiguous(), values)
        return values

    def backward(self, g: Tensor) -> Tensor:
        s = self.sizes
        found = room(s.rows, s.count, s.channels)
        call(SOURCE, "chebyshev_values_back", s, _Moments(*pointers(self.moments)), g.contiguous(), found)
        return found


class _Polynomials(torch.autograd.Function):
    """Keeps the coefficients; the polynomials' basis is made again."""

    @staticmethod
    def forward(ctx, coefficients: Tensor, moments: Moments, plain: Plain):
        ctx.packed, ctx.plain = _Packed(moments, coefficients), plain
        ctx.save_for_backward(coefficients)
        return ctx.packed.forward(coefficients)

    @staticmethod
    def backward(ctx, *gradients):
        (g,), (coefficients,) = gradients, ctx.saved_tensors
        if torch.is_grad_enabled():  # someone wants second derivatives
            (found,) = differentiable(lambda inputs: ctx.plain(inputs[0]), [coefficients], [True], g)
            return found, None, None
        return ctx.packed.backward(g), None, None
