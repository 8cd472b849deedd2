"""Who shares a step size, and who pays for whom."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from scipy.integrate import solve_ivp
from solve_problems import TinyField, double, ragged_series, smooth_series, states
from torch import Tensor

from smoothcde.paths import GPPath, KernelPath, LinearPath, Path
from smoothcde.solve import ControlTerm, ODETerm, Rows, Solution, integrate
from smoothcde.solve.tableaus import TABLEAUS

TOLERANCE = 1e-4


def solve(path: Path, z0: Tensor, *, field: TinyField | None = None, **options) -> Solution:
    options = {"rtol": TOLERANCE, "atol": TOLERANCE} | options
    with torch.no_grad():
        return integrate(ControlTerm(field or TinyField(), path), z0, path.start, path.end, **options)


def assert_same_rows(found: Solution, expected: Solution, rows) -> None:
    """The rows of one solve cost and end as the given rows of another."""
    assert_array_equal(found.stats.nfe, expected.stats.nfe[rows])
    assert_array_equal(found.stats.accepted, expected.stats.accepted[rows])
    assert_array_equal(found.stats.rejected, expected.stats.rejected[rows])
    torch.testing.assert_close(found.state, expected.state[rows], rtol=1e-10, atol=1e-10)


@pytest.fixture(params=["gp", "kernel", "linear"])
def path(request) -> Path:
    """Two views (linear: one) of series with unequal windows."""
    batch = double(ragged_series())
    fit = {
        "gp": lambda: GPPath.fit(batch, (1.0, 4.0), 0.1),
        "kernel": lambda: KernelPath.fit(batch, (1.0, 4.0)),
        "linear": lambda: LinearPath.fit(batch),
    }
    return fit[request.param]()


class TestRow:
    """Each row steps as it needs: nothing about it depends on who else is in the batch."""

    def test_a_row_alone_is_the_row_in_its_batch(self, path):
        z0 = states(path.rows)
        together = solve(path, z0)
        for row in range(path.rows):
            assert_same_rows(solve(path.select([row]), z0[[row]]), together, [row])

    @pytest.mark.parametrize("order", ["reversed", "every other", "each twice"])
    def test_order_and_company_do_not_matter(self, path, order):
        every = np.arange(path.rows)
        rows = {"reversed": every[::-1].copy(), "every other": every[::2], "each twice": np.repeat(every, 2)}[order]
        z0 = states(path.rows)
        assert_same_rows(solve(path.select(rows), z0[rows]), solve(path, z0), rows)

    @pytest.mark.parametrize("fit", [lambda b: KernelPath.fit(b, 1.5), LinearPath.fit], ids=["kernel", "linear"])
    def test_padding_does_not_matter(self, fit):
        series, z0 = ragged_series(), states(4)
        together = solve(fit(double(series)), z0)
        for row in range(4):
            assert_same_rows(solve(fit(double(series[row])), z0[[row]]), together, [row])

    def test_a_row_that_needs_tiny_steps_costs_the_others_nothing(self):
        """The paper's theorem 3 is about joint steps; here the stiffest row pays for itself alone."""
        batch, z0 = double(smooth_series()), states(6)
        stiff, gentle = 0.01 * 10.0, 0.3 * 10.0
        mixed = solve(GPPath.fit(batch, (stiff, gentle), 0.1), z0)
        alone = solve(GPPath.fit(batch, gentle, 0.1), z0[3:])
        assert_array_equal(mixed.stats.nfe[3:], alone.stats.nfe)
        assert mixed.stats.nfe[:3].min() > 4 * mixed.stats.nfe[3:].max()

    def test_a_row_of_a_thousandfold_size_costs_the_others_nothing(self):
        series, z0 = smooth_series(), states(3)
        calm = double(series)
        values = calm.values.clone()
        values[0] *= 1000
        wild = type(calm)(values, calm.times, calm.mask, calm.lengths, calm.start, calm.end, calm.origin)
        mixed, alone = solve(KernelPath.fit(wild, 4.0), z0), solve(KernelPath.fit(calm, 4.0), z0)
        assert_array_equal(mixed.stats.nfe[1:], alone.stats.nfe[1:])
        torch.testing.assert_close(mixed.state[1:], alone.state[1:], rtol=1e-10, atol=1e-10)
        assert mixed.stats.nfe[0] > 10 * alone.stats.nfe[0]

    def test_single_precision_is_independent_to_tolerance(self):
        """Products of float32 matrices round by batch size, so step counts may differ; states must not, much."""
        path = GPPath.fit(smooth_series().batch(), (2.0, 4.0), 0.1)
        field, z0 = TinyField(dtype=torch.float32), states(path.rows, dtype=torch.float32)
        together = solve(path, z0, field=field, rtol=1e-3, atol=1e-3)
        for row in range(path.rows):
            alone = solve(path.select([row]), z0[[row]], field=field, rtol=1e-3, atol=1e-3)
            torch.testing.assert_close(alone.state, together.state[[row]], rtol=5e-3, atol=5e-3)


