"""The recurrence at the heart of Mamba, walked stamp by stamp, with a backward of its own."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from smoothcde import native


def selective_scan(
    inputs: Float[Tensor, "n length inner"],
    gaps: Float[Tensor, "n length inner"],
    rates: Float[Tensor, "inner state"],
    write: Float[Tensor, "n length state"],
    read: Float[Tensor, "n length state"],
    skip: Float[Tensor, " inner"],
) -> Float[Tensor, "n length inner"]:
    """What a selective state space says at each stamp.

    A channel's state follows `h = exp(gap * rates) * h + gap * input * write`; it says `read . h + skip * input`.

    A parallel scan takes fewer steps, but each goes over every state of every stamp in memory. Here a stamp's states
    stay in the processor's cache, or in its registers where there is compiled code. In plain torch, of all that the
    recurrence makes only the states are kept for the backward; if there is to be none, only the last two of them.
    """
    check_sizes(inputs, gaps, rates, write, read, skip)
    with torch.autocast(inputs.device.type, enabled=False):  # a long sum would feel the rounding of mixed precision
        dtype = torch.promote_types(inputs.dtype, rates.dtype)
        inputs, gaps, rates, write, read = (part.to(dtype) for part in (inputs, gaps, rates, write, read))
        compiled = native.selective_scan
        if native.serves(compiled.SOURCE, inputs, rates, write, read, skip) and compiled.fits(rates.shape[1]):
            return compiled.selective_scan((inputs, gaps, rates, write, read, skip), _with_skip)
        return _Scan.apply(gaps * inputs, gaps, rates, write, read, torch.is_grad_enabled()) + skip * inputs


def check_sizes(inputs: Tensor, gaps: Tensor, rates: Tensor, write: Tensor, read: Tensor, skip: Tensor) -> None:
    """Compiled code believes what it is told of sizes."""
    (n, length, inner), state = inputs.shape, rates.shape[-1]
    narrow = (n, length, state)
    expected = {"gaps": inputs.shape, "rates": (inner, state), "write": narrow, "read": narrow, "skip": (inner,)}
    for (name, shape), part in zip(expected.items(), (gaps, rates, write, read, skip), strict=True):
        if part.shape != torch.Size(shape):
            raise ValueError(f"{name} of shape {tuple(part.shape)} do not go with the inputs; expected {tuple(shape)}")


def _with_skip(parts: Sequence[Tensor]) -> Tensor:
    inputs, gaps, rates, write, read, skip = parts
    return _stamp_by_stamp((gaps * inputs, gaps, rates, write, read)) + skip * inputs


def _stamp_by_stamp(parts: Sequence[Tensor]) -> Tensor:
    """What `_Scan` does, in operations that can be differentiated again and again."""
    driven, gaps, rates, write, read = parts
    state, outputs = driven.new_zeros(len(driven), *rates.shape), []
    for now in range(driven.shape[1]):
        state = torch.exp(gaps[:, now, :, None] * rates) * state + driven[:, now, :, None] * write[:, now, None, :]
        outputs.append((state @ read[:, now, :, None])[:, :, 0])
    return torch.stack(outputs, dim=1) if outputs else torch.zeros_like(driven)


class _Scan(torch.autograd.Function):
    """Outputs `read . h` of all stamps; time comes first inside, so that a stamp is one block of memory."""

    @staticmethod
    def forward(
        ctx: Any, driven: Tensor, gaps: Tensor, rates: Tensor, write: Tensor, read: Tensor, kept: bool
    ) -> Tensor:
        parts = (driven, gaps, rates, write, read)
        driven, gaps, write, read = map(_time_first, (driven, gaps, write, read))
        outputs, length = torch.empty_like(driven), len(driven)
        states = driven.new_empty(length if kept else 2, *driven.shape[1:], rates.shape[-1])
        decay = states.new_empty(states.shape[1:])
        for now in range(length):
            state = states[now % len(states)]
            torch.mul(driven[now, :, :, None], write[now, :, None, :], out=state)
            if now:
                _decay(gaps[now], rates, out=decay)
                state.addcmul_(decay, states[(now - 1) % len(states)])
            torch.bmm(state, read[now, :, :, None], out=outputs[now, :, :, None])
        ctx.save_for_backward(states, *parts)
        return outputs.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, outputs_grad: Tensor) -> tuple[Tensor | None, ...]:
        states, *parts = ctx.saved_tensors
        if torch.is_grad_enabled():  # someone wants second derivatives
            wanted = ctx.needs_input_grad[:-1]
            return *native.differentiable(_stamp_by_stamp, parts, wanted, outputs_grad), None
        rates = parts[2]
        driven, gaps, write, read = map(_time_first, (*parts[:2], *parts[3:]))
        outputs_grad = _time_first(outputs_grad)
        driven_grad, gaps_grad, write_grad, read_grad = map(torch.empty_like, (driven, gaps, write, read))
        gaps_grad[:1] = 0
        state_grad, rates_grad = states.new_zeros(2, *states.shape[1:])
        decay, moved = torch.empty_like(state_grad), torch.empty_like(state_grad)
        for now in reversed(range(len(states))):
            state_grad.addcmul_(outputs_grad[now, :, :, None], read[now, :, None, :])
            torch.bmm(outputs_grad[now, :, None, :], states[now], out=read_grad[now, :, None, :])
            torch.bmm(driven[now, :, None, :], state_grad, out=write_grad[now, :, None, :])
            torch.bmm(state_grad, write[now, :, :, None], out=driven_grad[now, :, :, None])
            if now:
                state_grad.mul_(_decay(gaps[now], rates, out=decay))
                torch.mul(state_grad, states[now - 1], out=moved)
                rates_grad.addcmul_(moved, gaps[now, :, :, None])
                torch.sum(moved.mul_(rates), -1, out=gaps_grad[now])
        driven_grad, gaps_grad, write_grad, read_grad = (
            part.transpose(0, 1) for part in (driven_grad, gaps_grad, write_grad, read_grad)
        )
        return driven_grad, gaps_grad, rates_grad.sum(0), write_grad, read_grad, None


def _time_first(part: Tensor) -> Tensor:
    return part.transpose(0, 1).contiguous()


def _decay(gaps: Tensor, rates: Tensor, out: Tensor) -> Tensor:
    """What is left of a state after a gap."""
    return torch.mul(gaps[..., None], rates, out=out).exp_()
