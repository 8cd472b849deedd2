"""Many symmetric tridiagonal systems at once."""

import torch
from jaxtyping import Float64
from torch import Tensor


class _SymmetricTridiagonalSolve(torch.autograd.Function):
    """Thomas elimination along dimension 1. The matrix is symmetric, so the backward pass is the same solve."""

    @staticmethod
    def forward(ctx, diagonal, off_diagonal, right):
        ctx.save_for_backward(diagonal, off_diagonal)
        return _eliminate(diagonal, off_diagonal, right)

    @staticmethod
    def backward(ctx, gradient):
        diagonal, off_diagonal = ctx.saved_tensors
        return None, None, _eliminate(diagonal, off_diagonal, gradient)


def _eliminate(diagonal: Tensor, off_diagonal: Tensor, right: Tensor) -> Tensor:
    pivots, sums = [diagonal[:, 0]], [right[:, 0]]
    for i in range(1, diagonal.shape[1]):
        share = off_diagonal[:, i - 1] / pivots[-1]
        pivots.append(diagonal[:, i] - share * off_diagonal[:, i - 1])
        sums.append(right[:, i] - share * sums[-1])
    solution = [sums[-1] / pivots[-1]]
    for i in range(diagonal.shape[1] - 2, -1, -1):
        solution.append((sums[i] - off_diagonal[:, i] * solution[-1]) / pivots[i])
    return torch.stack(solution[::-1], dim=1)


def solve_tridiagonal(
    diagonal: Float64[Tensor, "n length channels"],
    off_diagonal: Float64[Tensor, "n length-1 channels"],
    right: Float64[Tensor, "n length channels"],
) -> Float64[Tensor, "n length channels"]:
    """Solve symmetric tridiagonal systems along dimension 1, one per series and channel.

    Differentiable in the right-hand side only: the matrix is made of time stamps.
    """
    return _SymmetricTridiagonalSolve.apply(diagonal, off_diagonal, right)
