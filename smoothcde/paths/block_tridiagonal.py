"""Symmetric positive definite systems whose blocks touch only their neighbours, in time linear in the blocks."""

from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor


def solve_blocks(
    diagonal: Float64[Tensor, "blocks systems size size"],
    beside: Float64[Tensor, "blocks-1 systems size size"],
    right: Float64[Tensor, "blocks systems size columns"],
) -> Float64[Tensor, "blocks systems size columns"]:
    """The solution of systems with `diagonal[k]` in place (k, k), `beside[k]` in (k, k + 1), its transpose opposite.

    A Cholesky factorisation block by block, all systems at once. The backward pass solves once more with the same
    factors, so that nothing but them is kept.
    """
    return _Solve.apply(diagonal, beside, right)  # type: ignore[return-value]


class _Solve(torch.autograd.Function):
    """x = H^-1 b; with y = H^-1 dx, the gradient is y for b and -y x^T for H."""

    @staticmethod
    def forward(ctx: Any, diagonal: Tensor, beside: Tensor, right: Tensor) -> Tensor:
        lower, upper = _factors(diagonal, beside)
        solution = _solve(lower, upper, right)
        ctx.save_for_backward(lower, upper, solution)
        return solution

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        lower, upper, x = ctx.saved_tensors
        y = _solve(lower, upper, gradients[0])
        return -y @ x.mT, -(y[:-1] @ x[1:].mT + x[:-1] @ y[1:].mT), y


def _factors(diagonal: Tensor, beside: Tensor) -> tuple[Tensor, Tensor]:
    """H = R^T R with upper triangular R: the transposes of its diagonal blocks, and those beside them."""
    lower, upper = torch.empty_like(diagonal), torch.empty_like(beside)
    left = diagonal[0]
    for k in range(len(diagonal)):
        lower[k] = torch.linalg.cholesky(left)
        if k + 1 < len(diagonal):
            upper[k] = torch.linalg.solve_triangular(lower[k], beside[k], upper=False)
            left = diagonal[k + 1] - upper[k].mT @ upper[k]
    return lower, upper


def _solve(lower: Tensor, upper: Tensor, right: Tensor) -> Tensor:
    x = torch.empty_like(right)
    for k in range(len(right)):
        part = right[k] - upper[k - 1].mT @ x[k - 1] if k else right[0]
        x[k] = torch.linalg.solve_triangular(lower[k], part, upper=False)
    for k in reversed(range(len(right))):
        part = x[k] - upper[k] @ x[k + 1] if k + 1 < len(right) else x[k]
        x[k] = torch.linalg.solve_triangular(lower[k].mT, part, upper=True)
    return x
