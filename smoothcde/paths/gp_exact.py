"""The Gaussian process path by exact Cholesky: the reference that `GPPath` is tested against."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from smoothcde.paths.base import LONGEST_STEP, Path, positive_per_view, repeat_views, view_weights
from smoothcde.paths.gp_sums import precision_of
from smoothcde.series import SeriesBatch


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactGPPath(Path):
    """X(t) = k_h(t)^T (K_h + Sigma)^-1 x with the N x N matrix factored in float64: O(N^3) to fit, O(N) per evaluation.

    Same meaning and arguments as `GPPath`; use that one. Derivatives come from automatic differentiation.

    Attributes:
        stamps: of the observations.
        dual: (K_h + Sigma)^-1 x, zero where a channel was not observed.
        bandwidth: h of each row.
    """

    stamps: Float64[Tensor, "rows length"]
    dual: Float64[Tensor, "rows length channels"]
    bandwidth: Float64[Tensor, "rows"]

    @classmethod
    def fit(
        cls, batch: SeriesBatch, bandwidth: Any, noise: Any, weights: Float[Tensor, "n views length"] | None = None
    ) -> "ExactGPPath":
        """Condition on a batch of series, prior mean 0 and scale 1."""
        views = view_weights(weights, batch)
        if weights is None:
            views = max(views, torch.as_tensor(bandwidth).numel(), torch.as_tensor(noise).numel())
        bandwidth = positive_per_view(bandwidth, "bandwidth", views, batch)
        precision = precision_of(batch, positive_per_view(noise, "noise", views, batch), weights).flatten(0, 1)
        stamps = repeat_views(batch.times, views)
        h = bandwidth.repeat_interleave(len(batch))
        kernel = torch.exp(-0.5 * ((stamps[:, :, None] - stamps[:, None, :]) / h[:, None, None]) ** 2)[:, None]
        seen = precision > 0  # [rows, channels, length]
        # An unobserved stamp gets its own unit equation, decoupled from all others.
        together = seen[..., :, None] & seen[..., None, :]
        noise_variance = torch.where(seen, 1 / torch.where(seen, precision, 1.0), 1.0)
        system = torch.where(together, kernel, 0.0) + torch.diag_embed(noise_variance)
        values = repeat_views((batch.values.double() * batch.mask).mT, views)
        dual = torch.cholesky_solve(values[..., None], torch.linalg.cholesky(system))[..., 0].mT
        return cls(
            start=repeat_views(batch.start, views),
            end=repeat_views(batch.end, views),
            stamps=stamps,
            dual=dual,
            bandwidth=h,
        )

    @property
    def longest_step(self) -> Float64[Tensor, "rows"]:
        """A few bandwidths."""
        return LONGEST_STEP * self.bandwidth.detach()

    @property
    def template(self) -> Tensor:
        """The dual weights."""
        return self.dual

    def _evaluate(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        distance = (t[:, :, None] - self.stamps[:, None, :]) / self.bandwidth[:, None, None]
        return torch.exp(-0.5 * distance**2) @ self.dual

    def _smooth_fields(self) -> list[str]:
        return ["dual", "bandwidth"]
