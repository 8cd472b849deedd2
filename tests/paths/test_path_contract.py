"""The contract that every path keeps, on every kind of batch that irregular series make."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from smoothcde.paths import (
    ExactGPPath,
    GPPath,
    HermitePath,
    JoinedPath,
    KernelPath,
    LinearPath,
    NaturalCubicPath,
    RectilinearPath,
    SmoothingSplinePath,
    TimePath,
)
from smoothcde.series import SeriesSet


def recent(batch):
    """Two views: all stamps alike, and the recent ones more."""
    return torch.stack([torch.ones_like(batch.times), 0.1 + batch.times], dim=1)


def with_time_and_counts(batch):
    path = GPPath.fit(batch, bandwidth=1.5, noise=0.1)
    return JoinedPath.of(path, TimePath.beside(path, scale=4.0), LinearPath.fit(batch.counts(scale=0.5)))


# A new path is tested by one line here: its name, and how to fit it to a batch.
PATHS = {
    "linear": LinearPath.fit,
    "rectilinear": RectilinearPath.fit,
    "hermite": HermitePath.fit,
    "natural cubic": NaturalCubicPath.fit,
    "smoothing spline": SmoothingSplinePath.fit,
    "gaussian kernel": lambda batch: KernelPath.fit(batch, bandwidth=0.5),
    "laplacian kernel": lambda batch: KernelPath.fit(batch, bandwidth=0.5, kernel="laplacian"),
    "cauchy kernel": lambda batch: KernelPath.fit(batch, bandwidth=0.5, kernel="cauchy"),
    "epanechnikov kernel": lambda batch: KernelPath.fit(batch, bandwidth=0.9, kernel="epanechnikov"),
    "tricube kernel": lambda batch: KernelPath.fit(batch, bandwidth=0.9, kernel="tricube"),
    "two kernel views": lambda batch: KernelPath.fit(batch, bandwidth=(0.3, 2.0), weights=recent(batch)),
    "gp": lambda batch: GPPath.fit(batch, bandwidth=0.8, noise=0.05),
    "gp with variance": lambda batch: GPPath.fit(batch, bandwidth=0.8, noise=0.05, variance=True),
    "two gp views": lambda batch: GPPath.fit(batch, bandwidth=(0.3, 2.0), noise=(0.1, 0.02), weights=recent(batch)),
    "exact gp": lambda batch: ExactGPPath.fit(batch, bandwidth=0.8, noise=0.05),
    "joined with time and counts": with_time_and_counts,
}
NOT_DIFFERENTIABLE = {"smoothing spline"}

nan = np.nan
IRREGULAR = [
    [[0.3, nan, -1.1, 0.4, nan, 2.0, 0.7], [nan, 1.5, nan, nan, 0.2, -0.6, nan]],
    [[1.0, -0.5, 0.25, nan], [0.8, nan, nan, -1.4]],
    [[nan, 0.6, nan, -0.9, 1.2], [0.1, 0.2, -0.4, 1.1, 0.3]],
]
IRREGULAR_TIMES = [
    [10.0, 10.4, 11.1, 11.3, 12.9, 13.0, 15.2],
    [-1.0, 0.5, 0.9, 4.0],
    [0.0, 0.3, 2.2, 2.5, 4.8],
]
NOTHING = np.zeros((2, 0))

SERIES = {
    "complete": SeriesSet.from_arrays(
        np.sin(np.arange(24.0) ** 1.3).reshape(2, 2, 6), times=[0.0, 0.7, 1.9, 2.0, 3.1, 4.4]
    ),
    "missing values, own times, unequal lengths": SeriesSet.from_arrays(IRREGULAR, IRREGULAR_TIMES),
    "a series of one observation": SeriesSet.from_arrays(
        [IRREGULAR[0], [[0.5], [nan]], [[nan, nan, nan], [nan, -0.7, nan]]],
        [IRREGULAR_TIMES[0], [3.0], [0.0, 1.0, 2.5]],
    ),
    "a channel never observed": SeriesSet.from_arrays(
        [IRREGULAR[0], [[0.5, 0.1, -0.3], [nan, nan, nan]]], [IRREGULAR_TIMES[0], [0.0, 1.2, 2.0]]
    ),
    "a channel observed in no series": SeriesSet.from_arrays(
        [[[0.5, 0.1, -0.3], [nan, nan, nan]]], [[0.0, 1.2, 2.0]]
    ),
    "a series without observations": SeriesSet.from_arrays(
        [IRREGULAR[1], NOTHING, [[nan, nan], [nan, nan]]], [IRREGULAR_TIMES[1], [], [0.0, 1.0]]
    ),
    "no observations at all": SeriesSet.from_arrays([NOTHING, NOTHING], [[], []]),
    "one stamp at most": SeriesSet.from_arrays([[[0.5], [nan]], NOTHING, [[1.5], [-0.2]]], [[3.0], [], [0.0]]),
    "a window wider than the stamps": SeriesSet.from_arrays(
        [*IRREGULAR, [[0.5], [nan]], NOTHING],
        [*IRREGULAR_TIMES, [3.0], []],
        window=([8.5, -1.0, -2.0, 1.0, 0.0], [16.0, 6.0, 4.8, 5.0, 2.0]),
    ),
}

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


@pytest.fixture(params=PATHS)
def name(request):
    return request.param


@pytest.fixture
def fit(name):
    return PATHS[name]


@pytest.fixture(params=SERIES)
def series(request):
    return SERIES[request.param]


@pytest.fixture
def path(fit, series):
    return fit(series.batch(dtype=torch.float64))


def moments_inside(path, count=23):
    """Times strictly inside each row's window, the same share of it for every row."""
    share = torch.as_tensor(np.random.default_rng(0).uniform(0.001, 0.999, count))
    return path.start[:, None] + (path.end - path.start)[:, None] * share


