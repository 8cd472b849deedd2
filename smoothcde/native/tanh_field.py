"""Steps and evaluations of tanh fields in compiled code, as nodes of torch's graph."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from smoothcde.native.library import call, counts, pointers, structure
from smoothcde.native.memory import room_to_keep
from smoothcde.native.panels import by_tiles, differentiable, in_panels, panel_columns, right_sides, room, zeros

SOURCE = "tanh_field.c"
ROWS_OF_A_THREAD = 24

_Sizes = structure(
    "_Sizes",
    ctypes.c_int64,
    "views",
    "hidden",
    "width",
    "channels",
    "padded_hidden",
    "padded_width",
    "relu",
    "threads",
)
_Weights = structure(
    "_Weights", ctypes.c_void_p, "inner", "inner_bias", "outer", "outer_bias", "inner_back", "outer_back"
)
_Gradients = structure("_Gradients", ctypes.c_void_p, "inner", "inner_bias", "outer", "outer_bias")


class _Method(ctypes.Structure):
    _fields_ = [("slopes", ctypes.c_int64), *((name, ctypes.c_void_p) for name in ("stages", "error", "departure"))]


class StepResult(NamedTuple):
    """State and slope at the end of a step, and per row the mean squares of error and departure over tolerance; of
    several steps, each one's.
    """

    state: Float[Tensor, "rows hidden"]
    slope: Float[Tensor, "rows hidden"]
    squared_ratio: Float[Tensor, "rows *steps"]
    squared_departure: Float[Tensor, "rows *steps"] | None


@dataclass(frozen=True, eq=False)
class Method:
    """A Runge-Kutta method whose last stage is its result, as the compiled code takes it.

    Attributes:
        stages: row i makes the state of slope i + 1.
        error: weights of the slopes in the error.
        departure: weights of the slopes in another difference that is wanted, or None.
    """

    stages: np.ndarray
    error: np.ndarray
    departure: np.ndarray | None

    @cached_property
    def structure(self) -> _Method:
        """For C."""
        departure = None if self.departure is None else self.departure.ctypes.data
        return _Method(len(self.error), self.stages.ctypes.data, self.error.ctypes.data, departure)

    @classmethod
    def of(cls, stages: Sequence[np.ndarray], error: np.ndarray, departure: np.ndarray | None) -> "Method":
        """From the lower triangle of a tableau."""
        square = np.zeros((len(stages), len(stages)), dtype=np.float32)
        for row, weights in enumerate(stages):
            square[row, : len(weights)] = weights
        other = None if departure is None else np.ascontiguousarray(departure, dtype=np.float32)
        return cls(square, np.ascontiguousarray(error, dtype=np.float32), other)


class PackedField:
    """The weights of a tanh field in the order in which products read them; made anew for every solve.

    Args:
        inner: weight `[views, hidden, width]` and bias of the first layer.
        outer: weight `[views, width, channels * hidden]` and bias of the second.
        activation: "tanh" or "relu".
        plain: f(z) dx from z, dx, the four parameters and the rows of each view, in operations that torch
            differentiates any number of times: for second derivatives.
    """

    def __init__(
        self,
        inner: tuple[Tensor, Tensor],
        outer: tuple[Tensor, Tensor],
        activation: str,
        plain: Callable[[Sequence[Tensor], Sequence[int]], Tensor],
    ):
        self.panel, self.tiles = panel_columns(SOURCE), by_tiles(SOURCE)
        self.parameters, self.plain = (*inner, *outer), plain
        views, hidden, width = inner[0].shape
        self.hidden, self.width, self.channels = hidden, width, outer[0].shape[2] // hidden
        self.padded_hidden, self.padded_width = (-(-size // self.panel) * self.panel for size in (hidden, width))
        relu = int(activation == "relu")
        self._sizes = _Sizes(views, hidden, width, self.channels, self.padded_hidden, self.padded_width, relu, 0)
        with torch.no_grad():
            inner_weight, inner_bias, outer_weight, outer_bias = (p.detach() for p in self.parameters)
            per_channel = (self.channels, hidden)
            self._forwards = (
                self._sides(inner_weight, self.padded_hidden),
                self._panels(inner_bias).contiguous(),
                self._sides(outer_weight.unflatten(2, per_channel).transpose(1, 2), self.padded_width),
                self._panels(outer_bias.unflatten(1, per_channel)).contiguous(),
            )

    def _panels(self, tensor: Tensor) -> Tensor:
        return in_panels(tensor, self.panel)

    def _sides(self, matrices: Tensor, depth: int) -> Tensor:
        """Right sides of products, as many rows as their left sides have columns."""
        panels = self._panels(pad(matrices, (0, 0, 0, depth - matrices.shape[-2]))).transpose(-2, -3)
        return right_sides(SOURCE, panels)

    @cached_property
    def _backwards(self) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            inner, _, outer, _ = (p.detach() for p in self.parameters)
            per_channel = outer.unflatten(2, (self.channels, self.hidden)).permute(0, 2, 3, 1)
            return self._sides(inner.mT, self.padded_width), self._sides(per_channel, self.padded_hidden)

    @cached_property
    def forward_weights(self) -> ctypes.Structure:
        """For C, without what only the way back needs."""
        return _Weights(*pointers((*self._forwards, None, None)))

    @cached_property
    def all_weights(self) -> ctypes.Structure:
        """For C."""
        return _Weights(*pointers((*self._forwards, *self._backwards)))

    def sizes(self, threads: int) -> ctypes.Structure:
        """For C."""
        self._sizes.threads = threads
        return self._sizes

    def _call(
        self,
        function: str,
        weights: ctypes.Structure,
        rows_of_view: Sequence[int],
        *arguments: Any,
        threads: int | None = None,
    ) -> None:
        sizes = self.sizes(threads or torch.get_num_threads())
        call(SOURCE, function, sizes, weights, counts(rows_of_view), *arguments)

    def _kept(self, *shape: int) -> tuple[Tensor, Tensor]:
        """Room for activations and for the entries of the field's matrix."""
        return room_to_keep(*shape, self.padded_width), room_to_keep(*shape, self.padded_hidden * self.channels)

    def product(
        self, z: Float[Tensor, "rows hidden"], dx: Float[Tensor, "rows channels"], rows: Any
    ) -> Float[Tensor, "rows hidden"]:
        """f(z) dx; `rows.sizes` tells how many rows each view has."""
        if torch.is_grad_enabled():
            return _Product.apply(self, rows.sizes, z, dx, *self.parameters)  # type: ignore[return-value]
        return self.evaluate(z, dx, rows.sizes, (None, None))

    def evaluate(self, z: Tensor, dx: Tensor, rows_of_view: Sequence[int], kept: tuple[Any, Any]) -> Tensor:
        """f(z) dx without a graph."""
        slope = room(*z.shape)
        arguments = (z.contiguous(), dx.contiguous(), slope, *kept)
        self._call("field_forward", self.forward_weights, rows_of_view, *arguments)
        return slope

    def step(
        self,
        method: Method,
        z: Float[Tensor, "rows hidden"],
        first: Float[Tensor, "rows hidden"],
        dx: Float[Tensor, "rows stages channels"],
        h: Float[Tensor, "rows 1"],
        tolerances: tuple[float, float],
        rows: Any,
    ) -> StepResult:
        """A step from z with slope `first`; `dx` at all stages behind the first."""
        if torch.is_grad_enabled():
            fixed = (self, method, h, tolerances, rows.sizes)
            return StepResult(*_Step.apply(fixed, z, first, dx, *self.parameters))  # type: ignore[misc]
        return self.advance(method, z, first, dx, h, tolerances, rows.sizes, (None, None, None))

    def plain_step(self, method: Method, h: Tensor, rows_of_view: Sequence[int], inputs: Sequence[Tensor]):
        """State and slope of a step in plain operations, from z, the first slope, dx and the parameters."""
        z, first, dx, *parameters = inputs
        slopes, state = [first], z
        for stage in range(dx.shape[1]):
            weights = method.stages[stage].tolist()
            state = z + h * sum(w * k for w, k in zip(weights, slopes, strict=False) if w)
            slopes.append(self.plain((state, dx[:, stage], *parameters), rows_of_view))
        return state, slopes[-1]

    def steps(
        self,
        method: Method,
        z: Float[Tensor, "rows hidden"],
        first: Float[Tensor, "rows hidden"],
        dx: Float[Tensor, "rows steps stages channels"],
        h: Float[Tensor, "rows steps"],
        tolerances: tuple[float, float],
        rows: Any,
    ) -> StepResult:
        """Several steps in a row, without a graph; with a ratio for each of them."""
        return self._advance(method, z, first, dx, h, tolerances, rows.sizes, (None, None, None))

    def advance(self, method: Method, z, first, dx, h, tolerances, rows_of_view, kept) -> StepResult:
        """A step without a graph."""
        done = self._advance(method, z, first, dx[:, None], h, tolerances, rows_of_view, kept)
        departure = None if done.squared_departure is None else done.squared_departure[:, 0]
        return StepResult(done.state, done.slope, done.squared_ratio[:, 0], departure)

    def _advance(self, method: Method, z, first, dx, h, tolerances, rows_of_view, kept) -> StepResult:
        state, slope, ratio = room(*z.shape), room(*z.shape), room(*h.shape)
        departure = None if method.departure is None else room(*h.shape)
        steps, rtol, atol = ctypes.c_int64(dx.shape[1]), *(ctypes.c_float(tolerance) for tolerance in tolerances)
        inputs = (t.contiguous() for t in (z, first, dx, h))
        arguments = (method.structure, steps, rtol, atol, *inputs, state, slope, ratio, departure, *kept)
        self._call("step_forward", self.forward_weights, rows_of_view, *arguments)
        return StepResult(state, slope, ratio, departure)

    def sums(self, wanted: bool, threads: int) -> tuple[ctypes.Structure, list[Tensor]]:
        """Room for the gradients of the weights, a share for each thread."""
        if not wanted:
            return _Gradients(None, None, None, None), []
        each = (threads, self._sizes.views)
        matrix = self.padded_hidden * self.channels
        shapes = ((self.hidden, self.padded_width), (self.padded_width,), (self.width, matrix), (matrix,))
        shares = [zeros(*each, *shape) for shape in shapes]
        return _Gradients(*pointers(shares)), shares

    def gradients(self, shares: list[Tensor]) -> tuple[Tensor | None, ...]:
        """Gradients of the parameters in their own shapes, from the threads' shares."""
        if not shares:
            return (None,) * 4
        inner, inner_bias, outer, outer_bias = (share.sum(dim=0) if len(share) > 1 else share[0] for share in shares)
        per_channel = (self.channels, self.padded_hidden)
        outer = outer.unflatten(2, per_channel)[..., : self.hidden].flatten(2)
        outer_bias = outer_bias.unflatten(1, per_channel)[..., : self.hidden].flatten(1)
        return inner[..., : self.width], inner_bias[..., : self.width], outer, outer_bias


