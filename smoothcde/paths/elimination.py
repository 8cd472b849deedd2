"""Small systems by plain arithmetic, for graphs that know neither factorisations nor solves."""

import torch
from jaxtyping import Float
from torch import Tensor


def solve_beside_identity(
    system: Float[Tensor, "*batch size size"], right: Float[Tensor, "*batch size columns"]
) -> Float[Tensor, "*batch size columns"]:
    """x of (I + system) x = right for symmetric systems without negative eigenvalues: Gauss-Jordan, unrolled.

    No pivots are searched: every pivot of I + B^T B is at least 1, and elimination without exchanges is as good as any.
    The identity is never added to the matrix, which saves taking it off again from every column that has become a unit
    vector.
    """
    left = torch.cat([system, right.expand(*system.shape[:-1], right.shape[-1])], dim=-1)
    for k in range(system.shape[-1]):
        # Column k is done with, and not looked at again.
        column, left = left[..., :1], left[..., 1:]
        left = left - column * (left[..., k : k + 1, :] / (column[..., k : k + 1, :] + 1))
    return left
