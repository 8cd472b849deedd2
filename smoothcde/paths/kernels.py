"""Kernels of the Nadaraya-Watson path, as functions of u = (t - t_k) / h."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from smoothcde.checks import check_choice


@dataclass(frozen=True)
class Kernel:
    """A kernel by its logarithm where it is positive everywhere, by its value where its support is compact.

    Attributes:
        value: log k(u), or k(u) if compact.
        slope: d log k / du, or dk / du if compact.
        compact: zero for |u| >= 1.
    """

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    compact: bool = False


def _tricube(u: Tensor) -> Tensor:
    return (1 - u.abs() ** 3).clamp(min=0.0) ** 3


KERNELS = {
    "gaussian": Kernel(lambda u: -0.5 * u**2, lambda u: -u),
    "laplacian": Kernel(lambda u: -u.abs(), lambda u: -torch.sign(u)),
    "cauchy": Kernel(lambda u: -torch.log1p(u**2), lambda u: -2 * u / (1 + u**2)),
    "epanechnikov": Kernel(lambda u: (1 - u**2).clamp(min=0.0), lambda u: -2 * u * (u.abs() < 1), compact=True),
    "tricube": Kernel(_tricube, lambda u: -9 * u * u.abs() * (1 - u.abs() ** 3).clamp(min=0.0) ** 2, compact=True),
}


def kernel_named(name: str) -> Kernel:
    """The kernel of that name, or an error that lists them."""
    check_choice("kernel", name, KERNELS)
    return KERNELS[name]
