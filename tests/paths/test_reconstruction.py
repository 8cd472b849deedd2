"""The paper's appendix "Explicit Error Comparison": how much better a GP reconstructs than a kernel smoother."""

import numpy as np
import pytest
import torch

from smoothcde.paths import GPPath, KernelPath
from smoothcde.series import SeriesSet

STAMPS = np.sort(np.random.default_rng(0).uniform(0, 10, 25))
STAMPS[[0, -1]] = 0.0, 10.0
MOMENTS = np.linspace(0, 10, 37)


def gram(a, b, bandwidth):
    return np.exp(-0.5 * ((a[:, None] - b) / bandwidth) ** 2)


def observed(values):
    """One series on `STAMPS`, a channel per column of `values`."""
    return SeriesSet.from_arrays(values.T[None], STAMPS).batch(dtype=torch.float64)


def at_moments(ask):
    return ask(torch.as_tensor(MOMENTS)[None])[0].numpy()


def smoother_weights(fit):
    """w(t) of a linear smoother, `[moments, stamps]`: what it makes of each unit vector."""
    return at_moments(fit(observed(np.eye(len(STAMPS)))).evaluate)


def error(weights, bandwidth, sigma):
    """E (X(t) - w^T x)^2 when X is drawn from the prior and x = X + noise."""
    noisy = gram(STAMPS, STAMPS, bandwidth) + sigma**2 * np.eye(len(STAMPS))
    return 1 - 2 * (weights * gram(MOMENTS, STAMPS, bandwidth)).sum(axis=1) + ((weights @ noisy) * weights).sum(axis=1)


settings = pytest.mark.parametrize(("bandwidth", "sigma"), [(0.4, 0.1), (1.0, 0.05), (1.0, 0.5), (4.0, 0.2)])


@settings
def test_kernel_error_exceeds_gp_error_by_the_quadratic_form(bandwidth, sigma):
    w_gp = smoother_weights(lambda batch: GPPath.fit(batch, bandwidth, sigma))
    w_nw = smoother_weights(lambda batch: KernelPath.fit(batch, bandwidth))
    noisy = gram(STAMPS, STAMPS, bandwidth) + sigma**2 * np.eye(len(STAMPS))
    excess = ((w_nw - w_gp) @ noisy * (w_nw - w_gp)).sum(axis=1)
    difference = error(w_nw, bandwidth, sigma) - error(w_gp, bandwidth, sigma)
    np.testing.assert_allclose(difference, excess, rtol=1e-6, atol=1e-8)
    assert (excess > 1e-6).all()


@settings
def test_variance_is_the_gp_error(bandwidth, sigma):
    w_gp = smoother_weights(lambda batch: GPPath.fit(batch, bandwidth, sigma))
    path = GPPath.fit(observed(np.zeros((len(STAMPS), 1))), bandwidth, sigma, variance=True)
    np.testing.assert_allclose(at_moments(path.variance)[:, 0], error(w_gp, bandwidth, sigma), rtol=1e-6, atol=1e-8)


@settings
def test_errors_are_those_of_simulated_draws(bandwidth, sigma):
    draws, rng = 4000, np.random.default_rng(1)
    everywhere = np.concatenate([STAMPS, MOMENTS])
    covariance = gram(everywhere, everywhere, bandwidth) + 1e-10 * np.eye(len(everywhere))
    truth = np.linalg.cholesky(covariance) @ rng.standard_normal((len(everywhere), draws))
    batch = observed(truth[: len(STAMPS)] + sigma * rng.standard_normal((len(STAMPS), draws)))
    smoothers = {
        "gp": lambda batch: GPPath.fit(batch, bandwidth, sigma),
        "kernel": lambda batch: KernelPath.fit(batch, bandwidth),
    }
    for name, fit in smoothers.items():
        residuals = at_moments(fit(batch).evaluate) - truth[len(STAMPS) :]
        expected = error(smoother_weights(fit), bandwidth, sigma)
        # A residual is Gaussian, so the mean of its square has relative standard error sqrt(2 / draws): five of them.
        ratio = (residuals**2).mean(axis=1) / expected
        assert np.abs(ratio - 1).max() < 5 * np.sqrt(2 / draws), name
