"""Paths over windows of many bandwidths and of many stamps, against the exact ones."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from smoothcde import build_model
from smoothcde.paths import ExactGPPath, GPPath, KernelPath
from smoothcde.paths.block_tridiagonal import solve_blocks
from smoothcde.paths.gp import LONG_NODES, LONG_SERIES
from smoothcde.series import SeriesSet


def stamps_of(kind, count, rng):
    """Over a window of length 1: evenly spread, in three crowds far from each other, or in many small ones."""
    if kind == "even":
        return np.linspace(0, 1, count)
    if kind == "gaps":
        places, spread = rng.choice([0.1, 0.6, 0.95], count), rng.choice([0.05, 0.003], count)
        return np.sort((places + spread * rng.uniform(-1, 1, count)).clip(0, 1))
    return np.sort(rng.choice(np.linspace(0.01, 0.99, 25), count) + 0.002 * rng.uniform(-1, 1, count))


def recording(kind="even", count=400, missing=0.0, seed=0):
    """Noise in one channel, a random walk in the other."""
    rng = np.random.default_rng(seed)
    values = np.stack([rng.standard_normal(count), rng.standard_normal(count).cumsum() / 5])
    values[rng.random(values.shape) < missing] = np.nan
    return SeriesSet.from_arrays([values], [stamps_of(kind, count, rng)], window=(0.0, 1.0))


def attention(batch, seed=0):
    """Two views: even attention, and one that differs by orders of magnitude."""
    scores = torch.as_tensor(np.random.default_rng(seed).standard_normal((len(batch), 2, batch.times.shape[1])))
    return torch.softmax(scores * torch.tensor([0.0, 5.0])[:, None], dim=2)


def moments_of(path, count=701):
    return path.start[:, None] + (path.end - path.start)[:, None] * torch.linspace(0, 1, count, dtype=torch.float64)


def worst(actual, expected):
    """The largest relative error of any row and channel."""
    return float(((actual.double() - expected).abs().amax(1) / expected.abs().amax(1)).max())


def test_a_window_shorter_than_its_one_panel_knows_its_slopes():
    """Panels are as long as the longest window needs; shares are of a row's own."""
    rng, counts = np.random.default_rng(0), (LONG_SERIES + 1000, LONG_SERIES // 4)
    stamps = [np.linspace(0, count / 600, count) for count in counts]
    series = SeriesSet.from_arrays([np.sin(t)[None] + 0.1 * rng.standard_normal((1, len(t))) for t in stamps], stamps)
    path = GPPath.fit(series.batch(dtype=torch.float64), 14.0, 0.1)
    assert path.slopes.shape[1] == 1
    shares = tuple(np.linspace(0, 1, 9).tolist())
    window = path.end - path.start
    times = path.times_at(shares)
    expected = path.derivative(times)
    torch.testing.assert_close(path.slopes_at((shares,)), expected, rtol=1e-9, atol=1e-9)
    found = path.squared_derivatives_at(shares, 2)
    first = (expected * window[:, None, None]).square().sum(dim=2)
    torch.testing.assert_close(found[0], first, rtol=1e-9, atol=1e-9)
    second = (path.derivative(times, 2) * window[:, None, None] ** 2).square().sum(dim=2)
    torch.testing.assert_close(found[1], second, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.4], ids=["complete", "masks per channel"])
@pytest.mark.parametrize("kind", ["even", "gaps", "crowds"])
@pytest.mark.parametrize("bandwidth", [0.01, 0.001])
def test_values_and_derivatives_are_those_of_the_exact_gp(bandwidth, kind, missing):
    series = recording(kind, missing=missing)
    double, single = series.batch(dtype=torch.float64), series.batch(dtype=torch.float32)
    for weights in (None, attention(double)):
        exact = ExactGPPath.fit(double, bandwidth, 0.01, weights)
        t = moments_of(exact)
        expected = exact.evaluate(t), exact.derivative(t)
        for batch, tolerance in ((double, 1e-8), (single, 1e-5)):
            path = GPPath.fit(batch, bandwidth, 0.01, weights)
            assert path.coefficients.shape[1] > 1
            assert worst(path.evaluate(t), expected[0]) <= tolerance
            assert worst(path.derivative(t), expected[1]) <= tolerance


