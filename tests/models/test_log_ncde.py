"""Log-NCDE against direct numerical readings of the log-ODE method."""

import itertools

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from smoothcde import LogNCDE, LogSignaturePath, SeriesSet, build_model
from smoothcde.models import TanhField
from smoothcde.paths import LinearPath
from smoothcde.solve import ControlTerm, LogODETerm, Rows, integrate

TIGHT = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture
def series():
    generator = np.random.default_rng(0)
    values = [generator.normal(size=(3, length)).cumsum(axis=1) for length in (13, 8)]
    values[0][1, 4] = np.nan
    return SeriesSet.from_arrays(values, [np.sort(generator.uniform(0, 9, v.shape[1])) for v in values])


def field_of(channels=3, activation="tanh"):
    torch.manual_seed(1)
    return TanhField(1, 4, channels, width=6, activation=activation).double()


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_column_derivatives_are_those_of_forward_mode(activation):
    field, rows = field_of(activation=activation), Rows.all(5)
    z, directions = torch.randn(5, 4, dtype=torch.float64), torch.randn(5, 4, 3, dtype=torch.float64)
    ours = field.column_derivatives(z, directions, rows)
    for column in range(3):
        _, along = torch.func.jvp(lambda z: field.matrix(z, rows), (z,), (directions[:, :, column],))
        torch.testing.assert_close(ours[:, :, column], along[:, :, column])


def test_column_derivatives_keep_views_apart():
    torch.manual_seed(0)
    field = TanhField(2, 4, 3, width=6).double()
    rows = Rows.all(6, views=2).keep(np.array([0, 1, 4]))
    z, directions = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, 3, dtype=torch.float64)
    _, along = torch.func.jvp(lambda z: field.matrix(z, rows), (z,), (directions[:, :, 1],))
    torch.testing.assert_close(field.column_derivatives(z, directions, rows)[:, :, 1], along[:, :, 1])


def brute_log_ode(field, path, row, z0):
    """Window after window: dz/ds = sum_i f_i l_i + sum_{i<j} [f_i, f_j] a_ij, brackets from full Jacobians."""
    rows = Rows.all(1)

    def matrix(z):
        return field.matrix(z[None], rows)[0]

    channels = path.base_channels
    first, second = np.triu_indices(channels, 1)
    z = z0.numpy()
    grid = path.grid[row].numpy()
    for begin, end in itertools.pairwise(grid):
        if end <= begin:
            continue
        rate = path.select([row]).derivative((begin + end) / 2)[0].numpy() * (end - begin)

        def slope(_, z, rate=rate):
            z = torch.as_tensor(z)
            f = matrix(z).detach().numpy()
            jacobian = torch.func.jacrev(matrix)(z).detach().numpy()  # [hidden, channels, hidden]
            total = f @ rate[:channels]
            for k, (i, j) in enumerate(zip(first, second, strict=True)):
                total += rate[channels + k] * (jacobian[:, j] @ f[:, i] - jacobian[:, i] @ f[:, j])
            return total

        z = solve_ivp(slope, (0, 1), z, rtol=1e-10, atol=1e-11).y[:, -1]
    return z


def test_depth_two_is_the_log_ode_method(series):
    batch, field = series.batch(dtype=torch.float64), field_of()
    path = LogSignaturePath.fit(batch, depth=2, step=2.5)
    z0 = torch.randn(2, 4, dtype=torch.float64)
    ours = integrate(LogODETerm(field, path), z0, path.start, path.end, **TIGHT).state.detach().numpy()
    for row in range(2):
        np.testing.assert_allclose(ours[row], brute_log_ode(field, path, row, z0[row]), atol=1e-7)


