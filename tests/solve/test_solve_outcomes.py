"""How a solve ends: a status per row with the remedy in words, and errors that say what was wrong with a request."""

import pickle

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from solve_problems import TinyField, double, smooth_series, states
from torch import Tensor

from smoothcde.paths import GPPath, KernelPath, LogSignaturePath
from smoothcde.series import SeriesSet
from smoothcde.solve import ControlTerm, LogODETerm, ODETerm, SolveError, SolverOptions, Status, integrate
from smoothcde.solve.problem import Problem

decay = ODETerm(lambda t, z: -z)


def blow_up(t: Tensor, z: Tensor) -> Tensor:
    """z' = z^2 leaves for infinity at t = 1/z0."""
    return z**2


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


class TestStatus:
    def test_rows_that_reach_the_end_are_finished(self):
        solution = integrate(decay, column(1.0, 2.0), 0.0, 1.0)
        assert solution.finished
        assert solution.status == [Status.FINISHED, Status.FINISHED]

    def test_a_row_that_leaves_for_infinity_is_stopped_and_the_others_are_right(self):
        z0 = column(0.5, 4.0, 0.2)
        solution = integrate(ODETerm(blow_up), z0, 0.0, 1.0, rtol=1e-6, atol=1e-6, throw=False)
        assert solution.status[0] == solution.status[2] == Status.FINISHED
        assert solution.status[1] in (Status.STEP_UNDERFLOW, Status.NON_FINITE)
        torch.testing.assert_close(solution.state[[0, 2]], 1 / (1 / z0[[0, 2]] - 1), rtol=1e-5, atol=0)
        assert solution.steps[1][-1] == pytest.approx(0.25, abs=1e-3)

    def test_a_pole_that_no_step_can_cross_is_an_underflow(self):
        pole = ODETerm(lambda t, z: (1 / (t - 0.5).abs())[:, None].expand_as(z))
        solution = integrate(pole, column(1.0), 0.0, 1.0, rtol=1e-9, atol=1e-9, throw=False)
        assert solution.status == [Status.STEP_UNDERFLOW]

    def test_a_slope_that_is_not_a_number_is_told(self):
        undefined = ODETerm(lambda t, z: torch.sqrt(0.5 - t)[:, None].expand_as(z))
        solution = integrate(undefined, column(1.0, 2.0), 0.0, [1.0, 0.4], throw=False)
        assert solution.status == [Status.NON_FINITE, Status.FINISHED]
        assert solution.steps[0][-1] == pytest.approx(0.5)
        assert solution.state.isfinite().all()

    def test_a_row_that_begins_as_nan_ends_at_once(self):
        solution = integrate(decay, column(np.nan, 1.0), 0.0, 1.0, throw=False)
        assert solution.status == [Status.NON_FINITE, Status.FINISHED]
        assert solution.stats.nfe[0] == 2

    def test_a_row_that_uses_up_its_steps_is_told_where(self):
        fast = ODETerm(lambda t, z: torch.cos(60 * t)[:, None] * z)
        solution = integrate(fast, column(1.0, 1.0), 0.0, [1.0, 0.01], max_steps=8, throw=False)
        assert solution.status == [Status.STEP_LIMIT, Status.FINISHED]
        assert_array_equal((solution.stats.accepted + solution.stats.rejected)[0], 8)
        assert 0 < solution.steps[0][-1] < 1

    @pytest.mark.parametrize(
        ("status", "remedy"),
        [
            (Status.STEP_LIMIT, "raise `max_steps`"),
            (Status.STEP_LIMIT, "larger bandwidth"),
            (Status.STEP_UNDERFLOW, "Loosen `rtol` and `atol`"),
            (Status.STEP_UNDERFLOW, 'knots="land"'),
            (Status.NON_FINITE, "extreme values"),
        ],
    )
    def test_a_status_is_a_sentence_with_the_remedy(self, status, remedy):
        assert remedy in status.value
        assert status.value.endswith(".")