def threads_for(rows: int) -> int:
    """For a backward pass: each thread sums a gradient of all weights of its own, which few rows are not worth."""
    return max(1, min(torch.get_num_threads(), rows // ROWS_OF_A_THREAD))


class _Product(torch.autograd.Function):
    """f(z) dx, keeping activations and the entries of f(z)."""

    @staticmethod
    def forward(ctx, field: PackedField, rows_of_view, z, dx, *parameters):
        kept = field._kept(len(z))
        slope = field.evaluate(z, dx, rows_of_view, kept)
        ctx.field, ctx.rows_of_view = field, rows_of_view
        ctx.save_for_backward(z, dx, *kept, *parameters)
        return slope

    @staticmethod
    def backward(ctx, *gradients):
        (g,) = gradients
        z, dx, a, t, *parameters = ctx.saved_tensors
        field, needs = ctx.field, ctx.needs_input_grad
        if torch.is_grad_enabled():  # someone wants second derivatives
            plain = partial(field.plain, rows_of_view=ctx.rows_of_view)
            return None, None, *differentiable(plain, (z, dx, *parameters), needs[2:], g)
        threads = threads_for(len(z))
        sums, shares = field.sums(any(needs[4:]), threads)
        to_z, to_dx = room(*z.shape), room(*dx.shape) if needs[3] else None
        arguments = (g.contiguous(), z.contiguous(), dx.contiguous(), a, t, to_z, to_dx, sums)
        field._call("field_backward", field.all_weights, ctx.rows_of_view, *arguments, threads=threads)
        return None, None, to_z, to_dx, *field.gradients(shares)


class _Step(torch.autograd.Function):
    """One step, keeping states, activations and entries of f(z) of its stages."""

    @staticmethod
    def forward(ctx, fixed, z, first, dx, *parameters):
        field, method, h, tolerances, rows_of_view = fixed
        stages = dx.shape[1]
        kept = (room_to_keep(stages, len(z), field.padded_hidden), *field._kept(stages, len(z)))
        result = field.advance(method, z, first, dx, h, tolerances, rows_of_view, kept)
        ctx.fixed = fixed
        ctx.save_for_backward(z, first, dx, *kept, *parameters)
        ctx.mark_non_differentiable(*(square for square in result[2:] if square is not None))
        return tuple(result)

    @staticmethod
    def backward(ctx, *gradients):
        g_state, g_slope, *_ = gradients
        z, first, dx, y, a, t, *parameters = ctx.saved_tensors
        field, method, h, _, rows_of_view = ctx.fixed
        needs = ctx.needs_input_grad
        if torch.is_grad_enabled():
            plain = partial(field.plain_step, method, h, rows_of_view)
            return None, *differentiable(plain, (z, first, dx, *parameters), needs[1:], (g_state, g_slope))
        threads = threads_for(len(z))
        sums, shares = field.sums(any(needs[4:]), threads)
        to_z, to_first = room(h.shape[0], field.hidden), room(h.shape[0], field.hidden)
        to_dx = room(*dx.shape) if needs[3] else None
        inputs = (g.contiguous() for g in (g_state, g_slope, dx, h))
        arguments = (method.structure, *inputs, y, a, t, to_z, to_first, to_dx, sums)
        field._call("step_backward", field.all_weights, rows_of_view, *arguments, threads=threads)
        return None, to_z, to_first, to_dx, *field.gradients(shares)
