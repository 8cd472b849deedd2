"""Chebyshev polynomials on [-1, 1]: nodes, transforms, derivatives, features."""

import math
from functools import lru_cache

import torch
from jaxtyping import Float, Float64
from torch import Tensor


def node_count(span_over_bandwidth: float, highest: float = 6.4) -> int:
    """How many nodes a Gaussian kernel of the given relative width needs on its window.

    The kernel's spectrum falls below 1e-9 at frequency 6.4 / bandwidth; a Chebyshev expansion resolves that frequency
    with as many nodes plus a few (measured: the posterior mean is within 1e-7 of the exact one, noise 0.01).

    Args:
        span_over_bandwidth: of window and kernel.
        highest: frequency to be resolved, over bandwidth.
    """
    frequency = highest / 2 * span_over_bandwidth
    return math.ceil(frequency + 2.3 * frequency ** (1 / 3) + 4.5)


@lru_cache(maxsize=256)
@torch.inference_mode(False)  # what is remembered may be needed for gradients later
def nodes(count: int) -> Float64[Tensor, "count"]:
    """The Chebyshev points of the first kind."""
    angle = (2 * torch.arange(count, dtype=torch.float64) + 1) * (torch.pi / (2 * count))
    return torch.cos(angle)


@lru_cache(maxsize=256)
@torch.inference_mode(False)  # what is remembered may be needed for gradients later
def transform(count: int) -> Float64[Tensor, "count count"]:
    """Takes values at the nodes to coefficients of T_0, T_1, ..."""
    angle = (2 * torch.arange(count, dtype=torch.float64) + 1) * (torch.pi / (2 * count))
    matrix = torch.cos(torch.arange(count, dtype=torch.float64)[:, None] * angle) * (2 / count)
    matrix[0] /= 2
    return matrix


@lru_cache(maxsize=256)
@torch.inference_mode(False)  # what is remembered may be needed for gradients later
def differentiation(count: int) -> Float64[Tensor, "count count"]:
    """Takes coefficients of a polynomial to those of its derivative."""
    k = torch.arange(count, dtype=torch.float64)
    higher = (k[None, :] > k[:, None]) & ((k[None, :] - k[:, None]) % 2 == 1)
    matrix = torch.where(higher, 2 * k[None, :], 0.0)
    matrix[0] /= 2
    return matrix


@lru_cache(maxsize=32)
@torch.inference_mode(False)  # what is remembered may be needed for gradients later
def features_at(shares: tuple, count: int) -> Float64[Tensor, "*shares count"]:
    """`features` at shares of the window [-1, 1], a tuple of numbers or of such tuples."""
    return features(2 * torch.tensor(shares, dtype=torch.float64) - 1, count)


@lru_cache(maxsize=32)
@torch.inference_mode(False)  # what is remembered may be needed for gradients later
def derivative_features(shares: tuple[float, ...], count: int, orders: int) -> Float64[Tensor, "count stacked"]:
    """Takes coefficients of a slope, in a row, to it and its derivatives, order by order, at shares of the window
    [-1, 1], whose length is the unit of time.
    """
    every = [features_at(shares, count)]
    for _ in range(orders - 1):
        every.append(2 * every[-1] @ differentiation(count))
    return torch.cat(every).mT.contiguous()


def features(x: Float[Tensor, "*batch"], count: int) -> Float[Tensor, "*batch count"]:
    """T_0(x) ... T_{count-1}(x) for x in [-1, 1]."""
    order = torch.arange(count, dtype=x.dtype, device=x.device)
    return torch.cos(order * torch.acos(x.clamp(-1.0, 1.0))[..., None])


def lagrange(x: Float64[Tensor, "*batch"], count: int) -> Float64[Tensor, "*batch count"]:
    """The Lagrange basis on `count` nodes, at x in [-1, 1]."""
    return features(x, count) @ transform(count).to(x.device)
