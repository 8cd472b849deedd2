"""The contract that every path keeps, on every kind of batch that irregular series make."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from smoothcde.paths import (
    ExactGPPath,
    GPPath,
    HermitePath,
    IntegralPath,
    JoinedPath,
    KernelPath,
    LinearPath,
    LogSignaturePath,
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
    "two gp views": lambda batch: GPPath.fit(batch, bandwidth=(0.3, 2.0), noise=(0.1, 0.02), weights=recent(batch)),
    "gp in panels": lambda batch: GPPath.fit(batch, bandwidth=(0.3, 2.0), noise=0.1, weights=recent(batch), nodes=101),
    "exact gp": lambda batch: ExactGPPath.fit(batch, bandwidth=0.8, noise=0.05),
    "log-signatures of depth 1": lambda batch: LogSignaturePath.fit(batch, depth=1, step=0.9),
    "log-signatures of depth 2": lambda batch: LogSignaturePath.fit(batch, depth=2, step=0.9, time_scale=4.0),
    "joined with time and counts": with_time_and_counts,
    "gp views and integrals": lambda batch: IntegralPath.of(PATHS["two gp views"](batch), scale=2.0),
    "linear and integrals": lambda batch: IntegralPath.of(LinearPath.fit(batch), scale=2.0),
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
    "a channel observed in no series": SeriesSet.from_arrays([[[0.5, 0.1, -0.3], [nan, nan, nan]]], [[0.0, 1.2, 2.0]]),
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


# Fitted once per session: run-time shape checks make every new path and batch cost milliseconds.
@cache
def batch_of(kind, dtype=torch.float64):
    return SERIES[kind].batch(dtype=dtype)


@cache
def fitted(name, kind, dtype=torch.float64):
    return PATHS[name](batch_of(kind, dtype))


@cache
def alone(kind, i):
    return SERIES[kind].batch([i], dtype=torch.float64)


@pytest.fixture(params=PATHS)
def name(request):
    return request.param


@pytest.fixture(params=SERIES)
def kind(request):
    return request.param


@pytest.fixture
def path(name, kind):
    return fitted(name, kind)


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


def test_times_are_a_number_or_one_per_row_or_several_per_row(path, kind):
    assert path.rows % len(SERIES[kind]) == 0
    assert path.start.shape == path.end.shape == (path.rows,)
    several = path.start[:, None] + torch.tensor([0.0, 0.3, 1.7, 9.0], dtype=torch.float64)
    for ask in (path.evaluate, path.derivative, lambda t: path.derivative(t, order=2)):
        assert ask(several).shape == (path.rows, 4, path.channels)
        assert ask(several[:, 1]).shape == ask(0.3).shape == ask(1).shape == (path.rows, path.channels)
        assert_close(ask(several[:, 1]), ask(several)[:, 1])
        assert_close(ask(0.3), ask(torch.full((path.rows,), 0.3, dtype=torch.float64)))


def test_everything_is_finite_and_in_the_precision_of_the_batch(name, kind):
    for dtype in (torch.float32, torch.float64):
        path = fitted(name, kind, dtype)
        t = moments_around(path)
        for value in (path.evaluate(t), path.derivative(t)):
            assert value.isfinite().all()
            assert value.dtype == path.dtype == (torch.float64 if name == "exact gp" else dtype)
        assert path.start.dtype == path.end.dtype == torch.float64


def test_float32_is_close_to_float64(name, kind, path):
    single = fitted(name, kind, torch.float32)
    t = moments_inside(path)
    assert_close(single.evaluate(t).double(), path.evaluate(t), 1e-5)
    assert_close(single.derivative(t).double(), path.derivative(t), 1e-4)


def test_derivative_is_that_of_the_values(path):
    # Rows whose window is a single moment have no inside to move in.
    path = path.select(path.end > path.start)
    step = 1e-6 * (path.end - path.start)[:, None]
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


def test_a_series_alone_gives_what_it_gives_in_a_batch(name, kind, path):
    t = moments_around(path)
    values, slopes = path.evaluate(t), path.derivative(t)
    for i in range(len(SERIES[kind])):
        single = PATHS[name](alone(kind, i))
        rows = torch.arange(i, path.rows, len(SERIES[kind]))  # view-major
        assert single.rows == len(rows)
        # A GP path has as many nodes as the batch's longest window needs, so rounding differs.
        assert_close(single.evaluate(t[rows]), values[rows], 1e-7)
        assert_close(single.derivative(t[rows]), slopes[rows], 1e-6)
        assert_same_knots(single.knots, path.knots[rows])


def test_tensors_make_the_same_path_again_and_gradients_reach_them_all(path):
    t = moments_inside(path)
    leaves = [tensor.clone().requires_grad_() for tensor in path.tensors()]
    again = path.with_tensors(leaves)
    assert type(again) is type(path)
    values, slopes = again.evaluate(t), again.derivative(t)
    assert_close(values, path.evaluate(t), 0.0)
    assert_close(slopes, path.derivative(t), 0.0)
    for gradient in torch.autograd.grad(values.square().sum() + slopes.square().sum(), leaves):
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


@pytest.mark.parametrize("kind", ["complete", "a window wider than the stamps"])
def test_gradients_with_respect_to_values(name, kind):
    batch = batch_of(kind)
    values = batch.values.clone().requires_grad_()
    t = moments_inside(fitted(name, kind), count=5)

    def values_and_slopes(values):
        path = PATHS[name](replace(batch, values=values))
        return torch.stack([path.evaluate(t), path.derivative(t)])

    if name in NOT_DIFFERENTIABLE:
        assert not values_and_slopes(values).requires_grad
    else:
        assert torch.autograd.gradcheck(values_and_slopes, values, fast_mode=True)


@pytest.mark.parametrize("kind", SERIES)
@pytest.mark.parametrize("name", PATHS)
def test_derivatives_at_hand_are_those_of_the_path(name, kind):
    path = fitted(name, kind)
    shares = tuple(np.linspace(0.05, 0.95, 9).tolist())
    found = path.squared_derivatives_at(shares, 4)
    if found is None:
        assert "gp" not in name or name == "exact gp"  # those that have them at hand
        return
    window = (path.end - path.start)[:, None]
    for order in (1, 2, 3, 4):
        times = path.start[:, None] + window * torch.tensor(shares, dtype=torch.float64)
        expected = (path.derivative(times, order) * window[..., None] ** order).square().sum(dim=2)
        largest = float(expected.abs().max()) if expected.numel() else 0.0
        torch.testing.assert_close(found[order - 1], expected, rtol=1e-6, atol=1e-6 * largest + 1e-12)


@pytest.mark.parametrize("kind", SERIES)
@pytest.mark.parametrize("name", PATHS)
def test_polynomials_are_the_path(name, kind):
    path = fitted(name, kind)
    found = path.polynomials()
    if found is None:
        assert name not in ("gp", "two gp views", "gp views and integrals")
        return
    times = path.times_at(tuple(np.linspace(0.02, 0.98, 11).tolist()))
    x = 2 * (times - path.start[:, None]) / found.length[:, None] - 1
    for coefficients, expected in ((found.values, path.evaluate(times)), (found.slopes, path.derivative(times))):
        if coefficients is None:
            continue
        degrees = torch.arange(coefficients.shape[1])
        made = torch.cos(degrees * torch.acos(x)[..., None]) @ coefficients.double()
        torch.testing.assert_close(made, expected.double(), rtol=1e-6, atol=1e-6 * float(expected.abs().max()) + 1e-9)
