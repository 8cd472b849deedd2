"""The clock of steps: turns of a path."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from solve_problems import TinyField, double, ragged_series, smooth_series, states

from smoothcde.paths import GPPath, JoinedPath, KernelPath, LinearPath, TimePath
from smoothcde.solve import ControlTerm, SolverOptions, Status, integrate
from smoothcde.solve.pace import CELLS, Steady, Turning, turning, turning_at_hand
from smoothcde.solve.problem import Problem


def clock(rate: np.ndarray, start: float = 5.0, window: float = 20.0) -> Turning:
    begin = np.full(len(rate), start)
    return Turning.of(begin, begin + window, rate)


class TestTurning:
    """Time to turns and back."""

    def test_length_and_size_undo_each_other(self):
        rng = np.random.default_rng(0)
        pace = clock(rng.uniform(0.5, 30, (50, CELLS)))
        begin, size = rng.uniform(5, 20, 50), rng.uniform(0.01, 3, 50)
        np.testing.assert_allclose(pace.size(begin, pace.length(begin, size)), size, rtol=1e-9)

    def test_turns_add_up(self):
        rate = np.random.default_rng(1).uniform(5, 30, (7, CELLS))
        pace = clock(rate)
        begin, middle, end = np.full(7, 5.0), np.linspace(6, 24, 7), np.full(7, 25.0)
        there = pace.size(begin, middle - begin) + pace.size(middle, end - middle)
        np.testing.assert_allclose(there, rate.mean(axis=1), rtol=1e-9)

    def test_a_step_ends_sooner_where_a_bend_lies_ahead(self):
        quiet = np.ones((1, CELLS))
        bend = quiet.copy()
        bend[0, CELLS // 2] = 100.0
        start, size = np.array([5.0]), np.array([0.8])
        assert clock(quiet).length(start, size) == pytest.approx(16.0)
        assert 10 < clock(bend).length(start, size)[0] < 10.5

    def test_a_path_that_stands_still_has_a_clock_too(self):
        pace = clock(np.zeros((1, CELLS)))
        assert np.isfinite(pace.length(np.array([5.0]), np.array([1.0]))).all()


def test_paths_that_have_no_derivatives_at_hand_can_be_asked_all_the_same():
    batch = double(smooth_series())
    path = KernelPath.fit(batch, 2.0)
    assert turning_at_hand(path) is None
    assert turning(path).shape == (3, CELLS)


def test_turns_do_not_depend_on_the_unit_of_time():
    hours = smooth_series()
    seconds = type(hours).from_arrays([hours[i].values.T for i in range(3)], [3600 * hours[i].times for i in range(3)])
    np.testing.assert_allclose(
        turning(GPPath.fit(double(seconds), 7200.0, 0.1)), turning(GPPath.fit(double(hours), 2.0, 0.1)), rtol=1e-6
    )


def pace_of(path, **options):
    z0 = states(path.rows)
    problem = Problem.of(
        ControlTerm(TinyField(), path), z0, path.start, path.end, None, 1, SolverOptions("dopri5", **options)
    )
    units = problem.unit_of_row
    return problem.unit_pace(units, *problem.unit_windows(units))


def test_who_steps_by_turns_and_who_by_time():
    batch = double(ragged_series())
    path = GPPath.fit(batch, 3.0, 0.1)
    assert isinstance(pace_of(path), Turning)
    assert isinstance(pace_of(path, step_control="sample"), Turning)
    assert isinstance(pace_of(JoinedPath.of(path, TimePath.beside(path, 4.0))), Turning)
    # As torchdiffeq does it, and with it the paper.
    assert isinstance(pace_of(path, step_control="joint"), Steady)
    assert isinstance(pace_of(path, knots="step_over"), Steady)
    assert isinstance(pace_of(LinearPath.fit(batch)), Steady)
    assert isinstance(pace_of(KernelPath.fit(batch, 3.0)), Steady)


def test_a_window_that_is_not_the_paths_own_is_stepped_through_by_time():
    path = GPPath.fit(double(smooth_series()), 2.0, 0.1)
    z0 = states(3)
    halves = integrate(ControlTerm(TinyField(), path), z0, 0.0, 5.0, rtol=1e-6, atol=1e-6)
    rest = integrate(ControlTerm(TinyField(), path), halves.state, 5.0, 10.0, rtol=1e-6, atol=1e-6)
    whole = integrate(ControlTerm(TinyField(), path), z0, 0.0, 10.0, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(rest.state, whole.state, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_fields_of_any_size_are_served(size):
    """The first step is the usual one of models; a steeper field is found out by its first slope."""

    class Scaled(TinyField):
        def product(self, z, dx, rows):
            return size * super().product(z, dx, rows)

    path = GPPath.fit(double(smooth_series()), (2.0, 5.0), 0.1)
    with torch.no_grad():
        solution = integrate(ControlTerm(Scaled(), path), states(6), path.start, path.end)
    assert (solution.stats.rejected <= 1 + 0.5 * solution.stats.accepted).all()


def test_a_path_that_is_no_number_changes_nothing_for_the_others():
    path = GPPath.fit(double(smooth_series()), 2.0, 0.1)
    broken = replace(path, slopes=path.slopes.index_fill(0, torch.tensor([1]), torch.nan))
    options = {"rtol": 1e-4, "atol": 1e-4, "throw": False}
    with torch.no_grad():
        alone, beside = (
            integrate(ControlTerm(TinyField(), p), states(3), p.start, p.end, **options) for p in (path, broken)
        )
    assert beside.status[1] is Status.NON_FINITE
    assert alone.stats.nfe[[0, 2]].tolist() == beside.stats.nfe[[0, 2]].tolist()


@pytest.mark.parametrize("far", [4_000.0, 20_000.0], ids=["its square is infinite", "infinite"])
def test_a_first_slope_that_cannot_be_measured_ends_its_row_and_spoils_no_gradients(far):
    class Explosive(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rate = torch.nn.Parameter(0.1 * torch.eye(4, dtype=torch.float64))

        def product(self, z, dx, rows):
            return torch.exp(z @ self.rate) * dx.sum(dim=1, keepdim=True)

    path, field = GPPath.fit(double(smooth_series()), 2.0, 0.1), Explosive()
    z0 = torch.zeros(3, 4, dtype=torch.float64)
    z0[1] = far
    solution = integrate(ControlTerm(field, path), z0, path.start, path.end, throw=False)
    assert solution.status == [Status.FINISHED, Status.NON_FINITE, Status.FINISHED]
    assert solution.stats.nfe[1] == 1
    solution.state[[0, 2]].sum().backward()
    assert field.rate.grad.isfinite().all()


def test_windows_that_ask_for_gradients_are_windows_all_the_same():
    path = GPPath.fit(double(smooth_series()), 2.0, 0.1)
    asking = replace(path, start=path.start.clone().requires_grad_(), end=path.end.clone().requires_grad_())
    found, expected = (
        integrate(ControlTerm(TinyField(), p), states(3), p.start, p.end).state.detach() for p in (asking, path)
    )
    torch.testing.assert_close(found, expected)