class TestJoint:
    """One step size for all, by the root mean square over the batch."""

    def test_everyone_pays_for_the_stiffest_view(self):
        """The paper's theorem 3: the cost of joint steps is governed by the smallest bandwidth among the views."""
        batch, z0 = double(smooth_series()), states(6)
        stiff, gentle = 0.01 * 10.0, 0.5 * 10.0
        own = solve(GPPath.fit(batch, (stiff, gentle), 0.1), z0)
        joint = solve(GPPath.fit(batch, (stiff, gentle), 0.1), z0, step_control="joint")
        only_stiff = solve(GPPath.fit(batch, stiff, 0.1), z0[:3], step_control="joint")
        only_gentle = solve(GPPath.fit(batch, gentle, 0.1), z0[3:], step_control="joint")
        assert (joint.stats.nfe == joint.stats.nfe[0]).all()
        assert joint.stats.nfe[0] > 0.8 * only_stiff.stats.nfe[0]
        assert joint.stats.nfe[0] > 5 * only_gentle.stats.nfe[0]
        # Though rows by themselves keep to the tolerance one by one, which costs the stiff ones more steps.
        assert joint.stats.nfe.sum() > 1.4 * own.stats.nfe.sum()

    def test_steps_are_the_same_for_all(self, path):
        solution = solve(path, states(path.rows), step_control="joint")
        for steps in solution.steps:
            assert_array_equal(steps, solution.steps[0])

    def test_a_batch_of_copies_costs_what_one_costs(self):
        path = GPPath.fit(double(smooth_series(n=1)), 2.0, 0.1)
        one = solve(path, states(1), step_control="joint")
        many = solve(path.select([0] * 5), states(1).expand(5, -1), step_control="joint")
        assert_same_rows(many, one, [0] * 5)


class TestSample:
    """The views of a series share its steps, and other series do not."""

    @pytest.fixture
    def views(self) -> GPPath:
        return GPPath.fit(double(ragged_series()), (1.0, 3.0, 9.0), 0.1)

    def test_views_of_a_series_take_the_same_steps(self, views):
        solution = solve(views, states(12), views=3, step_control="sample")
        for sample in range(4):
            for view in range(1, 3):
                assert_array_equal(solution.steps[view * 4 + sample], solution.steps[sample])
        assert len({len(steps) for steps in solution.steps[:4]}) > 1

    def test_a_series_with_its_views_does_not_depend_on_others(self, views):
        z0 = states(12)
        together = solve(views, z0, views=3, step_control="sample")
        for sample in range(4):
            rows = [sample, 4 + sample, 8 + sample]
            alone = solve(views.select(rows), z0[rows], views=3, step_control="sample")
            assert_same_rows(alone, together, rows)

    def test_with_one_view_it_is_row_control(self, path):
        z0 = states(path.rows)
        assert_same_rows(solve(path, z0, step_control="sample"), solve(path, z0), np.arange(path.rows))


def test_fields_are_told_which_rows_of_which_view_are_present():
    seen = []

    class Curious(TinyField):
        def product(self, z, dx, rows: Rows):
            seen.append((len(z), rows.index.copy(), rows.sizes))
            return super().product(z, dx, rows)

    path = GPPath.fit(double(ragged_series()), (1.0, 4.0), 0.1)
    solve(path, states(8), field=Curious(), views=2)
    assert seen[0][2] == (4, 4)
    for count, index, sizes in seen:
        assert count == len(index) == sum(sizes)
        assert sizes == ((index < 4).sum(), (index >= 4).sum())
        assert (np.diff(index) > 0).all()
    assert len(seen[-1][1]) < 8


class TestFirstStep:
    """An equation that nothing drives is told by its start."""

    @staticmethod
    def pendulum(t: Tensor, z: Tensor) -> Tensor:
        return torch.stack([z[:, 1], -torch.sin(z[:, 0])], dim=1)

    @pytest.mark.parametrize("solver", TABLEAUS)
    @pytest.mark.parametrize("window", [0.01, 0.1, 0.3, 1.0, 3.0])
    def test_it_is_bold_only_where_it_may_be(self, window, solver):
        z0 = 2 * states(20, hidden=2)
        errors = [
            (z - solve_ivp(lambda t, z: [z[1], -np.sin(z[0])], (0, window), start, rtol=1e-11, atol=1e-12).y[:, -1])
            for z, start in zip(self.swing(z0, window, True, solver).state.numpy(), z0.numpy(), strict=True)
        ]
        assert np.abs(errors).max() < 10 * TOLERANCE

    def test_a_short_window_is_one_step(self):
        z0 = states(20, hidden=2)
        assert_array_equal(self.swing(z0, 0.01, autonomous=True).stats.accepted, 1)
        assert (self.swing(z0, 0.01, autonomous=False).stats.accepted > 1).all()

    def swing(self, z0: Tensor, window: float, autonomous: bool, solver: str = "dopri5") -> Solution:
        options = {"rtol": TOLERANCE, "atol": TOLERANCE, "solver": solver}
        return integrate(ODETerm(self.pendulum, autonomous=autonomous), z0, 0.0, window, **options)
