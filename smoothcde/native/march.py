"""Whole solves along polynomials in compiled code, as one node of torch's graph."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from smoothcde.native.library import call, counts, structure
from smoothcde.native.memory import room_to_keep
from smoothcde.native.panels import by_tiles, differentiable, panel_columns, zeros
from smoothcde.native.tanh_field import Method, PackedField, threads_for

SOURCE = "march.c"
RUNNING = -1
LOGGED = 64
"""Accepted steps of a row that one call writes down."""
_BLOCK = 128
"""Rows that go together, at most: MOST_ROWS of tanh_field.h."""
_MARGIN = 1.2
"""More room for steps than are expected: what is not used costs nothing."""

_ROWS = (
    *("start", "window", "end", "limit", "smallest", "rate", "reached", "length", "coefficients"),
    *("time", "size", "previous", "ends", "accepted", "rejected", "code", "logged", "z", "slope"),
)
_Rows = structure("_Rows", ctypes.c_void_p, *_ROWS)
_Extent = structure("_Extent", ctypes.c_int64, "shares", "cells", "count", "room")


_CONTROL = (
    *("rtol", "atol", "tolerance", "doubt", "trust", "steepness", "order"),
    *("safety", "shrink", "grow", "damping", "stretch"),
)


class Control(ctypes.Structure):
    """What steps are held to: numbers of `smoothcde/solve`, by the names they have there."""

    _fields_ = [*((name, ctypes.c_double) for name in _CONTROL), ("max_steps", ctypes.c_int64)]


@dataclass(eq=False)
class Journey:
    """Rows on their way, each over its own window; all but the states, which are torch's.

    Attributes:
        method: of Runge and Kutta.
        nodes: where in a step its stages are.
        control: what steps are held to.
        rows_of_view: how many there are of each.
        start: of the windows.
        end: of the windows.
        limit: the longest step.
        smallest: the shortest.
        rate: turns of the path per window, in each of its equal cells.
        reached: turns until each end of a cell.
        length: in time, of what [-1, 1] is to the polynomials.
        size: of the next step, in turns.
        expected: steps, about.
        window: lengths of the windows, 1 where they have none.
        time: how far each row is.
        previous: error over tolerance of the last accepted step.
        code: how each has ended, or `RUNNING`.
        accepted: steps.
        rejected: steps.
        log: rows and the ends of their accepted steps, call by call.
    """

    method: Method
    nodes: np.ndarray
    control: Control
    rows_of_view: Sequence[int]
    start: np.ndarray
    end: np.ndarray
    limit: np.ndarray
    smallest: np.ndarray
    rate: np.ndarray
    reached: np.ndarray
    length: np.ndarray
    size: np.ndarray
    expected: np.ndarray
    window: np.ndarray = field(init=False)
    time: np.ndarray = field(init=False)
    previous: np.ndarray = field(init=False)
    code: np.ndarray = field(init=False)
    accepted: np.ndarray = field(init=False)
    rejected: np.ndarray = field(init=False)
    log: list[tuple[np.ndarray, np.ndarray]] = field(init=False, default_factory=list)

    def __post_init__(self):
        count = len(self.start)
        self.time = self.start.copy()
        self.previous = np.ones(count)
        self.accepted, self.rejected = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self.code = np.where(self.end > self.start, RUNNING, 0)
        self.window = np.where(self.end > self.start, self.end - self.start, 1.0)

    def waiting(self) -> tuple[np.ndarray, list[int]]:
        """Rows that run, view by view, those with the longest way first; and how many of each view."""
        view = np.repeat(np.arange(len(self.rows_of_view)), self.rows_of_view)
        order = np.lexsort((-self.reached[:, -1], view))
        order = order[self.code[order] == RUNNING]
        return order, np.bincount(view[order], minlength=len(self.rows_of_view)).tolist()

    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Beginnings and ends of all accepted steps, `[rows, most]`; rows with fewer stand still at last."""
        most = int(self.accepted.max(initial=0))
        ends = np.repeat(self.time[:, None], most, axis=1)
        done = np.zeros(len(ends), dtype=np.int64)
        for rows, times in self.log:
            own, first = np.unique(rows, return_index=True)
            place = np.arange(len(rows)) - np.repeat(first, np.diff([*first, len(rows)]))
            ends[rows, done[rows] + place] = times
            done[own] += np.diff([*first, len(rows)])
        return np.concatenate([self.start[:, None], ends[:, :-1]], axis=1) if most else ends, ends


