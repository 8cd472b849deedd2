"""Many Gaussian processes conditioned at once: posterior means as Chebyshev coefficients over each row's window."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from smoothcde import native
from smoothcde.paths import chebyshev
from smoothcde.paths.gp_sums import WEIGHT_FLOOR, on_unit_window, precision_of, sums_over
from smoothcde.series import SeriesBatch


class Posterior:
    """Series whose channels were all observed at the same stamps, so that one system serves every channel.

    The mean is found in whichever space is smaller: of the nodes, in time linear in the observations, or of the
    observations, where there are fewer of them than nodes.

    Args:
        x: stamps as positions in [-1, 1].
        window: lengths of the windows.
        targets: the observations less the prior mean, 0 where there is none.
    """

    def __init__(
        self,
        x: Float64[Tensor, "rows length"],
        window: Float64[Tensor, "rows"],
        targets: Float64[Tensor, "rows length columns"],
    ):
        # Series on one common grid share their basis and kernel, and what follows is a few large products.
        self.aligned = len(x) > 1 and bool((x == x[:1]).all() & (window == window[:1]).all())
        self.x, self.window = (x[:1], window[:1]) if self.aligned else (x, window)
        self.targets = targets

    def solve(
        self,
        count: int,
        bandwidth: Float64[Tensor, "views"],
        scale: Float64[Tensor, "views"],
        precision: Float64[Tensor, "views rows own length"],
        variance: bool,
    ) -> tuple[Float64[Tensor, "views rows count columns"], Float64[Tensor, "views rows 1 count count"] | None]:
        """Chebyshev coefficients of the mean, and if asked for the covariance of the node values, as a form in them.

        `precision` is 1 / Sigma, zero where nothing was observed, and the same for all channels.
        """
        precision = precision[:, :, 0]
        if self.aligned or self.x.shape[1] >= count:
            return self._by_nodes(count, bandwidth, scale, precision, variance)
        spread = self._by_nodes(count, bandwidth, scale, precision, variance)[1] if variance else None
        return self._by_observations(count, bandwidth, scale, precision), spread

    def _by_nodes(self, count: int, bandwidth: Tensor, scale: Tensor, precision: Tensor, variance: bool):
        kernel = _kernel_of_coefficients(count, self.window, bandwidth, scale)

        def solved(precision: Tensor) -> tuple[Tensor, Tensor | None]:
            own = precision[:, :, None]
            gram, pull = sums_over(self.x, own, own * self.targets.mT, count)
            return _conditioned(gram[:, :, 0], pull.mT, kernel, variance)

        if variance or count > native.posterior.MOST or not _compiled(precision, (self.x, self.targets, kernel)):
            return solved(precision)
        observed = native.posterior.Observed(self.x, self.targets)
        return native.posterior.posterior_means(precision, observed, kernel, lambda own: solved(own)[0]), None

    def _by_observations(self, count: int, bandwidth: Tensor, scale: Tensor, precision: Tensor) -> Tensor:
        """k(Z, o) (K_oo + Sigma)^-1 x as P^1/2 (I + P^1/2 K_oo P^1/2)^-1 P^1/2 x: nothing is divided by."""
        device = self.x.device
        seen = precision > 0
        root = torch.where(seen, precision, 1.0).sqrt() * seen  # the square root has no gradient at zero
        among = _kernel(self.x[:, :, None] - self.x[:, None, :], self.window, bandwidth, scale)
        system = root[..., :, None] * among * root[..., None, :] + torch.eye(
            self.x.shape[1], dtype=torch.float64, device=device
        )
        dual = root[..., None] * _solve(system, root[..., None] * self.targets)
        node = chebyshev.nodes(count).to(device)
        towards = _kernel(node[:, None] - self.x[:, None, :], self.window, bandwidth, scale)
        return chebyshev.transform(count).to(device) @ (towards @ dual)


class _Bucket(NamedTuple):
    """Channels of series with about equally many observations, each packed to the front of its row."""

    systems: Int[Tensor, "systems"]
    stamps: Int[Tensor, "systems packed"]
    posterior: Posterior


class PackedPosterior:
    """Channels with stamps of their own: a system each, no larger than what was observed.

    Clinical tables have many stamps and few values at each. The channels of all series are sorted into buckets of up to
    1, 2, 4, 8, ... observations, so that one with five of them is not solved at the size of one with a hundred.

    Args:
        x: stamps as positions in [-1, 1].
        window: lengths of the windows.
        targets: the observations less the prior mean, 0 where there is none.
        mask: what was observed.
    """

    def __init__(
        self,
        x: Float64[Tensor, "n length"],
        window: Float64[Tensor, "n"],
        targets: Float64[Tensor, "n length channels"],
        mask: Bool[Tensor, "n length channels"],
    ):
        n, length, channels = mask.shape
        self.shape = (n, channels)
        seen, values = mask.mT.flatten(0, 1), targets.mT.flatten(0, 1)
        series = torch.arange(n, device=mask.device).repeat_interleave(channels)
        observed_first = torch.argsort((~seen).to(torch.uint8), dim=1, stable=True)
        found = seen.sum(dim=1)
        self.buckets: list[_Bucket] = []
        fewest, most = 0, 1
        while fewest <= length:
            systems = torch.nonzero((found >= fewest) & (found <= most))[:, 0]
            if len(systems):
                stamps, of = observed_first[systems, :most], series[systems]
                posterior = Posterior(x[of[:, None], stamps], window[of], values[systems].gather(1, stamps)[..., None])
                self.buckets.append(_Bucket(systems, stamps, posterior))
            fewest, most = most + 1, 2 * most

    def solve(
        self,
        count: int,
        bandwidth: Float64[Tensor, "views"],
        scale: Float64[Tensor, "views"],
        precision: Float64[Tensor, "views n channels length"],
        variance: bool,
    ) -> tuple[Float64[Tensor, "views n count channels"], Float64[Tensor, "views n channels count count"] | None]:
        """As `Posterior.solve`, with a covariance per channel."""
        by_system = precision.flatten(1, 2)
        means, spreads = [], []
        for systems, stamps, posterior in self.buckets:
            own = by_system[:, systems].gather(2, stamps.expand(len(by_system), -1, -1))
            mean, spread = posterior.solve(count, bandwidth, scale, own[:, :, None], variance)
            means.append(mean[..., 0])
            spreads.append(spread)
        order = torch.argsort(torch.cat([bucket.systems for bucket in self.buckets]))
        coefficients = torch.cat(means, dim=1)[:, order].unflatten(1, self.shape).mT
        return coefficients, torch.cat(spreads, dim=1)[:, order, 0].unflatten(1, self.shape) if variance else None


def posterior_of(batch: SeriesBatch, mean: Tensor) -> Posterior | PackedPosterior:
    """What to condition on: the batch, its values counted from the prior mean."""
    x = on_unit_window(batch.times, batch.start[:, None], batch.end[:, None])
    window, targets = batch.end - batch.start, (batch.values.double() - mean) * batch.mask
    return Posterior(x, window, targets) if batch.together else PackedPosterior(x, window, targets, batch.mask)


class Process(NamedTuple):
    """A Gaussian process for each view of each series: its prior, and what it is conditioned on.

    Attributes:
        batch: the series.
        bandwidth: of the kernel.
        noise: sigma.
        scale: standard deviation of the prior.
        mean: of the prior, one number or one per channel.
        weights: attention of each view.
    """

    batch: SeriesBatch
    bandwidth: Float64[Tensor, "views"]
    noise: Float64[Tensor, "views"]
    scale: Float64[Tensor, "views"]
    mean: Float64[Tensor, "..."]
    weights: Float[Tensor, "n views length"] | None

    def precision(self, group: list[int], shared: bool) -> Float64[Tensor, "group n own length"]:
        """Of some views; see `precision_of`."""
        own = None if self.weights is None else self.weights[:, group]
        return precision_of(self.batch, self.noise[group], own, shared)


def compiled_paths(
    process: Process, counts: Sequence[int], plain: native.gp_paths.Plain
) -> native.gp_paths.Paths | None:
    """Coefficients of all views' paths, with `counts` polynomials, and of their slopes, in one go; None where compiled
    code has no answer. `plain` gives the same from the weights by torch.
    """
    batch, bandwidth, noise, scale, mean, weights = process
    if torch.is_grad_enabled() and any(t.requires_grad for t in (batch.values, bandwidth, noise, scale, mean)):
        return None
    tensors = (batch.values,) if weights is None else (batch.values, weights)
    if not len(batch) or max(counts) > native.gp_paths.MOST or not native.serves(native.gp_paths.SOURCE, *tensors):
        return None
    if not batch.together:
        return None
    window, stamps = batch.end - batch.start, batch.times.shape[1]
    if all(bool((t == t[:1]).all()) for t in (batch.times, batch.start, window)):
        x = on_unit_window(batch.times[:1], batch.start[:1, None], batch.end[:1, None])
        settings = zip(counts, bandwidth.tolist(), scale.tolist(), strict=True)
        kernels = [_kernel_on_a_window(count, float(window[0]), h, unit) for count, h, unit in settings]
    elif stamps >= max(counts):
        x = on_unit_window(batch.times, batch.start[:, None], batch.end[:, None])
        each = zip(counts, bandwidth.split(1), scale.split(1), strict=True)
        kernels = [_kernel_of_coefficients(count, window, h, unit)[0] for count, h, unit in each]
    else:
        return None
    length = torch.where(window > 0, window, 1.0)
    given = native.gp_paths.Given(
        x, length, batch.mask, batch.values, noise, mean.expand(batch.channels), kernels, WEIGHT_FLOOR
    )
    return native.gp_paths.gp_paths(weights, given, plain)


def from_sums(
    gram: Float64[Tensor, "views rows count count"],
    pull: Float64[Tensor, "views rows count columns"],
    window: Float64[Tensor, "windows"],
    bandwidth: Float64[Tensor, "views"],
    scale: Float64[Tensor, "views"],
    variance: bool,
) -> tuple[Float64[Tensor, "views rows count columns"], Float64[Tensor, "views rows 1 count count"] | None]:
    """What `Posterior.solve` gives, from A^T P A and A^T P x; `window` is a length per row, or one for all."""
    return _conditioned(gram, pull, _kernel_of_coefficients(gram.shape[-1], window, bandwidth, scale), variance)


def _kernel_of_coefficients(count: int, window: Tensor, bandwidth: Tensor, scale: Tensor) -> Tensor:
    """The prior covariance of Chebyshev coefficients, `[views, rows or 1, count, count]`."""
    to_coefficients = chebyshev.transform(count).to(window.device)
    node = chebyshev.nodes(count).to(window.device)
    return to_coefficients @ _kernel(node[:, None] - node, window, bandwidth, scale) @ to_coefficients.mT


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # what is remembered may be needed for gradients later
def _kernel_on_a_window(count: int, window: float, bandwidth: float, scale: float) -> Float64[Tensor, "1 count count"]:
    """The same for a window that all rows share, remembered: bandwidths are settings, and windows often are."""
    numbers = (torch.tensor([number], dtype=torch.float64) for number in (window, bandwidth, scale))
    return _kernel_of_coefficients(count, *numbers)[0]


def _compiled(precision: Tensor, others: Sequence[Tensor]) -> bool:
    """Whether compiled code can do it, which gives the others no gradient."""
    wanted = torch.is_grad_enabled() and any(other.requires_grad for other in others)
    return not wanted and native.serves(native.posterior.SOURCE, precision, *others, dtype=torch.float64)


def _conditioned(gram: Tensor, pull: Tensor, kernel: Tensor, variance: bool) -> tuple[Tensor, Tensor | None]:
    system = torch.eye(gram.shape[-1], dtype=torch.float64, device=gram.device) + _times(gram, kernel)
    coefficients = _times(_solve(system, pull).mT, kernel).mT
    if not variance:
        return coefficients, None
    # K (I + G K)^-1 = ((I + K G)^-1) K, symmetric; no subtraction, so small variances keep their digits.
    return coefficients, _solve(system.mT, kernel.expand_as(system)).mT[:, :, None]


def _kernel(apart: Tensor, window: Tensor, bandwidth: Tensor, scale: Tensor) -> Tensor:
    """The kernel at positions in [-1, 1] that are `apart`, `[views, rows or 1, ...]`."""
    relative = window[:, None, None] / 2 / bandwidth[:, None, None, None]
    return torch.exp(-0.5 * (apart * relative) ** 2) * scale[:, None, None, None] ** 2


def _times(left: Tensor, right: Tensor) -> Tensor:
    """`left @ right` where all rows of a view may share `right`: then it is one product per view."""
    if right.shape[1] == left.shape[1]:
        return left @ right
    return (left.flatten(1, -2) @ right[:, 0]).view(*left.shape[:-1], right.shape[-1])


def _solve(systems: Tensor, right: Tensor) -> Tensor:
    """Solve many systems; large ones on the CPU one by one.

    Once `torch.set_num_threads` was called, MKL's batched LU of matrices larger than about 150 fails or never returns
    (pytorch issue 142815). A matrix of that size keeps the cores busy by itself.
    """
    if systems.device.type != "cpu" or systems.shape[-1] <= 100:
        return torch.linalg.solve(systems, right)
    pairs = zip(systems.flatten(0, -3), right.flatten(0, -3), strict=True)
    return torch.stack([torch.linalg.solve(system, side) for system, side in pairs]).view_as(right)
