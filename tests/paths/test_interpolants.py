"""The exact interpolants against SciPy, NumPy and torchcde; the smoothing spline against SciPy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torchcde
from scipy.interpolate import CubicSpline, UnivariateSpline

from smoothcde.paths import HermitePath, LinearPath, NaturalCubicPath, RectilinearPath, SmoothingSplinePath
from smoothcde.series import SeriesSet

SHARED_TIMES = np.array([0.0, 0.4, 1.5, 1.7, 3.0, 4.2, 4.9, 6.0, 7.7, 8.0])


def shared_grid(missing, seed=0):
    """Five series of three channels on one grid, as torchcde asks, NaN where missing."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((5, len(SHARED_TIMES), 3))
    values[rng.random(values.shape) < missing] = np.nan
    if missing:
        values[0, :, 0] = np.nan  # a channel never observed
        values[1, 1:, 1], values[1, 0, 1] = np.nan, 0.5  # observed at the first stamp only
        values[2, :-1, 2], values[2, -1, 2] = np.nan, 0.5  # observed at the last stamp only
        values[3, :3, 0] = np.nan  # filled back over several stamps
        values[3, -3:, 1] = np.nan  # and forward
    return values


def as_batch(values):
    return SeriesSet.from_arrays(values.transpose(0, 2, 1), SHARED_TIMES).batch(dtype=torch.float64)


def own_times(seed=0):
    """Series with own times, unequal lengths and missing values, their first and last stamps observed."""
    rng = np.random.default_rng(seed)
    values, times = [], []
    for length in (2, 3, 7, 20):
        x = rng.standard_normal((2, length))
        x[:, 1:-1][rng.random((2, length - 2)) < 0.4] = np.nan
        values.append(x)
        times.append(np.sort(rng.uniform(5, 15, length)))
    return values, times


def moments_of(path, count=61):
    """Over the whole window, none of them a stamp inside it."""
    return path.start[:, None] + (path.end - path.start)[:, None] * torch.linspace(0, 1, count, dtype=torch.float64)


def assert_close(actual, expected, tolerance=1e-9):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tolerance, atol=tolerance)


complete_or_missing = pytest.mark.parametrize("missing", [0.0, 0.4, 0.8], ids="{:.0%} missing".format)


class TestTorchcde:
    @complete_or_missing
    def test_linear(self, missing):
        values = shared_grid(missing)
        path, times = LinearPath.fit(as_batch(values)), torch.as_tensor(SHARED_TIMES)
        coefficients = torchcde.linear_interpolation_coeffs(torch.as_tensor(values), times)
        self.compare(path, torchcde.LinearInterpolation(coefficients, times))

    @complete_or_missing
    def test_hermite(self, missing):
        values = shared_grid(missing)
        path, times = HermitePath.fit(as_batch(values)), torch.as_tensor(SHARED_TIMES)
        coefficients = torchcde.hermite_cubic_coefficients_with_backward_differences(torch.as_tensor(values), times)
        self.compare(path, torchcde.CubicSpline(coefficients, times))

    @complete_or_missing
    def test_natural_cubic(self, missing):
        values = shared_grid(missing)
        path, times = NaturalCubicPath.fit(as_batch(values)), torch.as_tensor(SHARED_TIMES)
        coefficients = torchcde.natural_cubic_coeffs(torch.as_tensor(values), times)
        self.compare(path, torchcde.CubicSpline(coefficients, times))

    @complete_or_missing
    @pytest.mark.filterwarnings("ignore:The data `x` begins with missing values")
    def test_rectilinear_with_time_as_the_last_channel(self, missing):
        values = shared_grid(missing)
        path = RectilinearPath.fit(as_batch(values), time_scale=2.0)
        time = np.broadcast_to(SHARED_TIMES[:, None] / 2.0, (5, len(SHARED_TIMES), 1))
        with_time = torch.as_tensor(np.concatenate([values, time], axis=2))
        coefficients = torchcde.linear_interpolation_coeffs(with_time, rectilinear=3)
        self.compare(path, torchcde.LinearInterpolation(coefficients))

    @staticmethod
    def compare(path, theirs):
        moments = theirs.grid_points
        between = (moments[:-1, None] + moments.diff()[:, None] * torch.tensor([0.2, 0.7])).flatten()
        for t in (moments, between):
            assert_close(path.evaluate(t.expand(path.rows, -1)), theirs.evaluate(t))
        # At its grid torchcde's derivative is that of the piece which ends there, ours of the piece which begins.
        assert_close(path.derivative(between.expand(path.rows, -1)), theirs.derivative(between))
        assert path.end.eq(moments[-1]).all()


