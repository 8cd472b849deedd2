"""tanh and the product with dX/dt in one go: the memory-bound half of a field's evaluation."""

import torch
from jaxtyping import Float
from torch import Tensor


class _TanhContraction(torch.autograd.Function):
    """sum_c tanh(u_c) dx_c, keeping only tanh(u) for the backward pass.

    A batched matrix product over so few channels is the slow way: at 792 rows, 128 x 3, on one core, this takes a
    quarter of its time forward and an eighth backward.
    """

    @staticmethod
    def forward(ctx, u: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
        f = torch.tanh(u)
        total = f[:, 0] * dx[:, 0:1]
        for channel in range(1, dx.shape[1]):
            total.addcmul_(f[:, channel], dx[:, channel : channel + 1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(f, dx)
        return total, f  # kept as an output, f has a graph of its own: second derivatives are right too

    @staticmethod
    def backward(ctx, *gradients: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        of_total, to_f = gradients
        f, dx = ctx.saved_tensors
        to_dx = None
        if of_total is not None:
            through = of_total[:, None, :] * dx[:, :, None]
            to_f = through if to_f is None else to_f + through
            to_dx = torch.bmm(f, of_total[:, :, None])[:, :, 0] if ctx.needs_input_grad[1] else None
        return None if to_f is None else torch.ops.aten.tanh_backward(to_f, f), to_dx


def tanh_contraction(
    u: Float[Tensor, "rows channels hidden"], dx: Float[Tensor, "rows channels"]
) -> Float[Tensor, "rows hidden"]:
    """sum_c tanh(u[:, c]) dx[:, c]."""
    return _TanhContraction.apply(u, dx)[0]  # type: ignore[index]