class TestError:
    def test_it_names_rows_and_remedies_and_keeps_what_there_is(self):
        with pytest.raises(SolveError, match=r"(?s)2 of 4 rows did not finish.*rows 1, 3: .*bound the field") as caught:
            integrate(ODETerm(blow_up), column(0.5, 4.0, 0.2, 8.0), 0.0, 1.0, rtol=1e-6, atol=1e-6)
        assert caught.value.solution.status[0] == Status.FINISHED

    def test_it_tells_outcomes_apart(self):
        field = ODETerm(lambda t, z: torch.sqrt(0.5 - t)[:, None] * torch.cos(1000 * z))
        with pytest.raises(SolveError) as caught:
            integrate(field, column(1.0, np.nan), 0.0, [0.4, 1.0], max_steps=3, rtol=1e-9, atol=1e-9)
        message = str(caught.value)
        assert f"rows 0: {Status.STEP_LIMIT.value}" in message
        assert f"rows 1: {Status.NON_FINITE.value}" in message

    def test_it_does_not_list_hundreds_of_rows(self):
        with pytest.raises(SolveError, match="rows 0, 1, 2, 3, 4, 5, 6, 7 and 92 more:"):
            integrate(ODETerm(blow_up), torch.full((100, 1), 4.0, dtype=torch.float64), 0.0, 1.0, max_steps=5)