class TestScipy:
    def test_linear_is_numpy_interp_over_what_each_channel_observed(self):
        values, times = own_times()
        values[3][0, :4], values[3][1, -4:] = np.nan, np.nan  # constant before the first and after the last
        path = LinearPath.fit(SeriesSet.from_arrays(values, times).batch(dtype=torch.float64))
        t = moments_of(path)
        for i, (x, stamps) in enumerate(zip(values, times, strict=True)):
            for channel in range(2):
                seen = ~np.isnan(x[channel])
                expected = np.interp(t[i].numpy() + stamps[0], stamps[seen], x[channel][seen])
                assert_close(path.evaluate(t)[i, :, channel], expected)

    def test_natural_cubic_is_scipys_natural_spline_over_what_each_channel_observed(self):
        values, times = own_times()
        path = NaturalCubicPath.fit(SeriesSet.from_arrays(values, times).batch(dtype=torch.float64))
        t = moments_of(path)
        for i, (x, stamps) in enumerate(zip(values, times, strict=True)):
            for channel in range(2):
                seen = ~np.isnan(x[channel])
                expected = CubicSpline(stamps[seen], x[channel][seen], bc_type="natural")
                for order in (0, 1, 2, 3):
                    actual = path.derivative(t, order) if order else path.evaluate(t)
                    if order < 3:  # the third derivative jumps at the stamps, the window's ends among them
                        assert_close(actual[i, :, channel], expected(t[i].numpy() + stamps[0], order), 1e-6)
                    else:
                        assert_close(actual[i, 1:-1, channel], expected(t[i, 1:-1].numpy() + stamps[0], order), 1e-5)

    def test_natural_cubic_fills_every_stamp_before_the_first_and_after_the_last_observation(self):
        stamps = np.array([0.0, 1.0, 1.5, 3.0, 4.0, 6.0, 7.0])
        x = np.array([np.nan, np.nan, 2.0, np.nan, -1.0, 0.5, np.nan])
        path = NaturalCubicPath.fit(SeriesSet.from_arrays([[x]], [stamps]).batch(dtype=torch.float64))
        filled = np.array([2.0, 2.0, 2.0, -1.0, 0.5, 0.5])
        expected = CubicSpline(np.delete(stamps, 3), filled, bc_type="natural")
        t = moments_of(path)
        assert_close(path.evaluate(t)[0, :, 0], expected(t[0].numpy()))

    @pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
    def test_smoothing_spline_is_scipys_at_the_observed_stamps_and_a_natural_spline_through_them(self, smoothing):
        values, times = own_times()
        batch = SeriesSet.from_arrays(values, times).batch(dtype=torch.float64)
        path = SmoothingSplinePath.fit(batch, smoothing)
        t = moments_of(path)
        for i, (x, stamps) in enumerate(zip(values, times, strict=True)):
            for channel in range(2):
                seen = ~np.isnan(x[channel])
                count = int(seen.sum())
                spline = UnivariateSpline(stamps[seen], x[channel][seen], k=min(3, count - 1), s=smoothing * count)
                at_stamps = path.evaluate(batch.times)[i, : len(stamps), channel][torch.as_tensor(seen)]
                assert_close(at_stamps, spline(stamps[seen]), 1e-8)
                through = CubicSpline(stamps[seen], spline(stamps[seen]), bc_type="natural")
                assert_close(path.evaluate(t)[i, :, channel], through(t[i].numpy() + stamps[0]), 1e-8)

    def test_smoothing_spline_takes_half_the_observations_as_penalty_by_default(self):
        rng = np.random.default_rng(0)
        stamps, x = np.arange(50.0), np.sin(np.arange(50.0) / 5) + rng.standard_normal(50)
        batch = SeriesSet.from_arrays([[x]], [stamps]).batch(dtype=torch.float64)
        smoothed = SmoothingSplinePath.fit(batch).evaluate(batch.times)[0, :, 0]
        assert_close(smoothed, UnivariateSpline(stamps, x, s=0.5 * 50)(stamps), 1e-8)
        assert ((smoothed.numpy() - x) ** 2).sum() == pytest.approx(0.5 * 50, rel=2e-3)