class _Leg(NamedTuple):
    """What a call kept."""

    last: Any
    capacity: int


def reads(packed: PackedField) -> bool:
    """Whether it finds the weights in the order of its own products: a compiler that does not know all of a processor
    is asked again without it, file by file.
    """
    return (panel_columns(SOURCE), by_tiles(SOURCE)) == (packed.panel, packed.tiles)


def march(
    packed: PackedField,
    journey: Journey,
    z: Float[Tensor, "rows hidden"],
    slope: Float[Tensor, "rows hidden"],
    coefficients: Float[Tensor, "rows count channels"],
) -> Float[Tensor, "rows hidden"]:
    """States at the end of the journey, from states and slopes at its beginning along Chebyshev polynomials, the slopes
    of a path. What became of the rows is in the journey.
    """
    inputs = (z, slope, coefficients, *packed.parameters)
    if torch.is_grad_enabled() and any(t.requires_grad for t in inputs):
        return _March.apply(packed, journey, *inputs)  # type: ignore[return-value]
    shares = min(torch.get_num_threads(), max(len(z), 1))
    return _Marching(packed, journey, z, slope, coefficients, shares).run(keep=False)


class _Marching:
    """One journey in calls of compiled code, each as far as its room goes."""

    def __init__(self, packed: PackedField, journey: Journey, z: Tensor, slope: Tensor, coefficients: Tensor, shares):
        self.packed, self.journey, self.shares = packed, journey, shares
        self.z, self.slope = (t.detach().clone(memory_format=torch.contiguous_format) for t in (z, slope))
        self.coefficients = coefficients.detach().contiguous()
        self.legs: list[_Leg] = []
        self.kept: list[Tensor] = []

    def run(self, keep: bool) -> Tensor:
        """To the end of all rows."""
        order, of_view = self.journey.waiting()
        while len(order):
            self._call(order, of_view, keep)
            order, of_view = self.journey.waiting()
        return self.z

    def _call(self, order: np.ndarray, of_view: list[int], keep: bool) -> None:
        way, rows = self.journey, len(self.z)
        ends, logged = np.empty((rows, LOGGED)), np.zeros(rows, dtype=np.int64)
        arrays = {name: getattr(way, name) for name in _ROWS if hasattr(way, name)}
        arrays |= {"ends": ends, "logged": logged}
        held = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        assert all(held[name] is arrays[name] for name in ("time", "size", "previous", "accepted", "rejected", "code"))
        tensors = {"coefficients": self.coefficients, "z": self.z, "slope": self.slope}
        places = {name: array.ctypes.data for name, array in held.items()}
        places |= {name: tensor.data_ptr() for name, tensor in tensors.items()}
        capacity, kept = self._room(order) if keep else (0, None)
        last = counts([-1] * self.shares)
        call(
            SOURCE,
            "march_forward",
            self.packed.sizes(self.shares),
            self.packed.forward_weights,
            counts(of_view),
            way.method.structure,
            ctypes.c_void_p(way.nodes.ctypes.data),
            way.control,
            self.extent,
            _Rows(*(places[name] for name in _ROWS)),
            ctypes.c_void_p(order.ctypes.data),
            kept,
            ctypes.c_int64(capacity),
            last,
        )
        row, place = np.nonzero(np.arange(LOGGED) < logged[:, None])
        way.log.append((row, ends[row, place]))
        if kept is not None:
            self.legs.append(_Leg(last, capacity))
            self.kept.append(kept)

    @property
    def extent(self) -> Any:
        """For C."""
        return _Extent(self.shares, self.journey.rate.shape[1], self.coefficients.shape[1], LOGGED)

    def _room(self, order: np.ndarray) -> tuple[int, Tensor]:
        """For the rounds of each share: as many as are expected, and at least one."""
        packed, stages = self.packed, len(self.journey.nodes) - 1
        numbers = packed.padded_hidden * (1 + packed.channels) + packed.padded_width + packed.channels + 2
        accepted = self.journey.accepted[order]
        # Rows beyond what was expected of them may have as much ahead again as a quarter of their way.
        ahead = np.maximum(np.maximum(self.journey.expected[order] - accepted, accepted / 4), 2).sum()
        steps = _MARGIN * ahead / self.shares + 2 * _BLOCK
        capacity = -(-int(steps * (stages * numbers + 8)) // 16) * 16
        return capacity, room_to_keep(self.shares, capacity)


class _March(torch.autograd.Function):
    """Keeps states, activations and entries of f(z) of all stages of accepted steps."""

    @staticmethod
    def forward(ctx, packed: PackedField, journey: Journey, z, slope, coefficients, *parameters):
        marching = _Marching(packed, journey, z, slope, coefficients, threads_for(len(z)))
        state = marching.run(keep=True)
        ctx.packed, ctx.journey, ctx.legs, ctx.extent = packed, journey, marching.legs, marching.extent
        ctx.save_for_backward(z, slope, coefficients, *parameters, *marching.kept)
        return state

    @staticmethod
    def backward(ctx, *gradients):
        (g,) = gradients
        z, slope, coefficients, *others = ctx.saved_tensors
        parameters, kept = others[:4], others[4:]
        packed, journey, needs = ctx.packed, ctx.journey, ctx.needs_input_grad
        if torch.is_grad_enabled():  # someone wants second derivatives
            plain = partial(_plain, packed, journey)
            return None, None, *differentiable(plain, (z, slope, coefficients, *parameters), needs[2:], g)
        shares = ctx.extent.shares
        sums, of_shares = packed.sums(any(needs[5:]), shares)
        g_state, g_slope = g.clone(memory_format=torch.contiguous_format), zeros(*g.shape)
        to_coefficients = zeros(*coefficients.shape) if needs[4] else None
        for leg, room in zip(reversed(ctx.legs), reversed(kept), strict=True):
            call(
                SOURCE,
                "march_backward",
                packed.sizes(shares),
                packed.all_weights,
                journey.method.structure,
                ctx.extent,
                room,
                ctypes.c_int64(leg.capacity),
                leg.last,
                g_state,
                g_slope,
                to_coefficients,
                sums,
            )
        return None, None, g_state, g_slope, to_coefficients, *packed.gradients(of_shares)


def _plain(packed: PackedField, journey: Journey, inputs: Sequence[Tensor]) -> Tensor:
    """The same steps in plain operations, which torch differentiates any number of times."""
    z, slope, coefficients, *parameters = inputs
    begin, end = journey.steps()
    degree = torch.arange(coefficients.shape[1])
    for step in range(begin.shape[1]):
        size = (end - begin)[:, step, None]
        times = np.where(journey.nodes[1:] == 1.0, end[:, step, None], begin[:, step, None] + journey.nodes[1:] * size)
        x = np.clip(2 * (times - journey.start[:, None]) / journey.length[:, None] - 1, -1.0, 1.0)
        features = torch.cos(degree * torch.from_numpy(np.arccos(x))[..., None]).float()
        h = torch.from_numpy(size).float()
        inside = (z, slope, features @ coefficients, *parameters)
        z, slope = packed.plain_step(journey.method, h, journey.rows_of_view, inside)
    return z
