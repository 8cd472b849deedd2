"""Gaussian process posterior means: smooth paths at a cost linear in the number of observations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from smoothcde.paths import chebyshev
from smoothcde.paths.base import Path, positive_per_view, repeat_views, view_weights
from smoothcde.paths.gp_posterior import from_sums, posterior_of
from smoothcde.paths.gp_sums import ObservationSums, on_unit_window, precision_of
from smoothcde.series import SeriesBatch

MOST_NODES = 4_000
"""Nodes per view, beyond which a path is refused: a single system of that size takes 128 MB and seconds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GPPath(Path):
    """Posterior mean of a Gaussian process with kernel k_h(t, t') = exp(-(t - t')^2 / 2 h^2) (the paper's eq. 5).

    X(t) = k_h(t)^T (K_h + Sigma)^-1 x, with Sigma_kk = sigma^2 without weights and sigma^2 / (alpha_k + 1e-5) with
    them, a channel over its own observations. Larger bandwidth h, fewer solver steps: NFE grows like 1/h.

    **How it is computed.** Between r Chebyshev nodes Z over the window, k_h(t, t') = l(t)^T K_ZZ l(t') up to rounding,
    with l the Lagrange basis. With A = l at the observations, P = Sigma^-1 (zero where not observed) and G = A^T P A,
    the posterior mean is l(t)^T K_ZZ (I + G K_ZZ)^-1 A^T P x: a polynomial, known by its values at the nodes. The cost
    is O(N r^2), no kernel matrix is factored and no jitter is needed; the solve is in float64 whatever the batch's
    precision. A channel with fewer observations than nodes is solved at the size of its observations instead.
    `ExactGPPath` is the O(N^3) reference.

    ```python
    path = GPPath.fit(series.batch(), bandwidth=2.0, noise=0.01)
    path.evaluate(1.5), path.derivative(1.5)                    # [rows, channels] each
    weights = torch.softmax(scores, dim=-1)                     # [n, views, length]
    path = GPPath.fit(batch, bandwidth=(0.5, 2.0), noise=0.01, weights=weights)     # rows = 2 n, view-major
    ```

    Attributes:
        coefficients: of X in Chebyshev polynomials over the row's window.
        slopes: of X', likewise.
        covariance: of the node values, as a bilinear form in Chebyshev coefficients; only if asked for.
    """

    coefficients: Float[Tensor, "rows nodes channels"]
    slopes: Float[Tensor, "rows nodes channels"]
    covariance: Float64[Tensor, "rows own nodes nodes"] | None = None

    @classmethod
    def fit(
        cls,
        batch: SeriesBatch,
        bandwidth: Any,
        noise: Any,
        weights: Float[Tensor, "n views length"] | None = None,
        *,
        prior_mean: Any = 0.0,
        prior_scale: Any = 1.0,
        nodes: int | Sequence[int] | None = None,
        variance: bool = False,
    ) -> "GPPath":
        """Condition on a batch of series.

        Args:
            batch: the observations.
            bandwidth: h in time units, a number or one per view.
            noise: sigma, a number or one per view.
            weights: attention per view and stamp; stamps without observation are ignored whatever their weight.
            prior_mean: what the path returns to far from observations, a number or one per channel.
            prior_scale: standard deviation of the prior.
            nodes: Chebyshev nodes per view; from the batch's longest window and `bandwidth` by default. Give it when
                the bandwidth is learnt, from the smallest bandwidth allowed.
            variance: keep what `variance(t)` needs.
        """
        views = view_weights(weights, batch)
        widths = [torch.as_tensor(s).numel() for s in (bandwidth, noise, prior_scale)]
        if weights is None:
            views = max(views, *widths)
        bandwidth = positive_per_view(bandwidth, "bandwidth", views, batch)
        noise = positive_per_view(noise, "noise", views, batch)
        scale = positive_per_view(prior_scale, "prior_scale", views, batch)
        counts = _node_counts(nodes, bandwidth, batch)
        if max(counts) > MOST_NODES:
            narrowest, longest = float(bandwidth.detach().min()), float((batch.end - batch.start).max())
            raise ValueError(
                f"a bandwidth of {narrowest:g} on a window of {longest:g} needs {max(counts):,} nodes, more than "
                f"{MOST_NODES:,}; give a larger bandwidth or shorter windows (are both in the same unit of time?)"
            )
        mean = torch.as_tensor(prior_mean, dtype=torch.float64, device=batch.device)
        posterior = posterior_of(batch, mean)

        def solve(count: int, group: list[int]) -> tuple[Tensor, Tensor | None]:
            precision = precision_of(batch, noise[group], None if weights is None else weights[:, group])
            return posterior.solve(count, bandwidth[group], scale[group], precision, variance)

        return cls._of_views(solve, counts, batch.start, batch.end, mean, batch.dtype)

    @classmethod
    def of_sums(
        cls,
        sums: ObservationSums,
        start: Float64[Tensor, "n"],
        end: Float64[Tensor, "n"],
        bandwidth: Float64[Tensor, "views"],
        *,
        nodes: Sequence[int],
        dtype: torch.dtype,
    ) -> "GPPath":
        """The path that these sums over observations determine: they are all it needs to know of a series.

        Args:
            sums: over what was observed.
            start: where each series' window begins.
            end: where it ends.
            bandwidth: per view.
            nodes: per view.
            dtype: of the path.
        """

        def solve(count: int, group: list[int]) -> tuple[Tensor, Tensor | None]:
            gram, pull = sums.of(count, group)
            n, systems = gram.shape[1:3]
            window = (end - start)[:1] if sums.aligned else (end - start).repeat_interleave(systems)
            h = bandwidth[group]
            means, _ = from_sums(gram.flatten(1, 2), pull.flatten(1, 2), window, h, torch.ones_like(h), variance=False)
            return means if sums.shared else means[..., 0].unflatten(1, (n, systems)).mT, None

        return cls._of_views(solve, list(nodes), start, end, start.new_zeros(()), dtype)

    @classmethod
    def _of_views(
        cls,
        solve: Callable[[int, list[int]], tuple[Tensor, Tensor | None]],
        counts: list[int],
        start: Tensor,
        end: Tensor,
        mean: Tensor,
        dtype: torch.dtype,
    ) -> "GPPath":
        """Paths of all views; `solve` gives coefficients and covariances of those with the same number of nodes."""
        views, window = len(counts), end - start
        fitted: list[tuple[Tensor, Tensor | None]] = [(window, None)] * views
        # Views with equally many nodes are one batched system; there are never more groups than views.
        for count in sorted(set(counts)):
            group = [view for view in range(views) if counts[view] == count]
            means, covariances = solve(count, group)
            for place, view in enumerate(group):
                fitted[view] = (means[place], None if covariances is None else covariances[place])

        most = max(counts)
        coefficients = torch.cat([_padded(c, most, dims=1) for c, _ in fitted])
        stretch = 2 / torch.where(window > 0, window, 1.0)
        slopes = chebyshev.differentiation(most).to(start.device) @ coefficients
        slopes = slopes * repeat_views(stretch, views)[:, None, None]
        coefficients = torch.cat([coefficients[:, :1] + mean, coefficients[:, 1:]], dim=1)
        spreads = [_padded(spread, most, dims=2) for _, spread in fitted if spread is not None]
        return cls(
            start=repeat_views(start, views),
            end=repeat_views(end, views),
            coefficients=coefficients.to(dtype),
            slopes=slopes.to(dtype),
            covariance=torch.cat(spreads) if spreads else None,
        )

    @property
    def template(self) -> Tensor:
        """The coefficients of X."""
        return self.coefficients

    def _features(self, t: Tensor) -> Tensor:
        x = on_unit_window(t, self.start[:, None], self.end[:, None])
        return chebyshev.features(x.to(self.dtype), self.coefficients.shape[1])

    def _evaluate(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        return self._features(t) @ self.coefficients

    def _derivative(self, t: Float64[Tensor, "rows moments"], order: int) -> Float[Tensor, "rows moments channels"]:
        slopes = self.slopes
        if order > 1:
            window = self.end - self.start
            stretch = (2 / torch.where(window > 0, window, 1.0))[:, None, None]
            again = torch.linalg.matrix_power(chebyshev.differentiation(slopes.shape[1]).to(self.device), order - 1)
            slopes = (again @ slopes.double() * stretch ** (order - 1)).to(self.dtype)
        return self._features(t) @ slopes

    def slopes_at(self, shares: Float64[Tensor, "views moments"]) -> Float[Tensor, "rows moments channels"]:
        """X' at given shares of each row's own window: one product with features that all rows of a view share."""
        features = chebyshev.features(2 * shares - 1, self.slopes.shape[1]).to(self.dtype)
        slopes = self.slopes.unflatten(0, (shares.shape[0], -1))
        return (features[:, None] @ slopes).flatten(0, 1)

    def variance(self, t: Any) -> Float64[Tensor, "rows *moments channels"]:
        """The posterior variance of X(t), shaped as by `evaluate`; needs `fit(..., variance=True)`."""
        if self.covariance is None:
            raise ValueError("this path was fitted without its variance; call GPPath.fit(..., variance=True)")
        times, single = self._times(t)
        times = torch.clamp(times, self.start[:, None], self.end[:, None])
        x = on_unit_window(times, self.start[:, None], self.end[:, None])
        basis = chebyshev.features(x, self.covariance.shape[-1])
        spread = torch.einsum("rmi,rcij,rmj->rmc", basis, self.covariance, basis).clamp(min=0.0)
        spread = spread.expand(*spread.shape[:2], self.channels)
        return spread[:, 0] if single else spread

    def _smooth_fields(self) -> list[str]:
        return ["coefficients", "slopes"]


def _node_counts(nodes: int | Sequence[int] | None, bandwidth: Tensor, batch: SeriesBatch) -> list[int]:
    views = len(bandwidth)
    if nodes is None:
        longest = float((batch.end - batch.start).max()) if len(batch) else 0.0
        return [chebyshev.node_count(longest / h) for h in bandwidth.detach().tolist()]
    counts = [nodes] * views if isinstance(nodes, int) else list(nodes)
    if len(counts) != views or min(counts) < 1:
        raise ValueError(f"nodes is {nodes!r}; give one positive number, or one per view ({views})")
    return counts


def _padded(coefficients: Tensor, count: int, dims: int) -> Tensor:
    """Zeros for the Chebyshev polynomials that a view with fewer nodes does not have."""
    own = coefficients.shape[-1] if dims == 2 else coefficients.shape[-2]
    missing = count - own
    if missing == 0:
        return coefficients
    pad = (0, missing, 0, missing) if dims == 2 else (0, 0, 0, missing)
    return torch.nn.functional.pad(coefficients, pad)
