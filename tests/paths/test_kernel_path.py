"""`KernelPath` against the sum that defines it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from smoothcde.paths import KernelPath
from smoothcde.series import SeriesSet

KERNELS = {
    "gaussian": lambda u: np.exp(-(u**2) / 2),
    "laplacian": lambda u: np.exp(-np.abs(u)),
    "cauchy": lambda u: 1 / (1 + u**2),
    "epanechnikov": lambda u: np.maximum(1 - u**2, 0),
    "tricube": lambda u: np.maximum(1 - np.abs(u) ** 3, 0) ** 3,
}
COMPACT = ("epanechnikov", "tricube")

every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def direct_sum(kernel, times, values, weights, bandwidth, t):
    """The paper's eq. 4 for one channel, one moment at a time; the nearest value where all terms are zero."""
    answer = np.empty(len(t))
    for j, moment in enumerate(t):
        mass = weights * KERNELS[kernel]((moment - times) / bandwidth)
        nearest = values[weights > 0][np.abs(moment - times[weights > 0]).argmin()]
        answer[j] = mass @ values / mass.sum() if mass.sum() > 0 else nearest
    return answer


def series_with_gaps(missing, seed=0):
    """Two series of three channels with a gap of 6 in the middle of a window of about 16."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((2, 3, 30))
    gone = rng.random(values.shape) < missing
    gone[:, :, 0] = False
    times = np.sort(rng.uniform(0, 10, (2, 30)), axis=1)
    return SeriesSet.from_arrays(np.where(gone, np.nan, values), times + 6 * (times > 5))


def moments_of(path, count=97):
    return path.start[:, None] + (path.end - path.start)[:, None] * torch.linspace(0, 1, count, dtype=torch.float64)


@pytest.mark.parametrize("weighted", [False, True], ids=["no weights", "weights"])
@pytest.mark.parametrize("missing", [0.0, 0.6], ids=["complete", "masks per channel"])
@every_kernel
def test_equals_the_direct_sum(kernel, missing, weighted):
    batch = series_with_gaps(missing).batch(dtype=torch.float64)
    bandwidth = (0.4, 3.0)
    scores = np.random.default_rng(1).standard_normal((2, 2, 30))
    weights = torch.softmax(torch.as_tensor(3 * scores), dim=-1) if weighted else torch.ones(2, 2, 30).double()
    path = KernelPath.fit(batch, bandwidth, weights if weighted else None, kernel=kernel)
    rounded = KernelPath.fit(batch.to(dtype=torch.float32), bandwidth, weights if weighted else None, kernel=kernel)
    t = moments_of(path)
    # Half-way across a gap the nearest value of a compact kernel is a tie.
    for row in range(path.rows):
        view, i = divmod(row, 2)
        for channel in range(3):
            seen = batch.mask[i, :, channel].numpy()
            stamps, values = batch.times[i].numpy()[seen], batch.values[i, :, channel].numpy()[seen]
            alpha = weights[i, view].numpy()[seen]
            expected = direct_sum(kernel, stamps, values, alpha, bandwidth[view], t[row].numpy())
            np.testing.assert_allclose(path.evaluate(t)[row, :, channel], expected, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(rounded.evaluate(t)[row, :, channel], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("missing", [0.0, 0.6], ids=["complete", "masks per channel"])
def test_gaussian_derivative_is_the_weighted_covariance_over_the_squared_bandwidth(missing):
    batch = series_with_gaps(missing).batch(dtype=torch.float64)
    weights = torch.softmax(torch.as_tensor(np.random.default_rng(1).standard_normal((2, 1, 30))), dim=-1)
    path = KernelPath.fit(batch, 1.5, weights)
    t = moments_of(path, 11)
    for i in range(2):
        for channel in range(3):
            seen = batch.mask[i, :, channel].numpy()
            stamps, values = batch.times[i].numpy()[seen], batch.values[i, :, channel].numpy()[seen]
            for j, moment in enumerate(t[i].numpy()):
                share = weights[i, 0].numpy()[seen] * np.exp(-0.5 * ((moment - stamps) / 1.5) ** 2)
                covariance = np.cov(stamps, values, aweights=share, ddof=0)[0, 1]
                assert path.derivative(t)[i, j, channel].item() == pytest.approx(covariance / 1.5**2, abs=1e-10)


class TestFarFromObservations:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
    @every_kernel
    def test_everything_is_finite_a_hundred_bandwidths_away(self, kernel, dtype):
        series = SeriesSet.from_arrays([[[1.0, -2.0, 0.5]]], [[100.0, 101.0, 102.0]], window=(0.0, 300.0))
        path = KernelPath.fit(series.batch(dtype=dtype), 1.0, kernel=kernel)
        t = moments_of(path, 301)
        assert path.evaluate(t).isfinite().all()
        assert path.derivative(t).isfinite().all()
        assert path.derivative(t, order=2).isfinite().all()

    @pytest.mark.parametrize("kernel", ["gaussian", *COMPACT])
    def test_the_nearest_observation_decides(self, kernel):
        series = SeriesSet.from_arrays([[[1.0, -2.0, 0.5]]], [[100.0, 101.0, 102.0]], window=(0.0, 300.0))
        path = KernelPath.fit(series.batch(dtype=torch.float64), 1.0, kernel=kernel)
        assert path.evaluate(10.0).item() == pytest.approx(1.0)
        assert path.evaluate(290.0).item() == pytest.approx(0.5)
        assert path.derivative(10.0).item() == pytest.approx(0.0)


class TestKnots:
    def across(self, gap, weights=None):
        series = SeriesSet.from_arrays([[[1.0, 1.0, 3.0, 3.0]]], [[0.0, 0.5, 0.5 + gap, 1.0 + gap]])
        return KernelPath.fit(series.batch(dtype=torch.float64), 1.0, weights)

    def test_a_wide_gap_has_knots_around_its_steep_step(self):
        path = self.across(20.0)
        knots = path.knots[0]
        assert len(knots) == 3
        low, middle, high = path.evaluate(knots[None])[0, :, 0].tolist()
        assert low == pytest.approx(1.0, abs=2e-3)
        assert middle == pytest.approx(2.0, abs=1e-6)
        assert high == pytest.approx(3.0, abs=2e-3)
        assert knots[2] - knots[0] < 1.0  # the step is much narrower than the gap

    def test_weights_move_the_step(self):
        path = self.across(20.0, torch.tensor([[[1.0, 1.0, 1e6, 1e6]]], dtype=torch.float64))
        low, middle, high = path.evaluate(path.knots)[0, :, 0].tolist()
        assert (low, middle, high) == pytest.approx((1.0, 2.0, 3.0), abs=1e-2)

    def test_a_narrow_gap_has_none(self):
        assert self.across(2.5).knots.shape == (1, 0)

    def test_each_channel_has_its_own_gaps(self):
        nan = np.nan
        series = SeriesSet.from_arrays([[[1.0, nan, nan, 2.0], [1.0, 0.0, 1.0, 0.0]]], [[0.0, 5.0, 10.0, 15.0]])
        batch = series.batch(dtype=torch.float64)
        assert KernelPath.fit(batch, 2.0).knots.shape == (1, 3)
        assert KernelPath.fit(replace(batch, mask=torch.ones_like(batch.mask)), 2.0).knots.shape == (1, 0)

    def test_laplacian_kinks_at_the_stamps_and_compact_kernels_a_bandwidth_from_them(self):
        batch = SeriesSet.from_arrays([[[1.0, 2.0, 0.0]]], [[0.0, 4.0, 9.0]]).batch(dtype=torch.float64)
        assert KernelPath.fit(batch, 1.0, kernel="laplacian").knots.tolist() == [[4.0]]
        assert KernelPath.fit(batch, 1.0, kernel="tricube").knots.tolist() == [[1.0, 3.0, 5.0, 8.0]]
        assert KernelPath.fit(batch, 1.0, kernel="epanechnikov").knots.tolist() == [[1.0, 3.0, 5.0, 8.0]]
        assert KernelPath.fit(batch, 1.0, kernel="cauchy").knots.shape == (1, 0)


class TestWeights:
    @pytest.mark.parametrize("missing", [0.0, 0.6], ids=["complete", "masks per channel"])
    @every_kernel
    def test_a_weight_of_zero_excludes_its_stamp(self, kernel, missing):
        batch = series_with_gaps(missing).batch(dtype=torch.float64)
        keep = torch.as_tensor(np.random.default_rng(2).random((2, 30)) < 0.4)
        keep[:, 0] = False
        without = replace(
            batch, mask=batch.mask & keep[:, :, None], values=batch.values * (batch.mask & keep[:, :, None])
        )
        weighted = KernelPath.fit(batch, 0.3, keep[:, None].double(), kernel=kernel)
        expected = KernelPath.fit(without, 0.3, kernel=kernel)
        t = moments_of(expected)
        assert torch.equal(weighted.evaluate(t), expected.evaluate(t))
        assert torch.equal(weighted.derivative(t), expected.derivative(t))
        assert torch.equal(weighted.knots, expected.knots)

    @every_kernel
    def test_all_weights_zero_make_a_path_of_zeros(self, kernel):
        batch = series_with_gaps(0.0).batch(dtype=torch.float64)
        path = KernelPath.fit(batch, 0.3, torch.zeros(2, 1, 30, dtype=torch.float64), kernel=kernel)
        assert path.evaluate(moments_of(path)).eq(0).all()
        assert path.derivative(moments_of(path)).eq(0).all()

    @every_kernel
    def test_scale_does_not_matter(self, kernel):
        batch = series_with_gaps(0.6).batch(dtype=torch.float64)
        weights = torch.as_tensor(np.random.default_rng(3).random((2, 1, 30)))
        t = moments_of(KernelPath.fit(batch, 1.0))
        small, large = (KernelPath.fit(batch, 1.0, s * weights, kernel=kernel) for s in (1e-9, 1e9))
        torch.testing.assert_close(small.evaluate(t), large.evaluate(t), rtol=1e-9, atol=1e-9)

    @every_kernel
    def test_gradients_with_respect_to_weights_and_bandwidth(self, kernel):
        batch = SeriesSet.from_arrays(
            [[[0.3, np.nan, -1.1, 0.4], [1.0, 0.5, np.nan, 2.0]]], [[0.0, 0.6, 1.9, 4.0]]
        ).batch(dtype=torch.float64)
        t = torch.tensor([[0.2, 1.1, 2.3]], dtype=torch.float64)

        def values_and_slopes(weights, bandwidth):
            path = KernelPath.fit(batch, bandwidth, weights, kernel=kernel)
            return torch.stack([path.evaluate(t), path.derivative(t)])

        weights = torch.tensor([[[0.4, 0.1, 0.2, 0.3]]], dtype=torch.float64, requires_grad=True)
        bandwidth = torch.tensor(2.5, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(values_and_slopes, (weights, bandwidth))