class TestHermite:
    def test_slope_at_a_stamp_is_that_of_the_line_into_it(self):
        batch = as_batch(shared_grid(0.0))
        path = HermitePath.fit(batch)
        lines = batch.values.diff(dim=1) / batch.times.diff(dim=1)[:, :, None]
        assert_close(path.derivative(batch.times)[:, 1:], lines)
        assert_close(path.derivative(batch.times)[:, 0], lines[:, 0])


class TestRectilinear:
    @pytest.mark.parametrize("latest", [0, 3, 8])
    def test_later_values_change_nothing_before_the_clocks_reading(self, latest):
        values = shared_grid(0.4)
        values[:, 0] = 1.0  # before a channel's first observation the path is not causal, and says so
        batch = as_batch(values)
        changed = values.copy()
        changed[:, latest + 1 :] = np.random.default_rng(9).standard_normal(changed[:, latest + 1 :].shape)
        now = torch.as_tensor(0.4 * SHARED_TIMES[latest] + 0.6 * SHARED_TIMES[latest + 1]).expand(5, 1)
        path, other = RectilinearPath.fit(batch), RectilinearPath.fit(as_batch(changed))
        reading = path.clock(now)
        assert torch.equal(reading, other.clock(now))
        before = reading * torch.linspace(0, 1, 50, dtype=torch.float64)
        assert torch.equal(path.evaluate(before), other.evaluate(before))
        assert torch.equal(path.derivative(before), other.derivative(before))
        # Linear interpolation, in contrast, heads for the next value.
        future = LinearPath.fit(as_batch(changed)).evaluate(now) - LinearPath.fit(batch).evaluate(now)
        assert future.abs().max() > 0.01

    def test_clock_reads_twice_the_stamp_and_shows_the_latest_value_and_the_time(self):
        batch = as_batch(shared_grid(0.0))
        path = RectilinearPath.fit(batch)
        stamps = torch.arange(len(SHARED_TIMES), dtype=torch.float64)
        assert_close(path.clock(batch.times), (2 * stamps).expand(5, -1))
        now = torch.tensor([[0.1, 1.6, 3.3, 7.9]], dtype=torch.float64).expand(5, -1)
        shown = path.evaluate(path.clock(now))
        latest = np.searchsorted(SHARED_TIMES, now[0].numpy(), side="right") - 1
        assert_close(shown[:, :, :3], batch.values[:, latest])
        assert_close(shown[:, :, 3], now)

    def test_clock_stops_at_the_stamps_ends(self):
        series = SeriesSet.from_arrays([[[1.0, 2.0, 3.0]], [[1.0]]], [[1.0, 2.0, 4.0], [2.0]], window=(0.0, 9.0))
        path = RectilinearPath.fit(series.batch(dtype=torch.float64))
        t = torch.tensor([[0.0, 1.0, 3.0, 4.0, 9.0]], dtype=torch.float64).expand(2, -1)
        assert path.clock(t).tolist() == [[0.0, 0.0, 2.5, 4.0, 4.0], [0.0] * 5]

    def test_moves_in_time_then_in_value(self):
        path = RectilinearPath.fit(SeriesSet.from_arrays([[[5.0, 7.0]]], [[0.0, 3.0]]).batch(dtype=torch.float64))
        corners = path.evaluate(torch.tensor([[0.0, 1.0, 2.0]]))[0]
        assert corners.tolist() == [[5.0, 0.0], [5.0, 3.0], [7.0, 3.0]]


@pytest.mark.parametrize("cls", [LinearPath, HermitePath, NaturalCubicPath, SmoothingSplinePath])
def test_a_window_wider_than_the_stamps_has_knots_at_the_first_and_last(cls):
    series = SeriesSet.from_arrays([[[1.0, 2.0, 0.0]]], [[1.0, 2.0, 4.0]], window=(0.0, 6.0))
    path = cls.fit(series.batch(dtype=torch.float64))
    assert {1.0, 4.0} <= set(path.knots[0].tolist())
    assert_close(path.evaluate(0.0), path.evaluate(1.0))
    assert_close(path.evaluate(6.0), path.evaluate(4.0))
    assert path.derivative(0.5).item() == path.derivative(5.0).item() == 0.0


def test_what_stands_at_unobserved_places_does_not_matter():
    batch = as_batch(shared_grid(0.4))
    strange = replace(batch, values=torch.where(batch.mask, batch.values, 77.0))
    for cls in (LinearPath, HermitePath, NaturalCubicPath, RectilinearPath, SmoothingSplinePath):
        path, same = cls.fit(batch), cls.fit(strange)
        assert torch.equal(path.evaluate(moments_of(path)), same.evaluate(moments_of(path)))
