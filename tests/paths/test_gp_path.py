"""`GPPath` against scikit-learn's Gaussian process regressor and against its own exact reference."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from smoothcde.paths import ExactGPPath, GPPath
from smoothcde.series import SeriesSet

FLOOR = 1e-5  # the paper's epsilon, spelt out so that a change of the package's constant is noticed


@pytest.fixture(autouse=True)
def one_thread_for_the_oracle():
    """NumPy's and torch's thread pools otherwise wait for each other: minutes instead of seconds on a busy machine."""
    with threadpool_limits(1, user_api="blas"):
        yield


def oracle(times, values, noise_variance, bandwidth, scale=1.0):
    """Scikit-learn's GP with fixed kernel and one noise variance per observation."""
    kernel = ConstantKernel(scale**2, "fixed") * RBF(bandwidth, "fixed")
    return GaussianProcessRegressor(kernel, alpha=noise_variance, optimizer=None).fit(times[:, None], values)


def relative_error(actual, expected):
    return np.abs(actual - expected).max() / np.abs(expected).max()


def random_walks(count, stamps, missing, seed=0):
    """Two-channel random walks on regular and random times; every channel misses its own share of stamps."""
    rng = np.random.default_rng(seed)
    values, times = [], []
    for i in range(count):
        t = np.arange(float(stamps)) if i % 2 == 0 else np.sort(rng.uniform(0, stamps - 1, stamps))
        x = rng.standard_normal((2, stamps)).cumsum(axis=1) / 3
        gone = rng.random((2, stamps)) < missing
        gone[:, 0] = False
        values.append(np.where(gone, np.nan, x))
        times.append(t)
    return SeriesSet.from_arrays(values, times)


def attention(batch, seed=0):
    """Two views of weights: uniform, and nearly all of it on one stamp."""
    n, length = batch.times.shape
    scores = torch.zeros(n, 2, length, dtype=torch.float64)
    scores[:, 1, int(np.random.default_rng(seed).integers(length))] = 9.0 + np.log(length)
    return torch.softmax(scores, dim=-1)


def moments_of(path, count=41):
    return path.start[:, None] + (path.end - path.start)[:, None] * torch.linspace(0, 1, count, dtype=torch.float64)


def expected_values(batch, views, bandwidth, sigma, weights, t):
    """What scikit-learn says, `[rows, moments, channels]`."""
    expected = np.empty((views * len(batch), t.shape[1], batch.channels))
    for row in range(len(expected)):
        view, i = divmod(row, len(batch))
        for channel in range(batch.channels):
            seen = batch.mask[i, :, channel].numpy()
            alpha = np.ones(seen.sum()) if weights is None else weights[i, view].numpy()[seen] + FLOOR
            values = batch.values[i, :, channel].double().numpy()[seen]
            fitted = oracle(batch.times[i].numpy()[seen], values, sigma**2 / alpha, bandwidth)
            expected[row, :, channel] = fitted.predict(t[row].numpy()[:, None])
    return expected


