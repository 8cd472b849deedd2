"""tanh and the product with dX/dt in one go: the memory-bound half of a field's evaluation."""

import torch
from jaxtyping import Float
from torch import Tensor


class _TanhContraction(torch.autograd.Function):
    """sum_c tanh(u_c) dx_c by way of tanh(u) = 2 s - 1 with s = sigmoid(2 u), keeping only s for the backward pass.

    On a CPU torch's sigmoid takes a third of the time of its tanh, and a batched matrix product over so few channels is
    slow: at 792 rows, 128 x 3, this halves the cost of both. The error is one rounding of 1, however small tanh(u) is.
    """

    @staticmethod
    def forward(ctx, u: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
        s = torch.mul(u, 2).sigmoid_()
        twice = 2 * dx
        total = s[:, 0] * twice[:, 0:1]
        for channel in range(1, dx.shape[1]):
            total.addcmul_(s[:, channel], twice[:, channel : channel + 1])
        total.sub_(dx.sum(dim=1, keepdim=True))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(s, dx)
        return total, s  # kept as an output, s has a graph of its own: second derivatives are right too

    @staticmethod
    def backward(ctx, *gradients: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        of_total, of_s = gradients
        to_u = None if of_s is None else 2 * of_s
        s, dx = ctx.saved_tensors
        to_dx = None
        if of_total is not None:
            through = of_total[:, None, :] * (4 * dx)[:, :, None]
            to_u = through if to_u is None else to_u + through
            if ctx.needs_input_grad[1]:
                to_dx = 2 * torch.linalg.vecdot(s, of_total[:, None, :]) - of_total.sum(dim=1, keepdim=True)
        return None if to_u is None else torch.ops.aten.sigmoid_backward(to_u, s), to_dx


def tanh_contraction(
    u: Float[Tensor, "rows channels hidden"], dx: Float[Tensor, "rows channels"]
) -> Float[Tensor, "rows hidden"]:
    """sum_c tanh(u[:, c]) dx[:, c]."""
    return _TanhContraction.apply(u, dx)[0]  # type: ignore[index]