def test_areas_bring_coarse_windows_closer_to_the_true_path(series):
    batch, field = series.batch(dtype=torch.float64), field_of()
    with torch.no_grad():
        for weight in field.parameters():
            weight.mul_(0.3)  # the log-ODE expansion converges for small fields
    z0 = torch.randn(2, 4, dtype=torch.float64)
    exact = LinearPath.fit(batch)
    truth = integrate(ControlTerm(field, exact), z0, exact.start, exact.end, **TIGHT).state
    errors = []
    for depth in (1, 2):
        path = LogSignaturePath.fit(batch, depth=depth, step=3.0)
        errors.append((integrate(LogODETerm(field, path), z0, path.start, path.end, **TIGHT).state - truth).norm())
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("name", ["log-ncde", "neural-rde"])
def test_depth_one_of_either_form_is_the_linear_path_over_windows(series, name):
    batch = series.batch(dtype=torch.float64)
    settings = {"channels": 3, "outputs": 2, "time_scale": 9.0, "hidden": 4, "width": 6, **TIGHT}
    torch.manual_seed(0)
    model = build_model(name, depth=1, step=2.5 / 9.0, **settings).double()
    grid = LogSignaturePath.fit(batch, 1, 2.5).grid
    corners = [LinearPath.fit(batch).evaluate(grid)[row].T.numpy() for row in range(2)]
    counts = [int((grid[row].diff() > 0).sum()) + 1 for row in range(2)]
    windows = SeriesSet.from_arrays(
        [c[:, :n] for c, n in zip(corners, counts, strict=True)], [grid[r, :n].numpy() for r, n in enumerate(counts)]
    )
    linear = build_model("linear", **settings).double()
    linear.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(batch), linear(windows.batch(dtype=torch.float64)), rtol=0, atol=1e-7)


def small_log_ncde(**settings):
    torch.manual_seed(0)
    sizes = {"channels": 3, "outputs": 2, "time_scale": 9.0, "hidden": 4, "width": 6, "step": 0.5}
    return build_model("log-ncde", rtol=1e-7, atol=1e-7, **sizes, **settings).double()


def test_gradients_through_brackets_are_those_of_small_differences(series):
    batch, model = series.batch(dtype=torch.float64), small_log_ncde()
    parameters = list(model.parameters())
    directions = [torch.randn_like(p) for p in parameters]
    gradients = torch.autograd.grad(model(batch).sum(), parameters)
    sides = []
    with torch.no_grad():
        for side in (1e-4, -2e-4):  # forward, then as far back
            for p, direction in zip(parameters, directions, strict=True):
                p.add_(direction, alpha=side)
            sides.append(model(batch).sum())
    slope = (sides[0] - sides[1]) / 2e-4
    along = sum((g * d).sum() for g, d in zip(gradients, directions, strict=True))
    torch.testing.assert_close(along, slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("gradient", ["checkpoint", "adjoint"])
def test_any_gradient_reaches_everything_through_brackets(series, gradient):
    batch, model, reference = series.batch(dtype=torch.float64), small_log_ncde(gradient=gradient), small_log_ncde()
    found = torch.autograd.grad(model(batch).sum(), list(model.parameters()))
    expected = torch.autograd.grad(reference(batch).sum(), list(reference.parameters()))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_form_of_the_paper_is_a_wider_field_along_the_path(series):
    batch = series.batch(dtype=torch.float64)
    torch.manual_seed(0)
    model = build_model("neural-rde", channels=3, outputs=2, time_scale=9.0, hidden=4, width=6, step=0.3, **TIGHT)
    model = model.double()
    path = LogSignaturePath.fit(batch, depth=2, step=2.7)
    z = model.initial(path.evaluate(path.start)).detach().numpy()
    assert model.field.channels == 6

    def slope(t, z, row):
        f = model.field.matrix(torch.as_tensor(z)[None], Rows.all(1))[0].detach()
        return (f @ path.select([row]).derivative(float(t))[0]).numpy()

    for row in range(2):
        state, grid = z[row], path.grid[row].unique().numpy()
        for begin, end in itertools.pairwise(grid):
            inside = (begin + 1e-9, end - 1e-9)  # the slope jumps at the windows' ends
            state = solve_ivp(slope, inside, state, args=(row,), rtol=1e-8, atol=1e-9).y[:, -1]
        expected = model.readout(torch.as_tensor(state))
        torch.testing.assert_close(model(batch)[row], expected, rtol=0, atol=1e-6)


def test_wrong_settings_are_told_in_words(series):
    with pytest.raises(ValueError, match="depth is 3; use any of: 1, 2"):
        LogSignaturePath.fit(series.batch(), depth=3, step=1.0)
    with pytest.raises(ValueError, match=r"step is 0\.0; a window's length must be positive"):
        LogSignaturePath.fit(series.batch(), depth=1, step=0.0)
    with pytest.raises(ValueError, match="depth is 3; use any of: 1, 2"):
        LogNCDE(channels=2, outputs=1, depth=3)
    with pytest.raises(ValueError, match=r"form is 'x'; use any of: 'log-ode', 'path'"):
        LogNCDE(channels=2, outputs=1, form="x")