def moments_around(path):
    """Before, at the ends of, inside and after each row's window."""
    start, end = path.start[:, None], path.end[:, None]
    return torch.cat([start - 3, start, moments_inside(path), end, end + 5], dim=1)


def assert_close(actual, expected, tolerance=1e-10):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def assert_same_knots(actual, expected):
    """Equal up to how many columns of padding there are."""
    shared = min(actual.shape[1], expected.shape[1])
    assert_close(actual[:, :shared], expected[:, :shared])
    assert actual[:, shared:].isinf().all()
    assert expected[:, shared:].isinf().all()


class TestShapes:
    def test_one_row_per_view_and_series(self, path, series):
        assert path.rows % len(series) == 0
        assert path.start.shape == path.end.shape == (path.rows,)
        assert path.start.dtype == path.end.dtype == torch.float64

    @pytest.mark.parametrize("order", [0, 1, 2])
    def test_a_number_one_time_per_row_or_several(self, path, order):
        def ask(t):
            return path.derivative(t, order) if order else path.evaluate(t)

        several = path.start[:, None] + torch.tensor([0.0, 0.3, 1.7, 9.0])
        assert ask(several).shape == (path.rows, 4, path.channels)
        assert ask(several[:, 1]).shape == (path.rows, path.channels)
        assert ask(0.3).shape == ask(1).shape == (path.rows, path.channels)
        assert_close(ask(several[:, 1]), ask(several)[:, 1])
        assert_close(ask(0.3), ask(torch.full((path.rows,), 0.3, dtype=torch.float64)))

    @DTYPES
    def test_precision_is_the_batchs(self, name, fit, series, dtype):
        path = fit(series.batch(dtype=dtype))
        expected = torch.float64 if name == "exact gp" else dtype
        assert path.dtype == path.evaluate(0.3).dtype == path.derivative(0.3).dtype == expected

    def test_float32_is_close_to_float64(self, fit, series, path):
        single = fit(series.batch(dtype=torch.float32))
        t = moments_inside(path)
        assert_close(single.evaluate(t).double(), path.evaluate(t), 1e-4)


@DTYPES
def test_everything_is_finite(fit, series, dtype):
    path = fit(series.batch(dtype=dtype))
    t = moments_around(path)
    assert path.evaluate(t).isfinite().all()
    assert path.derivative(t).isfinite().all()