def test_equals_scikit_learn_where_stamps_are_dense_and_noise_is_small():
    series = recording(count=1200)
    fitted = GaussianProcessRegressor(RBF(0.02, "fixed"), alpha=0.001**2, optimizer=None)
    fitted.fit(series.times[:, None], series.values)
    path = GPPath.fit(series.batch(dtype=torch.float64), 0.02, 0.001)
    t = moments_of(path)
    assert path.coefficients.shape[1] > 1
    assert worst(path.evaluate(t), torch.as_tensor(fitted.predict(t[0].numpy()[:, None]))[None]) <= 1e-6


def test_panels_meet_without_a_kink():
    path = GPPath.fit(recording().batch(dtype=torch.float64), 0.01, 0.01)
    border = torch.arange(1, path.coefficients.shape[1]) * path.panel
    for order in (0, 1, 2):
        before, after = (
            path.derivative(t[None], order) if order else path.evaluate(t[None])
            for t in (border * (1 - 1e-14), border * (1 + 1e-14))
        )
        assert worst(before, after) <= 1e-8


def test_a_path_has_one_panel_unless_it_is_long():
    batch = recording(count=200).batch(dtype=torch.float64)
    assert GPPath.fit(batch, 0.05, 0.1).coefficients.shape[1] == 1
    assert GPPath.fit(batch, 0.05, 0.1, nodes=LONG_NODES + 1).coefficients.shape[1] > 1
    crowded = recording(count=LONG_SERIES + 1).batch(dtype=torch.float64)
    assert GPPath.fit(crowded, 0.05, 0.1).coefficients.shape[1] > 1


def test_rows_of_any_length_and_views_of_any_bandwidth_share_a_batch():
    rng = np.random.default_rng(1)
    times = [np.sort(rng.uniform(0, span, count)) for span, count in ((1.0, 150), (0.02, 7), (0.4, 60))]
    series = SeriesSet.from_arrays([rng.standard_normal((2, len(t))) for t in times], times)
    bandwidth, noise, scale = (0.005, 5.0, 0.1), (0.01, 0.1, 0.02), (1.0, 2.0, 0.5)
    batch = series.batch(dtype=torch.float64)
    together = GPPath.fit(batch, bandwidth, noise, prior_scale=scale, prior_mean=0.7)
    t = moments_of(together, 101)
    for view in range(3):
        for i in range(3):
            standard = series.batch([i], dtype=torch.float64)
            standard = replace(standard, values=(standard.values - 0.7) / scale[view])
            exact = ExactGPPath.fit(standard, bandwidth[view], noise[view] / scale[view])
            row = [3 * view + i]
            assert worst(together.evaluate(t)[row], exact.evaluate(t[row]) * scale[view] + 0.7) <= 1e-7
            assert worst(together.derivative(t)[row], exact.derivative(t[row]) * scale[view]) <= 1e-7


@pytest.mark.parametrize("missing", [0.0, 0.4], ids=["complete", "masks per channel"])
def test_gradients_are_those_of_the_exact_gp(missing):
    batch = recording("gaps", 150, missing).batch(dtype=torch.float64)
    gradients = []
    for cls in (GPPath, ExactGPPath):
        values = batch.values.clone().requires_grad_()
        weights = attention(batch).requires_grad_()
        bandwidth = torch.tensor([0.004, 0.02], dtype=torch.float64, requires_grad=True)
        noise = torch.tensor(0.05, dtype=torch.float64, requires_grad=True)
        path = cls.fit(replace(batch, values=values), bandwidth, noise, weights)
        t = moments_of(path, 301)
        total = path.evaluate(t).square().sum() + (0.01 * path.derivative(t)).sin().sum()
        gradients.append(torch.autograd.grad(total, (values, weights, bandwidth, noise)))
    for actual, expected in zip(*gradients, strict=True):
        assert (actual - expected).abs().max() <= 1e-7 * expected.abs().max()


