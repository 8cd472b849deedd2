"""What the paper proves about the cost of a solve, measured."""

import numpy as np
import pytest
import torch
from solve_problems import TinyField, double, states, waves

from smoothcde.paths import GPPath, KernelPath, LinearPath, NaturalCubicPath, Path
from smoothcde.series import SeriesSet
from smoothcde.solve import ControlTerm, integrate


def mean_evaluations(path: Path, tolerance: float, **options) -> float:
    field, z0 = TinyField(hidden=8, width=16), states(path.rows, hidden=8)
    with torch.no_grad():
        solution = integrate(
            ControlTerm(field, path), z0, path.start, path.end, rtol=tolerance, atol=tolerance, **options
        )
    return float(solution.stats.nfe.mean())


@pytest.mark.parametrize(
    "fit",
    [lambda batch, h: KernelPath.fit(batch, h), lambda batch, h: GPPath.fit(batch, h, noise=1.0)],
    ids=["kernel", "gp"],
)
def test_evaluations_grow_like_one_over_the_bandwidth(fit):
    """Theorems 1 and 2: NFE = O(1/h), with equality where the data fill every bandwidth with structure.

    White noise on a dense grid does: it has structure on every scale, so h alone decides how rough the path is, and
    even the smallest h holds five observations. The tolerance asks for several steps even at the largest h; with
    fewer, the start and the end of the window would flatten the slope.
    """
    noise = np.random.default_rng(0).normal(size=(2, 2, 1000))
    batch = double(SeriesSet.from_arrays(noise, np.linspace(0, 1, 1000)))
    bandwidths = np.geomspace(0.005, 0.05, 4)
    cost = [mean_evaluations(fit(batch, h), 1e-3) for h in bandwidths]
    slope = np.polyfit(np.log(bandwidths), np.log(cost), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.25)


def noisy(level: float, n: int = 12, stamps: int = 100) -> SeriesSet:
    """Smooth signals of unit variance over a span of 1, with white noise of the given size on top."""
    times = np.linspace(0, 1, stamps)
    signal = np.stack([waves(times, seed=seed) for seed in range(n)])
    signal = (signal - signal.mean(axis=2, keepdims=True)) / signal.std(axis=2, keepdims=True)
    noise = np.random.default_rng(0).normal(size=signal.shape)
    return SeriesSet.from_arrays(signal + level * noise, times)


def attention(n: int = 12, stamps: int = 100) -> torch.Tensor:
    scores = torch.randn(n, 1, stamps, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.softmax(scores, dim=-1)


def growth(fit) -> float:
    """Evaluations under noise 0.7 over those without, in the paper's setting: joint steps, kinks stepped over."""
    clean, loud = (
        mean_evaluations(fit(double(noisy(level))), 1e-3, step_control="joint", knots="step_over")
        for level in (0.0, 0.7)
    )
    return loud / clean


@pytest.mark.parametrize("bandwidth", [0.1, 0.2, 0.4])
def test_noise_hardly_adds_evaluations_on_an_attention_weighted_gp(bandwidth):
    """The weights sum to one over a hundred stamps, so that sigma 0.01 means a noise of about 0.1 per observation."""
    assert growth(lambda batch: GPPath.fit(batch, bandwidth, 0.01, attention())) < 1.3


@pytest.mark.parametrize("bandwidth", [0.1, 0.2])
def test_noise_hardly_adds_evaluations_on_an_attention_weighted_kernel_path(bandwidth):
    assert growth(lambda batch: KernelPath.fit(batch, bandwidth, attention())) < 1.3


@pytest.mark.parametrize("path", [NaturalCubicPath, LinearPath], ids=["natural cubic", "linear"])
def test_noise_multiplies_evaluations_on_exact_interpolants(path):
    assert growth(path.fit) > 3