def worst_error(path, expected, t):
    """The largest relative error of any row and channel."""
    error = np.abs(path.evaluate(t).double().numpy() - expected).max(axis=1)
    return (error / np.abs(expected).max(axis=1)).max()


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.4, 1.4, 9.0], ids="bandwidth {} of the span".format)
@pytest.mark.parametrize("stamps", [2, 5, 29, 119, 315, 1000], ids="{} stamps".format)
def test_equals_scikit_learn(stamps, share):
    """In both precisions, with and without weights, for every share missing and either noise of the paper."""
    bandwidth = share * (stamps - 1)
    for missing in (0.0, 0.3, 0.9):
        series = random_walks(2, stamps, missing)
        double, single = series.batch(dtype=torch.float64), series.batch(dtype=torch.float32)
        for sigma in (0.01, 0.05):
            for weights in (None, attention(double)):
                path = GPPath.fit(double, bandwidth, sigma, weights)
                t = moments_of(path)
                expected = expected_values(double, path.rows // len(double), bandwidth, sigma, weights, t)
                case = f"{missing:.0%} missing, noise {sigma}, {'no weights' if weights is None else 'weights'}"
                assert worst_error(path, expected, t) <= 1e-6, case
                single_weights = None if weights is None else weights.float()
                assert worst_error(GPPath.fit(single, bandwidth, sigma, single_weights), expected, t) <= 1e-4, case


@pytest.mark.parametrize("missing", [0.0, 0.6])
@pytest.mark.parametrize("share", [0.02, 0.3, 5.0])
def test_exact_gp_equals_scikit_learn(share, missing):
    batch = random_walks(2, 60, missing).batch(dtype=torch.float64)
    for weights in (None, attention(batch)):
        path = ExactGPPath.fit(batch, share * 59, 0.01, weights)
        t = moments_of(path)
        expected = expected_values(batch, path.rows // len(batch), share * 59, 0.01, weights, t)
        assert worst_error(path, expected, t) <= 1e-8


@pytest.mark.parametrize("missing", [0.0, 0.6])
@pytest.mark.parametrize("bandwidth", [1.0, 6.0, 80.0])
def test_derivatives_are_those_of_the_exact_gp(bandwidth, missing):
    batch = random_walks(2, 50, missing).batch(dtype=torch.float64)
    path, exact = GPPath.fit(batch, bandwidth, 0.05), ExactGPPath.fit(batch, bandwidth, 0.05)
    t = moments_of(path)
    for order, tolerance in ((1, 1e-5), (2, 1e-4)):
        expected = exact.derivative(t, order)
        assert (path.derivative(t, order) - expected).abs().max() <= tolerance * expected.abs().max()


def test_derivative_is_autograds():
    path = GPPath.fit(random_walks(2, 40, 0.5).batch(dtype=torch.float64), 3.0, 0.05)
    t = moments_of(path)[:, 1:-1].requires_grad_()
    for channel in range(path.channels):
        (slope,) = torch.autograd.grad(path.evaluate(t)[:, :, channel].sum(), t)
        torch.testing.assert_close(path.derivative(t)[:, :, channel], slope, rtol=1e-9, atol=1e-9)


class TestVariance:
    @pytest.mark.parametrize("missing", [0.0, 0.6])
    @pytest.mark.parametrize("share", [0.02, 0.1, 1.4])
    def test_equals_scikit_learns(self, share, missing):
        batch = random_walks(2, 60, missing).batch(dtype=torch.float64)
        bandwidth, weights, scale = share * 59, attention(batch), 1.7
        path = GPPath.fit(batch, bandwidth, 0.05, weights, prior_scale=scale, variance=True)
        t = moments_of(path)
        for row in range(path.rows):
            view, i = divmod(row, len(batch))
            for channel in range(2):
                seen = batch.mask[i, :, channel].numpy()
                noise_variance = 0.05**2 / (weights[i, view].numpy()[seen] + FLOOR)
                values = batch.values[i, :, channel].numpy()[seen]
                expected = oracle(batch.times[i].numpy()[seen], values, noise_variance, bandwidth, scale)
                _, deviation = expected.predict(t[row].numpy()[:, None], return_std=True)
                np.testing.assert_allclose(path.variance(t)[row, :, channel], deviation**2, rtol=1e-6, atol=1e-7)

    def test_is_shaped_like_the_values_and_follows_selected_rows(self):
        batch = random_walks(3, 12, 0.5).batch(dtype=torch.float32)
        path = GPPath.fit(batch, (2.0, 5.0), 0.1, variance=True)
        assert path.variance(1.0).shape == path.evaluate(1.0).shape == (6, 2)
        assert path.variance(moments_of(path)).shape == path.evaluate(moments_of(path)).shape
        torch.testing.assert_close(path.select([4, 1]).variance(1.0), path.variance(1.0)[[4, 1]])

    def test_does_not_change_the_mean(self):
        batch = random_walks(2, 30, 0.3).batch(dtype=torch.float64)
        with_it, without = GPPath.fit(batch, 4.0, 0.1, variance=True), GPPath.fit(batch, 4.0, 0.1)
        assert torch.equal(with_it.coefficients, without.coefficients)

    def test_is_the_priors_without_observations(self):
        batch = SeriesSet.from_arrays([np.zeros((2, 0))], [[]], window=(0.0, 4.0)).batch()
        path = GPPath.fit(batch, 1.0, 0.1, prior_scale=3.0, variance=True)
        torch.testing.assert_close(path.variance(2.5), torch.full((1, 2), 9.0, dtype=torch.float64))


class TestPrior:
    def test_mean_and_scale_are_those_of_a_gp_on_shifted_and_scaled_data(self):
        batch = random_walks(2, 40, 0.4).batch(dtype=torch.float64)
        mean, scale, sigma = torch.tensor([3.0, -1.0], dtype=torch.float64), 2.5, 0.1
        path = GPPath.fit(batch, 4.0, sigma, prior_mean=mean, prior_scale=scale)
        standardised = replace(batch, values=(batch.values - mean) / scale * batch.mask)
        unit = GPPath.fit(standardised, 4.0, sigma / scale)
        t = moments_of(path)
        torch.testing.assert_close(path.evaluate(t), unit.evaluate(t) * scale + mean, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(path.derivative(t), unit.derivative(t) * scale, rtol=1e-7, atol=1e-7)

    def test_equals_scikit_learns(self):
        batch = random_walks(1, 40, 0.0).batch(dtype=torch.float64)
        path = GPPath.fit(batch, 4.0, 0.1, prior_mean=2.0, prior_scale=0.7)
        t = moments_of(path)
        expected = oracle(batch.times[0].numpy(), batch.values[0].numpy() - 2.0, 0.1**2, 4.0, scale=0.7)
        assert relative_error(path.evaluate(t)[0].numpy(), expected.predict(t[0].numpy()[:, None]) + 2.0) <= 1e-6

    def test_path_is_the_prior_mean_far_from_observations_and_without_any(self):
        series = SeriesSet.from_arrays([[[1.0]], np.zeros((1, 0))], [[0.0], []], window=(0.0, 100.0))
        path = GPPath.fit(series.batch(dtype=torch.float64), 2.0, 0.1, prior_mean=5.0)
        torch.testing.assert_close(path.evaluate(90.0), torch.full((2, 1), 5.0, dtype=torch.float64))
        torch.testing.assert_close(path.evaluate(1.0)[1], torch.full((1,), 5.0, dtype=torch.float64))


class TestViews:
    def test_several_views_are_single_views_one_after_the_other(self):
        batch = random_walks(3, 30, 0.4).batch(dtype=torch.float64)
        bandwidth, noise, scale = (0.6, 4.0, 200.0), (0.2, 0.01, 0.05), (1.0, 2.0, 0.5)
        weights = torch.softmax(torch.as_tensor(np.random.default_rng(1).standard_normal((3, 3, 30))), dim=-1)
        together = GPPath.fit(batch, bandwidth, noise, weights, prior_scale=scale, variance=True)
        assert together.rows == 9
        t = moments_of(together)
        for view in range(3):
            settings = bandwidth[view], noise[view], weights[:, [view]]
            single = GPPath.fit(batch, *settings, prior_scale=scale[view], variance=True)
            rows = slice(3 * view, 3 * view + 3)
            for ask in ("evaluate", "derivative", "variance"):
                expected = getattr(single, ask)(t[rows])
                torch.testing.assert_close(getattr(together, ask)(t)[rows], expected, rtol=1e-9, atol=1e-9)

    def test_one_bandwidth_or_noise_per_view_makes_views_without_weights(self):
        batch = random_walks(2, 20, 0.3).batch(dtype=torch.float64)
        assert GPPath.fit(batch, (1.0, 2.0, 3.0), 0.1).rows == 6
        assert GPPath.fit(batch, 1.0, (0.1, 0.2)).rows == 4
        assert ExactGPPath.fit(batch, (1.0, 2.0), 0.1).rows == 4

    def test_nodes_may_be_declared_and_more_of_them_change_nothing(self):
        batch = random_walks(2, 20, 0.3).batch(dtype=torch.float64)
        few, many = GPPath.fit(batch, (3.0, 9.0), 0.1), GPPath.fit(batch, (3.0, 9.0), 0.1, nodes=(60, 45))
        t = moments_of(few)
        torch.testing.assert_close(few.evaluate(t), many.evaluate(t), rtol=1e-6, atol=1e-6)


class TestGradients:
    @pytest.mark.parametrize("missing", [0.0, 0.5])
    def test_with_respect_to_weights_values_bandwidth_noise_and_prior(self, missing):
        batch = random_walks(2, 5, missing).batch(dtype=torch.float64)
        t = torch.tensor([[0.4, 2.2, 3.1]], dtype=torch.float64).expand(4, 3)

        def values_and_slopes(weights, values, bandwidth, noise, prior_mean, prior_scale):
            path = GPPath.fit(
                replace(batch, values=values),
                bandwidth,
                noise,
                weights,
                prior_mean=prior_mean,
                prior_scale=prior_scale,
                nodes=24,  # fixed, as they should be when the bandwidth is learnt
            )
            return torch.stack([path.evaluate(t), path.derivative(t)])

        inputs = (
            torch.softmax(torch.arange(20, dtype=torch.float64).sin().view(2, 2, 5), dim=-1),
            batch.values.clone(),
            torch.tensor([0.9, 2.0], dtype=torch.float64),
            torch.tensor([0.3, 0.2], dtype=torch.float64),
            torch.tensor([0.5, -0.5], dtype=torch.float64),
            torch.tensor(1.3, dtype=torch.float64),
        )
        assert torch.autograd.gradcheck(values_and_slopes, [x.requires_grad_() for x in inputs])

    def test_are_those_of_the_exact_gp(self):
        batch = random_walks(2, 30, 0.4).batch(dtype=torch.float64)
        gradients = []
        for cls in (GPPath, ExactGPPath):
            weights = attention(batch).requires_grad_()
            bandwidth = torch.tensor([2.0, 9.0], dtype=torch.float64, requires_grad=True)
            noise = torch.tensor(0.05, dtype=torch.float64, requires_grad=True)
            path = cls.fit(batch, bandwidth, noise, weights)
            t = moments_of(path)
            total = path.evaluate(t).square().sum() + path.derivative(t).sin().sum()
            gradients.append(torch.autograd.grad(total, (weights, bandwidth, noise)))
        for actual, expected in zip(*gradients, strict=True):
            assert (actual - expected).abs().max() <= 1e-5 * expected.abs().max()


def test_large_systems_survive_a_chosen_number_of_threads():
    # Torch's batched LU fails or hangs after set_num_threads, which lasts for the process: hence another one.
    program = """
import torch
torch.set_num_threads(2)
from smoothcde.paths import GPPath
from smoothcde.series import SeriesSet
batch = SeriesSet.from_arrays(torch.sin(torch.arange(300.0)).reshape(3, 1, 100).numpy()).batch()
path = GPPath.fit(batch, bandwidth=1.0, noise=0.1, variance=True)
assert (path.evaluate(batch.times) - batch.values).abs().max() < 0.2
"""
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert outcome.returncode == 0, outcome.stderr
