"""Gaussian process paths of all views of a batch by compiled code, as one node of torch's graph."""

import ctypes
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from smoothcde.native.library import call, counts, pointers, structure
from smoothcde.native.panels import differentiable, room
from smoothcde.native.posterior import FEW, MOST, system_row

__all__ = ["MOST", "SOURCE", "Given", "gp_paths"]

SOURCE = "gp_paths.c"

_Sizes = structure(
    "_Sizes",
    ctypes.c_int64,
    *("series", "views", "windows", "kernels", "places", "channels", "apart", "most", "threads"),
)
_Kept = structure("_Kept", ctypes.c_void_p, "means", "factors", "pivots")
_GIVEN = ("x", "length", "seen", "values", "weights", "noise", "mean", "kernels")


class _Given(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_void_p) for name in _GIVEN), ("floor", ctypes.c_double)]


class Given(NamedTuple):
    """Series whose channels were observed together, and what is thought of them before.

    Attributes:
        x: places of the stamps in [-1, 1], of all series or of each one.
        length: in time, of what [-1, 1] is.
        seen: what was observed, by the first channel.
        values: observations.
        noise: sigma, of each view.
        mean: of the prior, of each channel.
        kernels: of each view the prior covariance of coefficients, one for all series or each one's.
        floor: added to every weight.
    """

    x: Float64[Tensor, "windows places"]
    length: Float64[Tensor, "series"]
    seen: Bool[Tensor, "series places channels"]
    values: Float[Tensor, "series places channels"]
    noise: Float64[Tensor, "views"]
    mean: Float64[Tensor, "channels"]
    kernels: Sequence[Float64[Tensor, "kernels count count"]]
    floor: float


Paths = tuple[Float[Tensor, "rows count channels"], Float[Tensor, "rows count channels"]]
Plain = Callable[[Tensor], Paths]


def gp_paths(weights: Float[Tensor, "series views places"] | None, given: Given, plain: Plain) -> Paths:
    """Chebyshev coefficients of paths and of their slopes, all series of the first view, then of the second, ...

    Only the weights get a gradient. `plain` is the same from them in torch's own operations, for second derivatives.
    """
    if weights is not None and weights.requires_grad and torch.is_grad_enabled():
        return _Paths.apply(weights, given, plain)  # type: ignore[return-value]
    return _Fit(weights, given).forward(None)


class _Fit:
    """One batch as compiled code reads it."""

    def __init__(self, weights: Tensor | None, given: Given):
        self.own = None if weights is None else weights.detach().contiguous()
        x, length, seen, values, noise, mean = (t.detach().contiguous() for t in given[:6])
        kernels = [kernel.detach().contiguous() for kernel in given.kernels]
        self.given = Given(x, length, seen, values, noise, mean, kernels, given.floor)
        (series, places, channels), views = given.values.shape, len(given.kernels)
        self.counts = [kernel.shape[-1] for kernel in given.kernels]
        products = series * sum(count * (count + places) for count in self.counts)
        threads = torch.get_num_threads() if products > FEW else 1
        windows, kernels, apart, most = len(given.x), len(given.kernels[0]), given.seen.shape[2], max(self.counts)
        self.sizes = _Sizes(series, views, windows, kernels, places, channels, apart, most, threads)

    def _call(self, function: str, *arguments) -> None:
        x, length, seen, values, noise, mean, kernels, floor = self.given
        every = (ctypes.c_void_p * len(kernels))(*pointers(kernels))
        places = pointers((x, length, seen, values, self.own, noise, mean))
        call(
            SOURCE,
            function,
            self.sizes,
            counts(self.counts),
            _Given(*places, ctypes.addressof(every), floor),
            *arguments,
        )

    def room_to_keep(self) -> tuple[Tensor, Tensor, Tensor]:
        """For means, factors and pivots of all views."""
        series, channels = self.sizes.series, self.sizes.channels
        rows = [(count, count * system_row(SOURCE, count, channels)) for count in self.counts]
        every, factors = (series * sum(sizes) for sizes in zip(*rows, strict=True))
        return (
            torch.empty(every * channels, dtype=torch.float64, device="cpu"),
            torch.empty(factors, dtype=torch.float64, device="cpu"),
            torch.empty(every, dtype=torch.int64, device="cpu"),
        )

    def forward(self, kept: Sequence[Tensor] | None) -> Paths:
        s = self.sizes
        coefficients, slopes = (room(s.views * s.series, s.most, s.channels) for _ in range(2))
        self._call("gp_paths", coefficients, slopes, None if kept is None else _Kept(*pointers(kept)))
        return coefficients, slopes

    def backward(self, g: Sequence[Tensor], kept: Sequence[Tensor]) -> Tensor:
        found = room(self.sizes.series, self.sizes.views, self.sizes.places)
        self._call("gp_paths_back", *(part.contiguous() for part in g), _Kept(*pointers(kept)), found)
        return found


class _Paths(torch.autograd.Function):
    """Keeps the means and the systems' factors."""

    @staticmethod
    def forward(ctx, weights: Tensor, given: Given, plain: Plain):
        ctx.fit, ctx.plain = _Fit(weights, given), plain
        kept = ctx.fit.room_to_keep()
        ctx.save_for_backward(weights, *kept)
        return ctx.fit.forward(kept)

    @staticmethod
    def backward(ctx, *gradients):
        weights, *kept = ctx.saved_tensors
        if torch.is_grad_enabled():  # someone wants second derivatives
            (found,) = differentiable(lambda inputs: ctx.plain(inputs[0]), [weights], [True], gradients)
            return found, None, None
        return ctx.fit.backward(gradients, kept), None, None