def test_blocks_are_solved_as_the_whole_and_pass_gradients():
    generator = torch.Generator().manual_seed(0)
    blocks, systems, size = 4, 2, 3
    random = [
        torch.randn(count, systems, size, width, dtype=torch.float64, generator=generator).requires_grad_()
        for count, width in ((blocks, size), (blocks - 1, size), (blocks, 2))
    ]

    def solved(diagonal, beside, right):
        return solve_blocks(diagonal + diagonal.mT + 20 * torch.eye(size, dtype=torch.float64), beside, right)

    whole = torch.zeros(systems, blocks * size, blocks * size, dtype=torch.float64)
    for k in range(blocks):
        here, there = slice(k * size, (k + 1) * size), slice((k + 1) * size, (k + 2) * size)
        whole[:, here, here] = (random[0] + random[0].mT)[k].detach() + 20 * torch.eye(size)
        if k + 1 < blocks:
            whole[:, here, there], whole[:, there, here] = random[1][k].detach(), random[1][k].detach().mT
    expected = torch.linalg.solve(whole, random[2].detach().transpose(0, 1).reshape(systems, blocks * size, 2))
    torch.testing.assert_close(solved(*random).transpose(0, 1).reshape(expected.shape), expected)
    assert torch.autograd.gradcheck(solved, random)


class TestKernelPath:
    @pytest.mark.parametrize("missing", [0.0, 0.5], ids=["complete", "masks per channel"])
    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "epanechnikov", "tricube"])
    def test_what_is_far_away_does_not_count(self, kernel, missing):
        batch = recording("gaps", 800, missing).batch(dtype=torch.float64)
        for weights in (None, attention(batch)):
            path = KernelPath.fit(batch, 0.0002, weights, kernel=kernel)
            assert 0 < path.near_count < 200
            everything = replace(path, near=None)
            t = moments_of(path, 301)
            torch.testing.assert_close(path.evaluate(t), everything.evaluate(t), rtol=0.0, atol=1e-12)
            assert worst(path.derivative(t), everything.derivative(t)) <= 1e-12
            assert worst(path.derivative(t[:, ::30], 2), everything.derivative(t[:, ::30], 2)) <= 1e-12

    def test_gradients_are_those_of_the_whole_sum(self):
        batch = recording("crowds", 600, 0.5).batch(dtype=torch.float64)
        path = KernelPath.fit(batch, 0.0005, attention(batch))
        t = moments_of(path, 51)
        gradients = []
        for form in (path, replace(path, near=None)):
            leaves = [x.clone().requires_grad_() for x in path.tensors()]
            same = form.with_tensors(leaves)
            total = same.evaluate(t).square().sum() + (0.001 * same.derivative(t)).sin().sum()
            gradients.append(torch.autograd.grad(total, leaves))
        assert path.near is not None
        for actual, expected in zip(*gradients, strict=True):
            assert (actual - expected).abs().max() <= 1e-12 * expected.abs().max()

    def test_all_count_where_the_window_holds_most_or_the_kernel_forgets_none(self):
        batch = recording(count=600).batch()
        assert KernelPath.fit(batch, 0.1).near is None
        assert KernelPath.fit(batch, 0.0005, kernel="cauchy").near is None
        assert KernelPath.fit(recording(count=100).batch(), 0.0005).near is None

    def test_selected_rows_look_at_their_own_stamps(self):
        batch = recording("crowds", 600).batch(dtype=torch.float64)
        path = KernelPath.fit(batch, (0.0002, 0.0005))
        assert path.near is not None
        t = moments_of(path, 31)
        torch.testing.assert_close(path.select([1]).evaluate(t[1:]), path.evaluate(t)[1:])


def test_a_model_trains_on_a_long_series():
    batch = recording(count=LONG_SERIES + 1).batch()
    model = build_model(
        "mvc-gp", channels=2, outputs=2, bandwidths=(0.05, 0.2), time_scale=1.0, hidden=4, encoder_width=8, rtol=1e-1
    )
    model(batch).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    assert all(float(p.grad.abs().max()) > 0 for n, p in model.named_parameters() if n.startswith(("encoder", "att")))


def test_a_shorter_neighbour_does_not_make_a_kernel_path_look_at_all_stamps():
    generator = np.random.default_rng(0)

    def of(*lengths: int) -> KernelPath:
        times = [np.sort(generator.random(n)) * n / 1000 for n in lengths]
        values = [generator.normal(size=(1, n)) for n in lengths]
        return KernelPath.fit(SeriesSet.from_arrays(values, times).batch(dtype=torch.float64), 0.005)

    alone, beside = of(20_000, 20_000), of(20_000, 9_000, 0)
    assert 0 < beside.near_count < 2 * alone.near_count
    moments = torch.rand(3, 5, dtype=torch.float64) * beside.end[:, None]
    everything = replace(beside, near=None, near_count=0)
    torch.testing.assert_close(beside.evaluate(moments), everything.evaluate(moments))