class TestWindowsWithoutExtent:
    @pytest.mark.parametrize("step_control", ["row", "sample", "joint"])
    def test_they_finish_at_once_where_they_began(self, step_control):
        z0 = column(1.0, 2.0)
        solution = integrate(decay, z0, 3.0, 3.0, times=[3.0], step_control=step_control)
        assert solution.finished
        assert torch.equal(solution.state, z0)
        assert torch.equal(solution.states[:, 0], z0)
        assert_array_equal(solution.stats.nfe, [0, 0])
        assert [steps.tolist() for steps in solution.steps] == [[3.0], [3.0]]

    def test_they_do_not_hold_up_the_others(self):
        solution = integrate(decay, column(1.0, 1.0, 1.0), 0.0, [0.0, 2.0, 0.0], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(solution.state, column(1.0, np.exp(-2.0), 1.0), rtol=1e-5, atol=0)
        assert_array_equal(solution.stats.nfe[[0, 2]], 0)

    def test_a_series_of_one_stamp_is_one(self):
        path = KernelPath.fit(double(SeriesSet.from_arrays([[[1.0], [2.0]]])), 2.0)
        solution = integrate(ControlTerm(TinyField(), path), states(1), path.start, path.end)
        assert torch.equal(solution.state, states(1))


class TestRequests:
    @pytest.mark.parametrize("name", ["rtol", "atol"])
    @pytest.mark.parametrize("value", [0.0, -1e-3, float("nan"), float("inf")])
    def test_tolerances_are_positive_and_finite(self, name, value):
        with pytest.raises(ValueError, match=f"{name} is {value}; a tolerance must be positive and finite"):
            integrate(decay, column(1.0), 0.0, 1.0, **{name: value})

    @pytest.mark.parametrize(
        ("name", "choices"),
        [
            ("solver", "'bosh3', 'bs5', 'dopri5', 'tsit5', 'dopri8'"),
            ("step_control", "'row', 'sample', 'joint'"),
            ("knots", "'land', 'step_over'"),
            ("gradient", "'backprop', 'checkpoint', 'adjoint'"),
        ],
    )
    def test_unknown_choices_are_answered_with_the_known(self, name, choices):
        options = SolverOptions()
        object.__setattr__(options, name, "euler")  # past the run-time type checks that tests switch on
        with pytest.raises(ValueError, match=f"{name} is 'euler'; use any of: {choices}"):
            options.__post_init__()

    def test_at_least_one_step_is_allowed(self):
        with pytest.raises(ValueError, match="max_steps is 0; give a whole number of at least 1"):
            integrate(decay, column(1.0), 0.0, 1.0, max_steps=0)

    def test_a_tolerance_finer_than_the_precision_is_refused(self):
        with pytest.raises(ValueError, match=r"rtol is 1e-09, finer than torch.float32 resolves .*; use float64"):
            integrate(decay, torch.ones(1, 1), 0.0, 1.0, rtol=1e-9)

    def test_a_window_ends_after_its_start(self):
        with pytest.raises(ValueError, match="row 1 ends at 1, before its start 2"):
            integrate(decay, column(1.0, 1.0), [0.0, 2.0], 1.0)

    @pytest.mark.parametrize("bound", ["start", "end"])
    def test_windows_are_finite_and_one_per_row(self, bound):
        window = {"start": 0.0, "end": 1.0}
        with pytest.raises(ValueError, match=f"{bound} has NaN or infinite entries; windows must be finite"):
            integrate(decay, column(1.0), **window | {bound: float("nan")})
        with pytest.raises(ValueError, match=rf"{bound} has shape \(3,\); give one number, or one per row \(2\)"):
            integrate(decay, column(1.0, 1.0), **window | {bound: [0.5, 0.5, 0.5]})

    def test_requested_moments_are_numbers_in_one_of_two_shapes(self):
        with pytest.raises(ValueError, match="times hold NaN; give every requested moment a number"):
            integrate(decay, column(1.0), 0.0, 1.0, times=[0.5, float("nan")])
        with pytest.raises(ValueError, match=r"times have shape \(3, 2\); give \[moments\] .* or \[rows, moments\]"):
            integrate(decay, column(1.0, 1.0), 0.0, 1.0, times=np.zeros((3, 2)))

    @pytest.mark.parametrize("views", [2, 0, -1])
    def test_rows_are_views_times_series(self, views):
        with pytest.raises(ValueError, match=f"3 rows cannot be {views} views of equally many series"):
            integrate(decay, column(1.0, 1.0, 1.0), 0.0, 1.0, views=views)

    def test_states_have_two_dimensions(self):
        with pytest.raises(ValueError, match=r"z0 has shape \(3,\); expected \[rows, hidden\]"):
            Problem.of(decay, torch.ones(3), 0.0, 1.0, None, 1, SolverOptions())

    def test_as_many_states_as_paths(self):
        path = GPPath.fit(double(smooth_series()), 2.0, 0.1)
        with pytest.raises(ValueError, match="z0 has 5 rows and the path 3; give one state per row of the path"):
            integrate(ControlTerm(TinyField(), path), states(5), 0.0, 1.0)
        windows = LogSignaturePath.fit(double(smooth_series()), depth=2, step=2.0)
        with pytest.raises(ValueError, match="z0 has 5 rows and the path 3; give one state per row of the path"):
            integrate(LogODETerm(TinyField(), windows), states(5), 0.0, 1.0)

    def test_its_error_goes_from_process_to_process(self):
        with pytest.raises(SolveError) as refused:
            integrate(decay, column(1.0), 0.0, 1.0, max_steps=1, rtol=1e-8, atol=1e-8)
        sent = pickle.loads(pickle.dumps(refused.value))
        assert str(sent) == str(refused.value)
        assert (sent.solution.codes == refused.value.solution.codes).all()


@pytest.mark.parametrize("gradient", ["backprop", "checkpoint", "adjoint"])
@pytest.mark.parametrize("rows", [2, 30])
def test_rows_that_fail_at_their_start_spoil_no_gradients(gradient, rows):
    class Grows(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rate = torch.nn.Parameter(torch.ones((), dtype=torch.float64))

        def forward(self, t: Tensor, z: Tensor) -> Tensor:
            return self.rate * torch.exp(z)

    found = []
    for count in (rows, rows - 1):
        field, z0 = Grows(), torch.full((count, 1), -3.0, dtype=torch.float64)
        if count == rows:
            z0[0] = 2000.0  # exp of it is infinite
        solution = integrate(ODETerm(field), z0, 0.0, 1.0, throw=False, gradient=gradient)
        solution.state[torch.as_tensor(solution.codes == 0)].sum().backward()
        found.append(field.rate.grad)
    assert_array_equal(found[0], found[1])
