"""Gaussian process posterior means: smooth paths at a cost linear in the number of observations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from smoothcde.paths import chebyshev
from smoothcde.paths.base import Path, positive_per_view, repeat_views, view_weights
from smoothcde.series import SeriesBatch

WEIGHT_FLOOR = 1e-5
"""The paper's epsilon: even an observation without any attention keeps this much precision."""
MOST_NODES = 4_000
"""Nodes per view, beyond which a path is refused: a single system of that size takes 128 MB and seconds."""
LARGEST_TABLE = 4_000_000
"""Numbers in a table of products of basis functions, beyond which it costs more memory than it saves time."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GPPath(Path):
    """Posterior mean of a Gaussian process with kernel k_h(t, t') = exp(-(t - t')^2 / 2 h^2) (the paper's eq. 5).

    X(t) = k_h(t)^T (K_h + Sigma)^-1 x, with Sigma_kk = sigma^2 without weights and sigma^2 / (alpha_k + 1e-5) with
    them, a channel over its own observations. Larger bandwidth h, fewer solver steps: NFE grows like 1/h.

    **How it is computed.** Between r Chebyshev nodes Z over the window, k_h(t, t') = l(t)^T K_ZZ l(t') up to rounding,
    with l the Lagrange basis. With A = l at the observations, P = Sigma^-1 (zero where not observed) and G = A^T P A,
    the posterior mean is l(t)^T K_ZZ (I + G K_ZZ)^-1 A^T P x: a polynomial, known by its values at the nodes. The cost
    is O(N r^2), no kernel matrix is factored and no jitter is needed; the solve is in float64 whatever the batch's
    precision. `ExactGPPath` is the O(N^3) reference.

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

        posterior = _Posterior(batch, mean)
        fitted: list[tuple[Tensor, Tensor | None]] = [(batch.values, None)] * views
        # Views with equally many nodes are one batched system; there are never more groups than views.
        for count in sorted(set(counts)):
            group = [view for view in range(views) if counts[view] == count]
            precision = precision_of(batch, noise[group], None if weights is None else weights[:, group])
            means, covariances = posterior.solve(count, bandwidth[group], scale[group], precision, variance)
            for view, coefficients, covariance in zip(group, means, covariances, strict=True):
                fitted[view] = (coefficients, covariance)

        most = max(counts)
        coefficients = torch.cat([_padded(c, most, dims=1) for c, _ in fitted])
        window = repeat_views(batch.end - batch.start, views)
        stretch = 2 / torch.where(window > 0, window, 1.0)
        slopes = chebyshev.differentiation(most).to(batch.device) @ coefficients * stretch[:, None, None]
        coefficients = torch.cat([coefficients[:, :1] + mean, coefficients[:, 1:]], dim=1)
        covariance = torch.cat([_padded(v, most, dims=2) for _, v in fitted if v is not None]) if variance else None
        return cls(
            start=repeat_views(batch.start, views),
            end=repeat_views(batch.end, views),
            coefficients=coefficients.to(batch.dtype),
            slopes=slopes.to(batch.dtype),
            covariance=covariance,
        )

    @property
    def template(self) -> Tensor:
        """The coefficients of X."""
        return self.coefficients

    def _features(self, t: Tensor) -> Tensor:
        x = _on_unit_window(t, self.start[:, None], self.end[:, None])
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
        x = _on_unit_window(times, self.start[:, None], self.end[:, None])
        basis = chebyshev.features(x, self.covariance.shape[-1])
        spread = torch.einsum("rmi,rcij,rmj->rmc", basis, self.covariance, basis).clamp(min=0.0)
        spread = spread.expand(*spread.shape[:2], self.channels)
        return spread[:, 0] if single else spread

    def _smooth_fields(self) -> list[str]:
        return ["coefficients", "slopes"]


class _Posterior:
    """What all views of a batch share while they are conditioned on it."""

    def __init__(self, batch: SeriesBatch, mean: Tensor):
        window = batch.end - batch.start
        x = _on_unit_window(batch.times, batch.start[:, None], batch.end[:, None])
        # Series on one common grid share their basis and kernel, and what follows is a few large products.
        self.aligned = len(batch) > 1 and bool((x == x[:1]).all() & (window == window[:1]).all())
        self.x, self.window = (x[:1], window[:1]) if self.aligned else (x, window)
        # One system serves all channels observed at the same stamps; otherwise each channel has its own.
        self.shared = bool((batch.mask == batch.mask[:, :, :1]).all())
        centred = (batch.values.double() - mean) * batch.mask
        self.targets = centred[:, None] if self.shared else centred.transpose(1, 2)[..., None]

    def solve(
        self, count: int, bandwidth: Tensor, scale: Tensor, precision: Tensor, variance: bool
    ) -> tuple[Sequence[Tensor], Sequence[Tensor | None]]:
        """Chebyshev coefficients `[n, count, channels]` (and covariance) for each view of a group.

        `precision` is [views, n, 1 or channels, length]: channels that share their stamps share a system.
        """
        device = self.x.device
        precision = precision[:, :, :1] if self.shared else precision
        to_coefficients = chebyshev.transform(count).to(device)
        basis = chebyshev.features(self.x, count) @ to_coefficients  # [n or 1, length, count], Lagrange at the stamps
        node = chebyshev.nodes(count).to(device)
        distance = (node[:, None] - node) / 2 * self.window[:, None, None]
        kernel = torch.exp(-0.5 * (distance / bandwidth[:, None, None, None]) ** 2) * scale[:, None, None, None] ** 2
        kernel = kernel[:, :, None]  # [views, n or 1, 1, count, count]
        gram, pull = self._sums(basis, precision)
        system = torch.eye(count, dtype=torch.float64, device=device) + _times(gram, kernel)
        coefficients = _times(_solve(system, pull).mT, kernel @ to_coefficients.mT).mT
        coefficients = coefficients.squeeze(2) if self.shared else coefficients.squeeze(-1).mT
        if not variance:
            return coefficients.unbind(), [None] * len(coefficients)
        # K (I + G K)^-1 = ((I + K G)^-1) K, symmetric; no subtraction, so small variances keep their digits.
        spread = _solve(system.mT, kernel.expand_as(system)).mT
        return coefficients.unbind(), (to_coefficients @ spread @ to_coefficients.mT).unbind()

    def _sums(self, basis: Tensor, precision: Tensor) -> tuple[Tensor, Tensor]:
        """A^T P A and A^T P x, `[views, n, systems, count, count or columns]`."""
        length, count = basis.shape[1:]
        if self.aligned and length * count**2 <= LARGEST_TABLE:
            pairs = (basis[0, :, :, None] * basis[0, :, None, :]).flatten(1)
            gram = precision.reshape(-1, length) @ pairs
            pull = (precision[..., None] * self.targets).mT @ basis[0]
            return gram.view(*precision.shape[:3], count, count), pull.mT
        weighted = basis.mT[None, :, None] * precision[:, :, :, None, :]
        return weighted @ basis[None, :, None], weighted @ self.targets[None]


def _times(left: Tensor, right: Tensor) -> Tensor:
    """`left @ right` where all series of a view may share `right`: then it is one product per view."""
    if right.shape[1] == left.shape[1]:
        return left @ right
    return (left.flatten(1, -2) @ right[:, 0, 0]).view(*left.shape[:-1], right.shape[-1])


def _solve(systems: Tensor, right: Tensor) -> Tensor:
    """Solve many systems; large ones on the CPU one by one.

    Once `torch.set_num_threads` was called, MKL's batched LU of matrices larger than about 150 fails or never returns
    (pytorch issue 142815). A matrix of that size keeps the cores busy by itself.
    """
    if systems.device.type != "cpu" or systems.shape[-1] <= 100:
        return torch.linalg.solve(systems, right)
    pairs = zip(systems.flatten(0, -3), right.flatten(0, -3), strict=True)
    return torch.stack([torch.linalg.solve(system, side) for system, side in pairs]).view_as(right)


def _on_unit_window(t: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Times as positions in [-1, 1]; a window without extent is all at -1."""
    window = end - start
    return 2 * (t - start) / torch.where(window > 0, window, 1.0) - 1


def precision_of(
    batch: SeriesBatch, noise: Tensor, weights: Tensor | None
) -> Float64[Tensor, "views n channels length"]:
    """1 / Sigma per view, series, channel and stamp; zero where a channel was not observed."""
    observed = batch.mask.mT.double()
    if weights is None:
        return observed / noise[:, None, None, None] ** 2
    attention = weights.double().transpose(0, 1)[:, :, None, :] + WEIGHT_FLOOR
    return observed * attention / noise[:, None, None, None] ** 2


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
