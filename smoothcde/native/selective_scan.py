"""The recurrence of selective state spaces in compiled code, as one node of torch's graph."""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from smoothcde.native.library import call, library, pointers, structure
from smoothcde.native.memory import room_to_keep
from smoothcde.native.panels import differentiable, zeros

SOURCE = "selective_scan.c"

_Sizes = structure("_Sizes", ctypes.c_int64, "series", "length", "padded_channels", "states", "threads")
_Parts = structure("_Parts", ctypes.c_void_p, "inputs", "gaps", "rates", "write", "read", "skip")

Plain = Callable[[Sequence[Tensor]], Tensor]


class _Constants(NamedTuple):
    lanes: int
    stride: int
    most_states: int


@cache
def _constants() -> _Constants:
    loaded, numbers = library(SOURCE), (ctypes.c_int64 * 3)()
    assert loaded is not None
    loaded.scan_constants(numbers)
    return _Constants(*numbers)


def fits(states: int) -> bool:
    """Whether compiled code knows states of this size."""
    return states <= _constants().most_states


def selective_scan(parts: Sequence[Tensor], plain: Plain) -> Float[Tensor, "n length channels"]:
    """What the states say of inputs and gaps `[n, length, channels]`, rates `[channels, states]`, write and read
    `[n, length, states]`, and skip `[channels]`. `plain` is the same in torch's own operations, for second derivatives.
    """
    if torch.is_grad_enabled():
        return _Scan.apply(plain, *parts)  # type: ignore[return-value]
    return _Packed(parts).forward(kept=None)


class _Packed:
    """The parts as compiled code reads them: channels last, filled up to whole vectors."""

    def __init__(self, parts: Sequence[Tensor]):
        inputs, gaps, rates, write, read, skip = (part.detach() for part in parts)
        self.channels, states = rates.shape
        self.short = -self.channels % _constants().lanes
        wide = (self._wide(inputs), self._wide(gaps), self._wide(rates.mT))
        self.parts = (*wide, write.contiguous(), read.contiguous(), self._wide(skip))
        n, length, padded = self.parts[0].shape
        self.sizes = _Sizes(n, length, padded, states, torch.get_num_threads())

    def _wide(self, tensor: Tensor) -> Tensor:
        return pad(tensor, (0, self.short)) if self.short else tensor.contiguous()

    def room(self) -> Tensor:
        """For the states before every so many stamps."""
        n, length, padded = self.parts[0].shape
        return room_to_keep(n, -(-length // _constants().stride), self.sizes.states, padded)

    def forward(self, kept: Tensor | None) -> Tensor:
        outputs = torch.empty_like(self.parts[0])
        call(SOURCE, "selective_scan_forward", self.sizes, _Parts(*pointers(self.parts)), outputs, kept)
        return outputs[..., : self.channels]

    def backward(self, g: Tensor, kept: Tensor) -> tuple[Tensor, ...]:
        """Gradients of the parts."""
        shared = [zeros(self.sizes.threads, *part.shape) for part in (self.parts[2], self.parts[5])]
        inputs, gaps, write, read = (torch.empty_like(self.parts[place]) for place in (0, 1, 3, 4))
        found = _Parts(*pointers((inputs, gaps, shared[0], write, read, shared[1])))
        parts = _Parts(*pointers(self.parts))
        call(SOURCE, "selective_scan_backward", self.sizes, parts, kept, self._wide(g), found)
        rates, skip = (share.sum(dim=0)[..., : self.channels] for share in shared)
        return inputs[..., : self.channels], gaps[..., : self.channels], rates.mT, write, read, skip


class _Scan(torch.autograd.Function):
    """Keeps a few states of each series; those between them are made again."""

    @staticmethod
    def forward(ctx, plain: Plain, *parts):
        packed = _Packed(parts)
        kept = packed.room()
        outputs = packed.forward(kept)
        ctx.plain, ctx.packed = plain, packed
        ctx.save_for_backward(kept, *parts)
        return outputs

    @staticmethod
    def backward(ctx, *gradients):
        (g,), (kept, *parts) = gradients, ctx.saved_tensors
        if torch.is_grad_enabled():  # someone wants second derivatives
            return None, *differentiable(ctx.plain, parts, ctx.needs_input_grad[1:], g)
        return None, *ctx.packed.backward(g, kept)
