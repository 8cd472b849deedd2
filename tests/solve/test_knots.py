"""Kinks of a path: ending steps on them keeps a method's order, stepping over them does not."""

import numpy as np
import pytest
import torch
from solve_problems import TinyField, double, error_in_tolerances, ragged_series, scipy_state, states

from smoothcde.paths import ExactGPPath, GPPath, JoinedPath, KernelPath, LinearPath, NaturalCubicPath, TimePath
from smoothcde.series import SeriesSet
from smoothcde.solve import ControlTerm, integrate
from smoothcde.solve.tableaus import TABLEAUS

BLIND = ("bs5", "joint")


def solve(path, z0, **options):
    with torch.no_grad():
        return integrate(ControlTerm(TinyField(), path), z0, path.start, path.end, **options)


def piece_by_piece(path, z0):
    """SciPy from kink to kink, row by row."""
    solved = []
    for row in range(path.rows):
        single = path.select([row])
        inner = [knot for knot in single.knots[0].tolist() if np.isfinite(knot)]
        pieces = [single.start.item(), *inner, single.end.item()]
        solved.append(scipy_state(TinyField(), single, z0[[row]], pieces=pieces))
    return torch.cat(solved)


@pytest.fixture(scope="module")
def path() -> LinearPath:
    return LinearPath.fit(double(ragged_series()))


@pytest.fixture(scope="module")
def expected(path) -> torch.Tensor:
    return piece_by_piece(path, states(4))


@pytest.mark.parametrize("step_control", ["row", "sample", "joint"])
@pytest.mark.parametrize("solver", TABLEAUS)
def test_landing_keeps_the_accuracy_on_a_linear_path(path, expected, solver, step_control):
    """The tolerance is one per step, so errors at the end are of the size of as many tolerances as there were steps."""
    for tolerance in (1e-3, 1e-4, 1e-6):
        found = solve(path, states(4), solver=solver, rtol=tolerance, atol=tolerance, step_control=step_control)
        assert error_in_tolerances(found.state, expected, tolerance) < 10 + 2 * found.stats.accepted.max()


def test_landing_keeps_the_order_of_the_method(path, expected):
    """With dopri5 the error falls with at least about the fifth power of the evaluations."""
    runs = [solve(path, states(4), rtol=t, atol=t) for t in (1e-4, 1e-6, 1e-8)]
    errors = [(run.state - expected).abs().max().item() for run in runs]
    assert np.polyfit(np.log([run.stats.nfe.mean() for run in runs]), np.log(errors), 1)[0] < -4.5


@pytest.mark.parametrize("step_control", ["row", "joint"])
def test_stepping_over_kinks_loses_accuracy_and_costs_more(path, expected, step_control):
    options = {"rtol": 1e-6, "atol": 1e-6, "step_control": step_control}
    landed = solve(path, states(4), knots="land", **options)
    over = solve(path, states(4), knots="step_over", **options)
    error_landed, error_over = (error_in_tolerances(s.state, expected, 1e-6) for s in (landed, over))
    assert error_over > 10 * error_landed
    assert over.stats.nfe.mean() > 1.5 * landed.stats.nfe.mean()


def test_every_knot_ends_a_step(path):
    solution = solve(path, states(4))
    for row, steps in enumerate(solution.steps):
        knots = path.knots[row][path.knots[row].isfinite()]
        assert np.isin(knots.numpy(), steps).all()


def test_every_piece_costs_a_step_of_its_own(path):
    """Seven evaluations each: the slope jumps at a knot, so the last of a piece is not the first of the next."""
    solution = solve(path, states(4), rtol=1e-1, atol=1e-1)
    pieces = path.knots.isfinite().sum(dim=1).numpy() + 1
    assert (solution.stats.accepted >= pieces).all()
    assert (solution.stats.nfe >= 1 + 7 * pieces).all()


