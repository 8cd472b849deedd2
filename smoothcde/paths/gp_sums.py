"""Sums over observations: all that a Gaussian process path knows of a series."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float64
from torch import Tensor

from smoothcde.paths import chebyshev
from smoothcde.series import SeriesBatch

WEIGHT_FLOOR = 1e-5
"""The paper's epsilon: even an observation without any attention keeps this much precision."""
LARGEST_TABLE = 4_000_000
"""Numbers in a table of products of basis functions, beyond which it costs more memory than it saves time."""


@runtime_checkable
class ObservationSums(Protocol):
    """A^T P A and A^T P x over the observations of each series, A being the Lagrange basis on its window's nodes.

    Attributes:
        shared: True if one system serves all channels, because all are observed at the same stamps.
        aligned: True if all windows are equally long.
    """

    shared: bool
    aligned: bool

    def of(self, count: int, group: list[int]) -> tuple[Tensor, Tensor]:
        """`[group, n, systems, count, count]` and `[group, n, systems, count, columns]` for some views.

        With `shared` there is one system with a column per channel, otherwise a system of one column per channel.
        """
        ...


def gram_on_grid(
    basis: Float64[Tensor, "length count"], precision: Float64[Tensor, "*batch length"]
) -> Float64[Tensor, "*batch count count"]:
    """A^T P A for many P and one A: a single product with a table of all pairs of basis functions."""
    pairs = (basis[:, :, None] * basis[:, None, :]).flatten(1)
    return (precision.reshape(-1, len(basis)) @ pairs).view(*precision.shape[:-1], basis.shape[1], basis.shape[1])


def lagrange(x: Float64[Tensor, "*batch"], count: int) -> Float64[Tensor, "*batch count"]:
    """The Lagrange basis on `count` Chebyshev nodes, at positions in [-1, 1]."""
    return chebyshev.features(x, count) @ chebyshev.transform(count).to(x.device)


def on_unit_window(t: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Times as positions in [-1, 1]; a window without extent is all at -1."""
    window = end - start
    return 2 * (t - start) / torch.where(window > 0, window, 1.0) - 1


def precision_of(
    batch: SeriesBatch, noise: Tensor, weights: Tensor | None, shared: bool = False
) -> Float64[Tensor, "views n own length"]:
    """1 / Sigma per view, series, channel and stamp; zero where a channel was not observed. `shared` gives it for the
    first channel, to serve for all where they are observed together.
    """
    observed = (batch.mask[:, :, :1] if shared else batch.mask).mT.double()
    if weights is None:
        return observed / noise[:, None, None, None] ** 2
    attention = weights.double().transpose(0, 1)[:, :, None, :] + WEIGHT_FLOOR
    return observed * attention / noise[:, None, None, None] ** 2
