"""How smooth each view is: bandwidths as fractions of the time scale, given or learnt."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn

from smoothcde.checks import check_above_zero
from smoothcde.paths import chebyshev
from smoothcde.series import SeriesSet


def homogeneous(fraction: float, views: int) -> tuple[float, ...]:
    """The same bandwidth for every view."""
    return (float(fraction),) * views


def geometric(low: float, high: float, views: int) -> tuple[float, ...]:
    """Bandwidths from `low` to `high` with a constant ratio between neighbours."""
    return tuple(float(f) for f in np.geomspace(low, high, views))


def silverman(series: SeriesSet, views: int = 1) -> tuple[float, ...]:
    """Silverman's rule 0.9 min(std, IQR / 1.34) n^(-1/5) over observation times, as a fraction of the time scale.

    The classical choice for reconstruction, and a rough path: a Neural CDE usually does better with two to ten times as
    much. It is computed per series and averaged, so that no series' own length enters a batch.
    """
    series, rules = series.cropped(), []
    for begin, end in zip(series.offsets[:-1], series.offsets[1:], strict=True):
        seen = series.times[begin:end][np.isfinite(series.values[begin:end]).any(axis=1)]
        if len(seen) > 1:
            low, high = np.quantile(seen, [0.25, 0.75])
            rules.append(0.9 * min(seen.std(ddof=1), (high - low) / 1.34) * len(seen) ** -0.2)
    if not rules or not series.longest_span > 0:
        raise ValueError("Silverman's rule needs at least one series with two observations; give bandwidths instead")
    return homogeneous(float(np.mean(rules)) / series.longest_span, views)


class Bandwidths(nn.Module):
    """h per view in time units: fraction x time scale.

    Learnt bandwidths stay above `floor` (a quarter of the smallest start by default), which bounds the cost of a solve
    and fixes how many nodes a Gaussian process path needs: h = floor + softplus(raw).
    """

    fractions: Tensor

    def __init__(self, fractions: Sequence[float], time_scale: float, learn: bool = False, floor: float | None = None):
        super().__init__()
        # Checked as plain numbers, so that a model can be made on the meta device, to be counted only.
        given = [float(f) for f in fractions]
        if not given or not all(f > 0 and math.isfinite(f) for f in given):
            raise ValueError(
                f"bandwidths are {tuple(fractions)}; give one positive fraction of the time scale per view"
            )
        check_above_zero("time_scale", time_scale, "give the longest span of the training series")
        self.time_scale, self.learn = float(time_scale), learn
        self.floor = min(given) / 4 if floor is None else float(floor)
        start = torch.tensor(given, dtype=torch.float64)
        if not learn:
            self.register_buffer("fractions", start, persistent=False)
            return
        if min(given) <= self.floor or self.floor <= 0:
            raise ValueError(f"the floor {self.floor} must be positive and below every bandwidth {tuple(fractions)}")
        self.raw = nn.Parameter(torch.log(torch.expm1(start - self.floor)))

    @property
    def values(self) -> Float64[Tensor, "views"]:
        """Bandwidths in time units; differentiable if learnt."""
        fractions = self.floor + torch.nn.functional.softplus(self.raw) if self.learn else self.fractions
        return fractions.double() * self.time_scale

    def nodes(self, span: float) -> list[int]:
        """Chebyshev nodes per view for windows up to `span`, the same for every batch with windows below time scale."""
        # In whole time scales, so that a longer neighbour in the batch rarely changes a row's nodes.
        # A window of one time scale is a rounding error longer where its ends are large numbers, such as dates.
        scales = max(1.0, float(np.ceil(span / self.time_scale - 1e-6)))
        count = len(self.raw) if self.learn else len(self.fractions)
        smallest = [self.floor] * count if self.learn else self.fractions.tolist()
        return [chebyshev.node_count(scales / fraction) for fraction in smallest]