def test_stepping_over_takes_fewer_steps_than_there_are_pieces_where_tolerance_allows():
    """How the paper can have counted 347 evaluations over 118 intervals."""
    rng = np.random.default_rng(0)
    signal = np.sin(np.linspace(0, 6, 119)) + 0.001 * rng.normal(size=(4, 1, 119))
    path = LinearPath.fit(double(SeriesSet.from_arrays(signal)))
    with torch.no_grad():
        field, z0 = TinyField(channels=1), states(4)
        over = integrate(ControlTerm(field, path), z0, path.start, path.end, knots="step_over", step_control="joint")
        landed = integrate(ControlTerm(field, path), z0, path.start, path.end, knots="land", step_control="joint")
    assert over.stats.nfe[0] < 347 < 7 * 118 <= landed.stats.nfe[0]


def test_knots_of_joined_paths_are_all_landed_on():
    batch = double(ragged_series())
    linear = LinearPath.fit(batch)
    path = JoinedPath.of(LinearPath.fit(batch.counts()), KernelPath.fit(batch, 0.7, kernel="laplacian"))
    path = JoinedPath.of(path, TimePath.beside(linear, 10.0))
    field, z0 = TinyField(channels=5), states(4)
    with torch.no_grad():
        solution = integrate(ControlTerm(field, path), z0, path.start, path.end, rtol=1e-6, atol=1e-6)
    for row, steps in enumerate(solution.steps):
        knots = path.knots[row][path.knots[row].isfinite()]
        assert len(knots)
        assert np.isin(knots.numpy(), steps).all()


@pytest.mark.parametrize(("kernel", "bandwidth"), [("laplacian", 0.8), ("epanechnikov", 1.7), ("tricube", 1.7)])
def test_kernels_with_kinks_are_integrated_to_tolerance(kernel, bandwidth):
    path, z0 = KernelPath.fit(double(ragged_series((7, 5))), bandwidth, kernel=kernel), states(2)
    found = solve(path, z0, solver="dopri8", rtol=1e-6, atol=1e-6)
    assert error_in_tolerances(found.state, piece_by_piece(path, z0), 1e-6) < 10


@pytest.mark.parametrize("fit", [LinearPath.fit, NaturalCubicPath.fit], ids=["linear", "natural cubic"])
def test_a_window_wider_than_the_stamps_has_knots_at_the_first_and_last(fit):
    """The path stands still before and after its stamps, so the slope jumps there."""
    series = SeriesSet.from_arrays([[0.0, 1.0, -1.0, 2.0]], [[1.0, 2.0, 3.5, 4.0]])
    wide, tight = double(series.with_window(0.0, 9.0)), double(series)
    field, z0 = TinyField(channels=1), states(1)
    with torch.no_grad():
        found, expected = (
            integrate(ControlTerm(field, path), z0, path.start, path.end, rtol=1e-8, atol=1e-8)
            for path in (fit(wide), fit(tight))
        )
    assert np.isin([1.0, 4.0], found.steps[0]).all()
    torch.testing.assert_close(found.state, expected.state, rtol=1e-5, atol=1e-5)


GAP_STAMPS = np.array([0.0, 1.0, 2.0, 52.0, 53.0, 54.0])


@pytest.fixture(scope="module")
def gap_path() -> KernelPath:
    """A Gaussian kernel path across a gap of fifty bandwidths: a step of width 1/50 in its middle, at 27."""
    signal = np.array([[0.3, -0.5, 0.2, 1.9, 1.4, 1.1], [1.0, 0.6, 0.9, -0.8, -0.2, 0.1]])
    return KernelPath.fit(double(SeriesSet.from_arrays([signal], [GAP_STAMPS])), 1.0)


@pytest.fixture(scope="module")
def crossed(gap_path) -> torch.Tensor:
    """SciPy, in small steps around the middle."""
    z = states(1)
    for begin, end, largest in ((0.0, 26.5, np.inf), (26.5, 27.5, 0.01), (27.5, 54.0, np.inf)):
        z = scipy_state(TinyField(), gap_path, z, pieces=[begin, end], max_step=largest)
    return z


