"""States at requested moments: where the solution is on its way, at no further evaluation."""

import pytest
import torch
from solve_problems import TinyField, double, error_in_tolerances, ragged_series, smooth_series, states

from smoothcde.paths import GPPath, LinearPath
from smoothcde.solve import ControlTerm, ODETerm, integrate
from smoothcde.solve.tableaus import TABLEAUS

TOLERANCE = 1e-7


def solve(path, z0, end=None, **options):
    options = {"rtol": TOLERANCE, "atol": TOLERANCE} | options
    return integrate(ControlTerm(TinyField(), path), z0, path.start, path.end if end is None else end, **options)


@pytest.mark.parametrize("step_control", ["row", "joint"])
@pytest.mark.parametrize("solver", TABLEAUS)
def test_a_requested_state_is_where_a_solve_to_that_moment_ends(solver, step_control):
    path, z0 = GPPath.fit(double(smooth_series()), 2.0, 0.1), states(3)
    times = torch.tensor([0.7, 3.1, 6.0, 9.2], dtype=torch.float64)
    tolerance = 1e-5 if solver == "bosh3" else TOLERANCE
    options = {"solver": solver, "step_control": step_control, "rtol": tolerance, "atol": tolerance}
    with torch.no_grad():
        found = solve(path, z0, times=times, **options).states
        for column, moment in enumerate(times):
            expected = solve(path, z0, end=moment).state
            assert error_in_tolerances(found[:, column], expected, tolerance) < 50


@pytest.mark.parametrize("fit", [lambda b: GPPath.fit(b, 2.0, 0.1), LinearPath.fit], ids=["gp", "linear"])
def test_rows_may_ask_for_moments_of_their_own_in_any_order(fit):
    path, z0 = fit(double(ragged_series())), states(4)
    shares = torch.tensor([[0.9, 0.1, 0.5], [0.2, 0.8, 0.8], [1.0, 0.6, 0.3], [0.0, 0.5, 0.25]], dtype=torch.float64)
    times = path.end[:, None] * shares
    with torch.no_grad():
        found = solve(path, z0, times=times).states
        for column in range(3):
            expected = solve(path, z0, end=times[:, column]).state
            assert error_in_tolerances(found[:, column], expected, TOLERANCE) < 50


def test_asking_costs_nothing():
    path, z0 = GPPath.fit(double(ragged_series()), 2.0, 0.1), states(4)
    plain, asked = solve(path, z0), solve(path, z0, times=torch.linspace(0, 12, 50))
    assert (plain.stats.nfe == asked.stats.nfe).all()
    assert torch.equal(plain.state, asked.state)
    assert plain.states is None


@pytest.mark.parametrize("gradient", ["backprop", "checkpoint", "adjoint"])
@pytest.mark.parametrize("step_control", ["row", "joint"])
def test_before_its_window_a_row_is_at_its_initial_state_and_after_it_at_its_final(gradient, step_control):
    path, z0 = GPPath.fit(double(smooth_series()), 2.0, 0.1), states(3).requires_grad_()
    start, end = torch.tensor([0.0, 1.0, 2.5]), torch.tensor([4.0, 9.0, 6.0])
    solution = integrate(
        ControlTerm(TinyField(), path),
        z0,
        start,
        end,
        times=[100.0, -5.0, 0.0],
        rtol=TOLERANCE,
        atol=TOLERANCE,
        gradient=gradient,
        step_control=step_control,
    )
    torch.testing.assert_close(solution.states[:, 0], solution.state, rtol=1e-6, atol=1e-6)
    assert torch.equal(solution.states[:, 1], z0)
    assert torch.equal(solution.states[:, 2], z0)
    (pulled,) = torch.autograd.grad(solution.states[:, 1:].sum(), z0)
    torch.testing.assert_close(pulled, torch.full_like(z0, 2.0))


def test_moments_that_a_failed_row_never_reached_are_nan():
    z0 = torch.tensor([[0.5], [4.0]], dtype=torch.float64)  # z' = z^2 leaves for infinity at t = 1/z0
    solution = integrate(ODETerm(lambda t, z: z**2), z0, 0.0, 1.0, times=[0.1, 0.9], rtol=1e-6, atol=1e-6, throw=False)
    expected = 1 / (1 / z0 - torch.tensor([[0.1, 0.9]]))
    torch.testing.assert_close(solution.states[0, :, 0], expected[0], rtol=1e-4, atol=0)
    torch.testing.assert_close(solution.states[1, 0, 0], expected[1, 0], rtol=1e-4, atol=0)
    assert solution.states[1, 1].isnan().all()


def test_no_moments_give_no_states():
    path = GPPath.fit(double(smooth_series()), 2.0, 0.1)
    assert solve(path, states(3), times=[]).states.shape == (3, 0, 4)


@pytest.mark.parametrize("solver", TABLEAUS)
def test_requested_states_are_differentiable(solver):
    path = GPPath.fit(double(smooth_series(n=2, stamps=10)), 4.0, 0.1)

    def at_moments(z0):
        tolerance = 1e-7 if solver == "bosh3" else 1e-9
        return solve(path, z0, times=[2.3, 7.1], solver=solver, rtol=tolerance, atol=tolerance).states

    assert torch.autograd.gradcheck(at_moments, states(2, hidden=4).requires_grad_(), atol=1e-4, fast_mode=True)