def test_derivative_is_that_of_the_values(path):
    # Rows whose window is a single moment have no inside to move in.
    path = path.select(path.end > path.start)
    step = 1e-5 * (path.end - path.start)[:, None]
    t = moments_inside(path)
    if path.knots.shape[1]:
        from_knot = (t[:, :, None] - path.knots[:, None, :]).abs().min(dim=2).values
        assert (from_knot > step).all(), "choose moments away from knots"
    slope = (path.evaluate(t + step) - path.evaluate(t - step)) / (2 * step[:, :, None])
    bend = (path.derivative(t + step) - path.derivative(t - step)) / (2 * step[:, :, None])
    assert_close(path.derivative(t), slope, 1e-5)
    assert_close(path.derivative(t, order=2), bend, 1e-5)


def test_constant_outside_the_window(path):
    assert_close(path.evaluate(path.start - 0.1), path.evaluate(path.start))
    assert_close(path.evaluate(path.end + 0.1), path.evaluate(path.end))
    assert_close(path.evaluate(path.end + 1e6), path.evaluate(path.end))
    for outside in (path.start - 0.1, path.start - 1e6, path.end + 0.1, path.end + 1e6):
        for order in (1, 2):
            assert path.derivative(outside, order).eq(0).all()


def test_select_gives_rows_of_the_whole(path):
    t = moments_around(path)
    last_first = list(range(path.rows))[::-1]
    every_other = torch.arange(path.rows) % 2 == 0
    for rows in (last_first, every_other, [0, 0], slice(1, None)):
        part = path.select(rows)
        assert type(part) is type(path)
        assert part.channels == path.channels
        assert_close(part.evaluate(t[rows]), path.evaluate(t)[rows])
        assert_close(part.derivative(t[rows]), path.derivative(t)[rows])
        assert_same_knots(part.knots, path.knots[rows])


def test_a_series_alone_gives_what_it_gives_in_a_batch(fit, series, path):
    t = moments_around(path)
    for i in range(len(series)):
        alone = fit(series.batch([i], dtype=torch.float64))
        rows = torch.arange(i, path.rows, len(series))  # view-major
        assert alone.rows == len(rows)
        # A GP path has as many nodes as the batch's longest window needs, so rounding differs.
        assert_close(alone.evaluate(t[rows]), path.evaluate(t)[rows], 1e-7)
        assert_close(alone.derivative(t[rows]), path.derivative(t)[rows], 1e-6)
        assert_same_knots(alone.knots, path.knots[rows])


class TestTensors:
    def test_round_trip(self, path):
        t = moments_around(path)
        again = path.with_tensors([tensor.clone() for tensor in path.tensors()])
        assert type(again) is type(path)
        assert_close(again.evaluate(t), path.evaluate(t), 0.0)
        assert_close(again.derivative(t), path.derivative(t), 0.0)

    def test_gradients_reach_every_one(self, path):
        leaves = [tensor.clone().requires_grad_() for tensor in path.tensors()]
        again = path.with_tensors(leaves)
        t = moments_inside(path)
        total = again.evaluate(t).square().sum() + again.derivative(t).square().sum()
        for gradient in torch.autograd.grad(total, leaves):
            assert gradient.isfinite().all()


def test_knots_increase_inside_the_window_padded_with_infinity(path):
    knots = path.knots
    assert knots.shape[0] == path.rows
    assert knots.dtype == torch.float64
    assert not knots.isnan().any()
    real = knots.isfinite()
    assert knots[~real].eq(torch.inf).all()
    # diff is positive between knots, infinite at the first padding, NaN within padding.
    assert (knots.diff(dim=1) > 0)[real[:, 1:]].all()
    assert (real.int().diff(dim=1) <= 0).all()
    assert ((knots > path.start[:, None]) & (knots < path.end[:, None]))[real].all()


def test_gradients_with_respect_to_values(name, fit, series):
    batch = series.batch(dtype=torch.float64)
    values = batch.values.clone().requires_grad_()
    t = moments_inside(fit(batch), count=5)
    if name in NOT_DIFFERENTIABLE:
        path = fit(replace(batch, values=values))
        assert not path.evaluate(t).requires_grad
        assert not path.derivative(t).requires_grad
        return

    def values_and_slopes(values):
        path = fit(replace(batch, values=values))
        return path.evaluate(t), path.derivative(t)

    assert torch.autograd.gradcheck(values_and_slopes, values, fast_mode=True)
