"""Gaussian process posterior means: smooth paths at a cost linear in the number of observations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from smoothcde import native
from smoothcde.paths import chebyshev
from smoothcde.paths.base import LONGEST_STEP, Path, Polynomials, positive_per_view, repeat_views, view_weights
from smoothcde.paths.gp_panels import NODES, panel_coefficients, panels_over
from smoothcde.paths.gp_posterior import Posterior, Process, compiled_paths, from_sums, posterior_of
from smoothcde.paths.gp_sums import ObservationSums, on_unit_window
from smoothcde.series import SeriesBatch

LONG_NODES = 100
"""Nodes per view, beyond which a path is made in panels: from here on they are quicker, ten times so at 350 nodes."""
LONG_SERIES = 5_000
"""Stamps per series, beyond which a path is made in panels: tables over all stamps and nodes would fill the memory, and
so many observations resolve frequencies for which `chebyshev.node_count` keeps no nodes (1e-5 at 100,000 of them).
Compiled code keeps no tables and takes a few nodes more: a tenth of the time of panels."""
FINE = 7.8
"""Frequency, over bandwidth, that many observations resolve: beyond it the kernel's spectrum is below 1e-13."""
FEW_NUMBERS = 2**13
"""Entries of all systems of a view, up to which views share one number of nodes: more nodes than a view needs cost less
than to start the operations for each number anew. In double precision, results would show in whose company they are."""
MOST_NODES = 4_000
"""Nodes per view, beyond which a variance is refused: a single system of that size takes 128 MB and seconds."""
MOST_PANELS = 50_000
"""Panels per view, beyond which a path is refused: a system takes 300 MB for them, and a minute."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GPPath(Path):
    """Posterior mean of a Gaussian process with kernel k_h(t, t') = exp(-(t - t')^2 / 2 h^2) (the paper's eq. 5).

    X(t) = k_h(t)^T (K_h + Sigma)^-1 x, with Sigma_kk = sigma^2 without weights and sigma^2 / (alpha_k + 1e-5) with
    them, a channel over its own observations. Larger bandwidth h, fewer solver steps: NFE grows like 1/h.

    **How it is computed.** With r Chebyshev polynomials T over the window, k_h(t, t') = T(t)^T K T(t') up to rounding,
    K from the kernel at r nodes. With A = T at the observations, P = Sigma^-1 (zero where not observed) and
    G = A^T P A, the posterior mean is T(t)^T K (I + G K)^-1 A^T P x: a polynomial. Products of Chebyshev polynomials
    are means of two others, so G is 2 r sums over the observations (`gp_sums.py`), and the cost O(N r + r^3). No kernel
    matrix is factored and no jitter is needed; the solve is in float64 whatever the batch's precision. A channel with
    fewer observations than nodes is solved at the size of its observations instead.
    Where the window is many bandwidths long, or holds very many stamps, the path is a polynomial on each of many panels
    (`gp_panels.py`): linear in the observations and in window over bandwidth, and the same path to 1e-6.
    `ExactGPPath` is the O(N^3) reference.

    ```python
    path = GPPath.fit(series.batch(), bandwidth=2.0, noise=0.01)
    path.evaluate(1.5), path.derivative(1.5)                    # [rows, channels] each
    weights = torch.softmax(scores, dim=-1)                     # [n, views, length]
    path = GPPath.fit(batch, bandwidth=(0.5, 2.0), noise=0.01, weights=weights)     # rows = 2 n, view-major
    ```

    Attributes:
        coefficients: of X in Chebyshev polynomials over each panel; one panel is the row's window.
        slopes: of X', likewise.
        panel: length of the row's panels.
        covariance: of the node values, as a bilinear form in Chebyshev coefficients; only if asked for.
        longest: see `longest_step`.
        whole: whether each row's window is one panel, neither more nor less: then rows share their features.
    """

    coefficients: Float[Tensor, "rows panels nodes channels"]
    slopes: Float[Tensor, "rows panels nodes channels"]
    panel: Float64[Tensor, "rows"]
    covariance: Float64[Tensor, "rows own nodes nodes"] | None = None
    longest: Float64[Tensor, "rows"] | None = None
    whole: bool = False

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
        mean = torch.as_tensor(prior_mean, dtype=torch.float64, device=batch.device)
        process = Process(batch, bandwidth, noise, scale, mean, weights)
        if not variance:
            many = batch.times.shape[1] > LONG_SERIES
            made = cls._compiled(process, _node_counts(None, bandwidth, batch, FINE) if many else counts)
            if made is not None:
                return made
            if many or max(counts) > LONG_NODES:
                return cls._in_panels(process)
        if max(counts) > MOST_NODES:
            raise ValueError(
                f"{_extent(batch, bandwidth)} needs {max(counts):,} nodes, and there is a variance up to "
                f"{MOST_NODES:,} only; give a larger bandwidth or shorter windows, or fit without variance"
            )
        if batch.dtype == torch.float32 and len(batch) * max(counts) ** 2 <= FEW_NUMBERS:
            counts = [max(counts)] * views
        return cls._on_windows(process, counts, variance)

    @classmethod
    def _compiled(cls, process: Process, counts: list[int]) -> "GPPath | None":
        """A polynomial over each window, all in one go; None where compiled code has no answer."""

        def plain(weights: Tensor) -> tuple[Tensor, Tensor]:
            with native.without_compiled_code():
                path = cls._on_windows(process._replace(weights=weights), counts)
            return path.coefficients.squeeze(1), path.slopes.squeeze(1)

        if (made := compiled_paths(process, counts, plain)) is None:
            return None
        coefficients, slopes = (part[:, None] for part in made)
        start, end, bandwidth = process.batch.start, process.batch.end, process.bandwidth
        panel = repeat_views(torch.where(end > start, end - start, 1.0), len(bandwidth))
        return cls._made(coefficients, slopes, start, end, panel, bandwidth, whole=True)

    @classmethod
    def _on_windows(cls, process: Process, counts: list[int], variance: bool = False) -> "GPPath":
        """The same view by view."""
        batch, bandwidth, mean = process.batch, process.bandwidth, process.mean
        posterior = posterior_of(batch, mean)

        def solve(count: int, group: list[int]) -> tuple[Tensor, Tensor | None]:
            precision = process.precision(group, isinstance(posterior, Posterior))
            return posterior.solve(count, bandwidth[group], process.scale[group], precision, variance)

        return cls._of_views(solve, counts, batch.start, batch.end, mean, batch.dtype, bandwidth)

    @classmethod
    def _in_panels(cls, process: Process) -> "GPPath":
        """The same path where one polynomial over the window would have too high a degree."""
        batch, bandwidth, scale, mean = process.batch, process.bandwidth, process.scale, process.mean
        longest = float((batch.end - batch.start).max())
        counts, lengths = zip(*(panels_over(longest, h) for h in bandwidth.detach().tolist()), strict=True)
        if max(counts) > MOST_PANELS:
            raise ValueError(
                f"{_extent(batch, bandwidth)} needs {max(counts):,} panels of {NODES} nodes, more than "
                f"{MOST_PANELS:,}; give a larger bandwidth or shorter windows (are both in the same unit of time?)"
            )
        panel = torch.tensor(lengths, dtype=torch.float64, device=batch.device)
        targets = (batch.values.double() - mean) * batch.mask

        def solve(count: int, group: list[int]) -> tuple[Tensor, None]:
            precision = process.precision(group, batch.together)
            fitted = panel_coefficients(batch, targets, precision, bandwidth[group], scale[group], count, panel[group])
            return fitted, None

        rows = panel.repeat_interleave(len(batch))
        return cls._of_views(solve, list(counts), batch.start, batch.end, mean, batch.dtype, bandwidth, rows)

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

        return cls._of_views(solve, list(nodes), start, end, start.new_zeros(()), dtype, bandwidth)

    @classmethod
    def _of_views(
        cls,
        solve: Callable[[int, list[int]], tuple[Tensor, Tensor | None]],
        counts: list[int],
        start: Tensor,
        end: Tensor,
        mean: Tensor,
        dtype: torch.dtype,
        bandwidth: Tensor,
        panel: Tensor | None = None,
    ) -> "GPPath":
        """Paths of all views; `solve` gives coefficients and covariances of those with the same count.

        Counted are the panels of given length, or the nodes on a single one, the window.
        """
        views, window = len(counts), end - start
        fitted: list[tuple[Tensor, Tensor | None]] = [(window, None)] * views
        # Views with equal counts are one batched system; there are never more groups than views.
        for count in sorted(set(counts)):
            group = [view for view in range(views) if counts[view] == count]
            means, covariances = solve(count, group)
            for place, view in enumerate(group):
                fitted[view] = (means[place], None if covariances is None else covariances[place])

        most, whole = max(counts), panel is None
        coefficients = torch.cat([_padded(c, most, -2 if panel is None else -3) for c, _ in fitted])
        if panel is None:
            panel = repeat_views(torch.where(window > 0, window, 1.0), views)
            coefficients = coefficients[:, None]
        # The one matrix on the right: one product for all rows, not one for each.
        derived = coefficients.mT @ chebyshev.differentiation(coefficients.shape[2]).to(start.device).mT
        slopes = derived.mT * (2 / panel)[:, None, None, None]
        coefficients = torch.cat([coefficients[:, :, :1] + mean, coefficients[:, :, 1:]], dim=2)
        spreads = [_padded(_padded(spread, most, -1), most, -2) for _, spread in fitted if spread is not None]
        covariance = torch.cat(spreads) if spreads else None
        return cls._made(coefficients.to(dtype), slopes.to(dtype), start, end, panel, bandwidth, covariance, whole)

    @classmethod
    def _made(
        cls,
        coefficients: Tensor,
        slopes: Tensor,
        start: Tensor,
        end: Tensor,
        panel: Tensor,
        bandwidth: Tensor,
        covariance: Tensor | None = None,
        whole: bool = False,
    ) -> "GPPath":
        """Paths of these polynomials; windows are those of the series, bandwidths those of the views."""
        return cls(
            start=repeat_views(start, len(bandwidth)),
            end=repeat_views(end, len(bandwidth)),
            coefficients=coefficients,
            slopes=slopes,
            panel=panel,
            covariance=covariance,
            longest=LONGEST_STEP * bandwidth.detach().repeat_interleave(len(start)),
            whole=whole,
        )

    @property
    def longest_step(self) -> Float64[Tensor, "rows"] | None:
        """A few bandwidths."""
        return self.longest

    @property
    def template(self) -> Tensor:
        """The coefficients of X."""
        return self.coefficients

    def _polynomials(self, t: Tensor, coefficients: Tensor) -> Tensor:
        """What polynomials over the panels are at times inside the window."""
        panels, nodes = coefficients.shape[1:3]
        position = (t - self.start[:, None]) / self.panel[:, None]
        if panels == 1:
            return chebyshev.features((2 * position - 1).to(self.dtype), nodes) @ coefficients.squeeze(1)
        place = position.detach().floor().clamp(0, panels - 1)
        features = chebyshev.features(2 * (position - place) - 1, nodes).to(self.dtype)
        first = torch.arange(self.rows, device=self.device)[:, None] * panels
        chosen = coefficients.flatten(0, 1).index_select(0, (first + place.long()).flatten())
        return (features[:, :, None] @ chosen.unflatten(0, place.shape)).squeeze(2)

    def _evaluate(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        return self._polynomials(t, self.coefficients)

    def _derivative(self, t: Float64[Tensor, "rows moments"], order: int) -> Float[Tensor, "rows moments channels"]:
        slopes = self.slopes
        if order > 1:
            again = torch.linalg.matrix_power(chebyshev.differentiation(slopes.shape[2]).to(self.device), order - 1)
            slopes = again @ slopes.double() * ((2 / self.panel) ** (order - 1))[:, None, None, None]
        return self._polynomials(t, slopes.to(self.dtype))

    def derivative(self, t: Any, order: int = 1) -> Float[Tensor, "rows *moments channels"]:
        """See `Path.derivative`. What every step of a solve asks for, slopes on a single panel, is compiled code."""
        times, single = self._times(t)
        simple = order == 1 and self.slopes.shape[1] == 1 and not times.requires_grad
        if not (simple and native.serves(native.chebyshev.SOURCE, self.slopes)):
            return super().derivative(t, order)

        def plain(coefficients: Tensor) -> Tensor:
            return Path.derivative(replace(self, slopes=coefficients[:, None]), times)

        moments = native.chebyshev.Moments(times, self.start, self.end, self.panel)
        slopes = native.chebyshev.polynomials(self.slopes.squeeze(1), moments, plain)
        return slopes[:, 0] if single else slopes

    def slopes_at(self, shares: tuple[tuple[float, ...], ...]) -> Float[Tensor, "rows moments channels"]:
        """X' at given shares of each row's own window: one product with features that all rows of a view share."""
        if not self.whole:
            return super().slopes_at(shares)
        features = chebyshev.features_at(shares, self.slopes.shape[2]).to(self.device, self.dtype)
        slopes = self.slopes.squeeze(1).unflatten(0, (len(shares), -1))
        return (features[:, None] @ slopes).flatten(0, 1)

    def polynomials(self) -> Polynomials | None:
        """Its coefficients, where there is a single panel."""
        if self.slopes.shape[1] != 1:
            return None
        return Polynomials(self.coefficients.squeeze(1), self.slopes.squeeze(1), self.panel)

    @torch.no_grad()
    def squared_derivatives_at(self, shares: tuple[float, ...], orders: int) -> Float64[Tensor, "orders rows moments"]:
        """On whole windows, one product per row with features that all rows share."""
        nodes, window = self.slopes.shape[2], (self.end - self.start)[:, None, None]
        if self.whole:
            every = chebyshev.derivative_features(shares, nodes, orders).to(self.device, self.dtype)
            slopes = self.slopes.squeeze(1) * window.to(self.dtype)
            if native.serves(native.chebyshev.SOURCE, slopes):
                squares = native.chebyshev.squared_sums(slopes, every)
            else:
                # Channels first, so that the long side of each product is the contiguous one: a seventh of the time.
                # Not one product of all rows, whose rounding would hang on how many there are.
                squares = torch.bmm(slopes.mT, every.expand(self.rows, -1, -1)).double().square().sum(dim=1)
            return squares.unflatten(1, (orders, -1)).transpose(0, 1)
        again, slopes, found = chebyshev.differentiation(nodes).to(self.device), self.slopes.double(), []
        times = self.times_at(shares)
        for _ in range(orders):
            slopes = slopes * window[..., None]
            found.append(self._polynomials(times, slopes.to(self.dtype)).double().square().sum(dim=2))
            slopes = again @ slopes * (2 / self.panel)[:, None, None, None]
        return torch.stack(found)

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


def _node_counts(
    nodes: int | Sequence[int] | None, bandwidth: Tensor, batch: SeriesBatch, highest: float = 6.4
) -> list[int]:
    views = len(bandwidth)
    if nodes is None:
        longest = float((batch.end - batch.start).max()) if len(batch) else 0.0
        return [chebyshev.node_count(longest / h, highest) for h in bandwidth.detach().tolist()]
    counts = [nodes] * views if isinstance(nodes, int) else list(nodes)
    if len(counts) != views or min(counts) < 1:
        raise ValueError(f"nodes is {nodes!r}; give one positive number, or one per view ({views})")
    return counts


def _extent(batch: SeriesBatch, bandwidth: Tensor) -> str:
    longest = float((batch.end - batch.start).max())
    return f"a bandwidth of {float(bandwidth.detach().min()):g} on a window of {longest:g}"


def _padded(table: Tensor, count: int, dim: int) -> Tensor:
    """Zeros for what a view with fewer nodes or panels does not have."""
    missing = count - table.shape[dim]
    return table if missing == 0 else torch.nn.functional.pad(table, (0, 0) * (-1 - dim) + (0, missing))
