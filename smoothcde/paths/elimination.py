"""Small systems by plain arithmetic, for graphs that know neither factorisations nor solves."""

import torch
from jaxtyping import Float
from torch import Tensor


def solve_positive(
    system: Float[Tensor, "*batch size size"], right: Float[Tensor, "*batch size columns"]
) -> Float[Tensor, "*batch size columns"]:
    """The solution of systems that are symmetric and at least the identity, by Gauss-Jordan elimination, unrolled.

    No pivots are searched: every pivot of I + B^T B is at least 1, and elimination without exchanges is as good as any.
    """
    size = system.shape[-1]
    unit = torch.eye(size, dtype=system.dtype, device=system.device)
    left = torch.cat([system, right.expand(*system.shape[:-1], right.shape[-1])], dim=-1)
    for k in range(size):
        # Column k becomes a unit vector, and is not looked at again.
        pivot = left[..., k : k + 1, 1:] / left[..., k : k + 1, :1]
        left = left[..., 1:] - (left[..., :1] - unit[:, k : k + 1]) * pivot
    return left