@pytest.mark.parametrize("solver", TABLEAUS)
@pytest.mark.parametrize("step_control", ["row", "joint"])
def test_the_step_in_a_gap_is_crossed_right(gap_path, crossed, solver, step_control):
    for tolerance in (1e-3, 1e-5):
        found = solve(gap_path, states(1), solver=solver, rtol=tolerance, atol=tolerance, step_control=step_control)
        # The estimate of bs5 hardly looks at the end of a step, and one step size for all has no other.
        assert error_in_tolerances(found.state, crossed, tolerance) < (150 if (solver, step_control) == BLIND else 50)


def test_its_foot_middle_and_head_end_steps(gap_path):
    steps = solve(gap_path, states(1)).steps[0]
    assert np.isin(gap_path.knots[0].numpy(), steps).all()
    assert np.isclose(steps, 27.0).any()


def test_stepped_over_it_is_missed_altogether(gap_path, crossed):
    missed = solve(gap_path, states(1), knots="step_over", rtol=1e-6, atol=1e-6)
    assert missed.finished
    assert error_in_tolerances(missed.state, crossed, 1e-6) > 10_000


class Copy:
    """dz = dX."""

    def product(self, z, dx, rows):
        return dx


SMOOTHED = {
    "gaussian": lambda batch, h: KernelPath.fit(batch, h),
    "laplacian": lambda batch, h: KernelPath.fit(batch, h, kernel="laplacian"),
    "gp": lambda batch, h: GPPath.fit(batch, h, 0.1),
    "exact gp": lambda batch, h: ExactGPPath.fit(batch, h, 0.1),
    "gp and time": lambda batch, h: JoinedPath.of(TimePath.beside(path := GPPath.fit(batch, h, 0.1), 1.0), path),
}


class TestSparseObservations:
    """Between observations that are many bandwidths apart a smoothed path is flat; what follows must not be missed."""

    @pytest.mark.parametrize("step_control", ["row", "joint"])
    @pytest.mark.parametrize("name", SMOOTHED)
    def test_a_state_that_copies_its_path_ends_where_the_path_does(self, name, step_control):
        generator = np.random.default_rng(0)
        times = [np.sort(generator.random(count)) for count in generator.integers(2, 8, size=60)]
        values = [generator.normal(size=(1, len(stamps))) for stamps in times]
        batch = SeriesSet.from_arrays(values, times, window=(0.0, 1.0)).batch(dtype=torch.float64)
        path = SMOOTHED[name](batch, 0.05)
        solution = integrate(
            ControlTerm(Copy(), path),
            path.evaluate(path.start),
            0.0,
            1.0,
            rtol=1e-2,
            atol=1e-2,
            step_control=step_control,
        )
        error = (solution.state - path.evaluate(path.end)).abs().amax(dim=1)
        assert error.max() < 0.4
        assert error.median() < 0.05

    def test_gradients_of_all_kinds_keep_to_the_longest_step(self):
        batch = SeriesSet.from_arrays([[[0.0, 0.0, 1.0]]], [[0.0, 0.3, 1.0]]).batch(dtype=torch.float64)
        found = []
        for gradient in ("backprop", "checkpoint", "adjoint"):
            noise = torch.tensor([0.1], dtype=torch.float64, requires_grad=True)
            path = GPPath.fit(batch, 0.02, noise)
            term = ControlTerm(Copy(), path)
            start = path.evaluate(path.start)
            state = integrate(term, start, 0.0, 1.0, rtol=1e-6, atol=1e-6, gradient=gradient).state
            found.append(float(torch.autograd.grad(state.sum(), noise)[0]))
        assert found[0] == pytest.approx(found[1])
        assert found[0] == pytest.approx(found[2], abs=1e-4)
        assert abs(found[0]) > 0.01

    def test_stepping_over_ignores_it(self):
        batch = SeriesSet.from_arrays([[[0.0, 1.0]]], [[0.3, 0.6]], window=(0.0, 1.0)).batch(dtype=torch.float64)
        path = GPPath.fit(batch, 0.01, 0.1)
        free, kept = (
            integrate(ControlTerm(Copy(), path), path.evaluate(path.start), 0.0, 1.0, rtol=1e-2, knots=knots)
            for knots in ("step_over", "land")
        )
        assert kept.stats.nfe[0] > 4 * free.stats.nfe[0]
