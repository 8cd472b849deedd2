"""Sums over observations: all that a Gaussian process path knows of a series."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float64
from torch import Tensor

from smoothcde.paths import chebyshev
from smoothcde.series import SeriesBatch

WEIGHT_FLOOR = 1e-5
"""The paper's epsilon: even an observation without any attention keeps this much precision."""


@runtime_checkable
class ObservationSums(Protocol):
    """A^T P A and A^T P x over the observations of each series, A being Chebyshev polynomials over its window.

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


def sums_over(
    x: Float64[Tensor, "windows places"],
    precision: Float64[Tensor, "views n systems places"],
    pulled: Float64[Tensor, "views n columns places"],
    count: int,
) -> tuple[Float64[Tensor, "views n systems count count"], Float64[Tensor, "views n columns count"]]:
    """A^T P A and A^T P x for `count` Chebyshev polynomials, from P and P x at places in [-1, 1]: of each series, or of
    a single window that is everyone's.

    A product of two of them is the mean of two others, T_i T_j = (T_{i+j} + T_{|i-j|}) / 2. So all entries of A^T P A
    come of the sums of P T_m over the places, m up to 2 count - 2, and the second half of these from sums of
    (P T_{count-1}) T_m: a few rows in one product with the basis.
    """
    basis = chebyshev.features(x, count)
    rows = torch.cat([precision, precision * basis[:, None, :, -1], pulled], dim=2)
    if len(basis) == 1:
        sums = rows @ basis[0]
    else:
        sums = (rows.transpose(0, 1).flatten(1, 2) @ basis).unflatten(1, rows.shape[::2]).transpose(0, 1)
    lower, upper, pull = sums.split([precision.shape[2], precision.shape[2], pulled.shape[2]], dim=2)
    back = lower.flip(-1)
    along = torch.cat([lower[..., :-1], 2 * upper - back], dim=-1)  # sums of P T_0, P T_1, ...
    about = torch.cat([back[..., :-1], lower], dim=-1)  # the same backwards to P T_0, and forth again
    return (along.unfold(-1, count, 1) + about.unfold(-1, count, 1).flip(-2)) / 2, pull


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
