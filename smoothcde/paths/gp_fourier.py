"""The Gaussian process posterior mean on trigonometric features: a path for fixed graphs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from smoothcde.paths.base import Path, repeat_views
from smoothcde.paths.elimination import solve_beside_identity
from smoothcde.paths.gp_sums import precision_of
from smoothcde.series import SeriesBatch

CUT = 6.2
"""Frequencies up to this over the bandwidth: beyond, the kernel's spectrum is below 5e-9."""
APART = 6.5
"""Bandwidths between a window and its periodic repetition: the kernel is below 1e-9 there."""


@dataclass(frozen=True, eq=False)
class FourierBasis:
    """Frequencies of each view and how much of the kernel each carries, for windows up to `longest`.

    k_h(t, t') = sum_j amplitude_j^2 cos(frequency_j (t - t')), the trapezoidal rule for the kernel's Fourier integral,
    which converges faster than any power. Views that need fewer frequencies than others have zeros behind theirs.
    """

    longest: float
    frequencies: Float64[Tensor, "views frequencies"]
    amplitudes: Float64[Tensor, "views frequencies"]

    @classmethod
    def of(cls, bandwidths: Sequence[float], longest: float) -> "FourierBasis":
        """The basis for kernels of these widths on windows of at most this length, both in time units."""
        spacing = [2 * math.pi / (longest + APART * h) for h in bandwidths]
        counts = [math.ceil(CUT / (h * gap)) + 1 for h, gap in zip(bandwidths, spacing, strict=True)]
        h, gap, count = (torch.tensor(x, dtype=torch.float64)[:, None] for x in (bandwidths, spacing, counts))
        order = torch.arange(max(counts), dtype=torch.float64)
        frequency = order * gap
        spectrum = gap * h / math.sqrt(2 * math.pi) * torch.exp(-0.5 * (frequency * h) ** 2)
        power = torch.where(order > 0, 2 * spectrum, spectrum)
        return cls(longest, *(torch.where(order < count, x, 0.0) for x in (frequency, power.sqrt())))

    @property
    def size(self) -> int:
        """Unknowns of the system that each path needs."""
        return 2 * self.frequencies.shape[1] - 1


@dataclass(frozen=True, eq=False, kw_only=True)
class FourierGPPath(Path):
    """The same path as `GPPath`, made of operations that do not depend on the data.

    With features phi(t) = (a_j cos w_j t, a_j sin w_j t) of the kernel, the posterior mean is phi(t)^T v with
    (I + Phi^T P Phi) v = Phi^T P x: a symmetric system, at least the identity, which plain elimination solves. Nothing
    here looks at a value to decide what to do next, so that it can be traced into a graph; for anything else `GPPath`
    is faster. Windows longer than the basis was made for would meet their own repetition: refuse them.

    Attributes:
        frequencies: w of each row.
        cosines: coefficients of cos(w_j s), with s counted from the middle of the window.
        sines: of sin(w_j s).
    """

    frequencies: Float64[Tensor, "rows frequencies"]
    cosines: Float[Tensor, "rows frequencies channels"]
    sines: Float[Tensor, "rows frequencies channels"]

    @classmethod
    def fit(
        cls,
        batch: SeriesBatch,
        basis: FourierBasis,
        noise: Float64[Tensor, "views"],
        weights: Float[Tensor, "n views length"] | None = None,
        *,
        together: bool = False,
    ) -> "FourierGPPath":
        """Condition on a batch of series.

        Args:
            batch: the observations.
            basis: of the kernels, one view each.
            noise: sigma of each view.
            weights: attention per view and stamp.
            together: all channels are observed at the same stamps, so that one system serves all; the first channel's
                mask speaks for them.
        """
        views = basis.frequencies.shape[0]
        frequency, amplitude = (x.to(batch.device) for x in (basis.frequencies, basis.amplitudes))
        middle = (batch.start + batch.end) / 2
        angle = frequency[:, None, None, :] * (batch.times - middle[:, None])[:, :, None]
        cosine, sine = torch.cos(angle) * amplitude[:, None, None], torch.sin(angle) * amplitude[:, None, None]
        features = torch.cat([cosine, sine[..., 1:]], dim=-1)[:, :, None]  # [views, n, 1, length, size]

        precision = precision_of(batch, noise.to(batch.device), weights)  # [views, n, channels, length]
        seen = torch.where(batch.mask, batch.values.double(), 0.0)
        targets = seen[:, None] if together else seen.mT[..., None]  # [n, systems, length, columns]
        precision = precision[:, :, :1] if together else precision
        weighted = features.mT * precision[..., None, :]
        solved = solve_beside_identity(weighted @ features, weighted @ targets)
        solved = solved.squeeze(2) if together else solved.squeeze(-1).mT  # [views, n, size, channels]

        count = frequency.shape[1]
        cosines = solved[:, :, :count] * amplitude[:, None, :, None]
        sines = torch.nn.functional.pad(solved[:, :, count:], (0, 0, 1, 0)) * amplitude[:, None, :, None]
        return cls(
            start=repeat_views(batch.start, views),
            end=repeat_views(batch.end, views),
            frequencies=frequency[:, None].expand(-1, batch.values.shape[0], -1).flatten(0, 1),
            cosines=cosines.flatten(0, 1).to(batch.dtype),
            sines=sines.flatten(0, 1).to(batch.dtype),
        )

    @property
    def template(self) -> Tensor:
        """The coefficients of the cosines."""
        return self.cosines

    def _waves(self, t: Tensor) -> tuple[Tensor, Tensor]:
        middle = (self.start + self.end) / 2
        angle = (t - middle[:, None])[:, :, None] * self.frequencies[:, None]
        return torch.cos(angle), torch.sin(angle)

    def _evaluate(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        cosine, sine = self._waves(t)
        return cosine.to(self.dtype) @ self.cosines + sine.to(self.dtype) @ self.sines

    def _derivative(self, t: Float64[Tensor, "rows moments"], order: int) -> Float[Tensor, "rows moments channels"]:
        cosine, sine = self._waves(t)
        # Each derivative turns (cos, sin) into w (-sin, cos).
        for _ in range(order):
            cosine, sine = -sine * self.frequencies[:, None], cosine * self.frequencies[:, None]
        return cosine.to(self.dtype) @ self.cosines + sine.to(self.dtype) @ self.sines

    def _smooth_fields(self) -> list[str]:
        return ["cosines", "sines"]
