"""A solve in one call of compiled code is the march of `solve/march.py`: steps, counts, ends, gradients."""

import gc
from dataclasses import replace

import numpy as np
import pytest
import torch

import smoothcde.solve.march as loop
from smoothcde import native
from smoothcde.models.fields import TanhField
from smoothcde.native import memory
from smoothcde.paths import GPPath, IntegralPath, JoinedPath, TimePath
from smoothcde.series import SeriesSet
from smoothcde.solve import ControlTerm, SolveError, Status, integrate
from smoothcde.solve.tableaus import TABLEAUS

HIDDEN, VIEWS = 20, 2
SHAPES = {"few": 3, "blocks": 130}


@pytest.fixture(autouse=True)
def _compiled():
    reason = native.why_not(native.march.SOURCE)
    if reason is not None:
        pytest.skip(f"no compiled code: {reason}")


def series(n: int, seed: int = 0) -> SeriesSet:
    """Of unequal lengths, rougher and smoother ones."""
    rng = np.random.default_rng(seed)
    times = [np.sort(rng.uniform(0, rng.uniform(2, 12), int(rng.integers(5, 40)))) for _ in range(n)]
    values = [np.cumsum(rng.standard_normal((2, len(t))), axis=1) * rng.uniform(0.2, 1.5) for t in times]
    return SeriesSet.from_arrays(values, times)


class Case:
    """Everything a solution depends on, each with a gradient."""

    def __init__(self, kind: str = "gp", n: int = 5, activation="tanh"):
        torch.manual_seed(n)
        self.kind, self.batch = kind, series(n).batch(dtype=torch.float32)
        channels = {"gp": 2, "with time": 3, "with integral": 6}[kind]
        self.field = TanhField(VIEWS, HIDDEN, channels, width=24, activation=activation)
        self.z0 = torch.randn(VIEWS * n, HIDDEN, requires_grad=True)
        self.weights = torch.rand(n, VIEWS, self.batch.times.shape[1], requires_grad=True)

    def path(self):
        path = GPPath.fit(self.batch, [1.0, 3.0], 0.1, self.weights)
        if self.kind == "gp":
            return path
        path = JoinedPath.of(path, TimePath.beside(path, 5.0))
        return path if self.kind == "with time" else IntegralPath.of(path, 4.0)

    def inputs(self):
        return [self.z0, self.weights, *self.field.parameters()]

    def solve(self, **options):
        path = self.path()
        options = {"rtol": 1e-4, "atol": 1e-4, "views": VIEWS} | options
        return integrate(ControlTerm(self.field, path), self.z0, path.start, path.end, **options)


def by_loop(monkeypatch):
    monkeypatch.setattr(loop, "compiled_march", lambda problem: None)


def in_one_call(solution) -> bool:
    return type(solution.state.grad_fn).__name__ == "_MarchBackward"


def assert_same(found, expected):
    torch.testing.assert_close(found.state, expected.state, rtol=1e-5, atol=1e-6)
    for name in ("nfe", "accepted", "rejected", "backward_nfe"):
        np.testing.assert_array_equal(getattr(found.stats, name), getattr(expected.stats, name))
    np.testing.assert_array_equal(found.codes, expected.codes)
    for one, other in zip(found.steps, expected.steps, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_weights_in_panels_of_another_size_are_left_to_the_loop(monkeypatch):
    case = Case()
    expected = case.solve()
    assert in_one_call(expected)
    monkeypatch.setattr(native.march, "panel_columns", lambda source: 0)
    found = case.solve()
    assert not in_one_call(found)
    assert_same(found, expected)


def test_it_does_not_matter_how_numbers_lie_in_memory():
    case, path = Case(), Case().path()
    along = torch.randn(len(case.z0), HIDDEN)
    found = []
    for turned in (False, True):
        slopes = path.slopes.detach().clone()
        slopes = (slopes.mT.contiguous().mT if turned else slopes).requires_grad_()
        term = ControlTerm(case.field, replace(path, slopes=slopes))
        solution = integrate(term, case.z0, path.start, path.end, rtol=1e-4, atol=1e-4, views=VIEWS)
        assert in_one_call(solution)
        found.append(
            torch.autograd.grad(solution.state, (slopes, case.z0), along.mT.contiguous().mT if turned else along)
        )
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("solver", TABLEAUS)
@pytest.mark.parametrize("n", SHAPES.values(), ids=SHAPES)
def test_steps_states_and_gradients_are_those_of_the_loop(monkeypatch, n, solver):
    case = Case(n=n)
    found = case.solve(solver=solver)
    assert in_one_call(found)
    with torch.no_grad():
        unwatched = case.solve(solver=solver)
    by_loop(monkeypatch)
    expected = case.solve(solver=solver)
    assert not in_one_call(expected)
    assert found.stats.rejected.any() or n < 100 or solver == "dopri8"
    assert_same(found, expected)
    assert_same(unwatched, expected)
    g = torch.randn(found.state.shape)
    for one, other in zip(*(torch.autograd.grad(s.state, case.inputs(), g) for s in (found, expected)), strict=True):
        assert float((one - other).norm()) < 1e-4 * float(other.norm())


@pytest.mark.parametrize("kind", ["with time", "with integral"])
@pytest.mark.parametrize("n", SHAPES.values(), ids=SHAPES)
def test_paths_of_several_parts_are_solved_alike(monkeypatch, n, kind):
    """Plain operations round their slopes otherwise, and steps follow."""
    case = Case(kind, n)
    found = case.solve()
    assert in_one_call(found)
    by_loop(monkeypatch)
    expected = case.solve()
    apart = (found.state - expected.state).detach().abs() / expected.state.detach().abs().clamp(min=1.0)
    assert float(apart.max()) < 3e-4
    assert float(apart.quantile(0.99)) < 1e-5
    np.testing.assert_allclose(found.stats.nfe, expected.stats.nfe, atol=12)
    assert found.stats.nfe.mean() == pytest.approx(expected.stats.nfe.mean(), rel=0.01)
    g = torch.randn(found.state.shape)
    for one, other in zip(*(torch.autograd.grad(s.state, case.inputs(), g) for s in (found, expected)), strict=True):
        assert float((one - other).norm()) < 1e-3 * float(other.norm())


def test_relu_fields_are_solved_alike(monkeypatch):
    case = Case(n=30, activation="relu")
    found = case.solve()
    assert in_one_call(found)
    by_loop(monkeypatch)
    assert_same(found, case.solve())


@pytest.mark.parametrize("n", [3, 60])
def test_many_short_calls_are_one_long_one(monkeypatch, n):
    """Where the room for steps or for their ends is too small."""
    case = Case(n=n)
    expected = case.solve(rtol=1e-6, atol=1e-6)
    wanted = torch.autograd.grad(expected.state.square().sum(), case.inputs())
    calls = []
    monkeypatch.setattr(native.march, "LOGGED", 3)
    monkeypatch.setattr(native.march, "_MARGIN", 0.0)
    monkeypatch.setattr(native.march, "call", lambda *a: (calls.append(a[1]), native.library.call(*a))[1])
    found = case.solve(rtol=1e-6, atol=1e-6)
    assert_same(found, expected)
    for one, other in zip(torch.autograd.grad(found.state.square().sum(), case.inputs()), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * float(other.abs().max()))
    assert calls.count("march_forward") == calls.count("march_backward") > 3


def test_states_do_not_hang_on_neighbours_or_threads():
    case = Case(n=70)
    whole = case.solve().state.detach()
    few = [3, 50]
    rows = torch.tensor([*few, *(70 + f for f in few)])
    threads = torch.get_num_threads()
    with torch.no_grad():
        path = case.path().select(rows)
        try:
            for count in (1, 3):
                torch.set_num_threads(count)
                options = {"rtol": 1e-4, "atol": 1e-4, "views": VIEWS}
                alone = integrate(ControlTerm(case.field, path), case.z0[rows], path.start, path.end, **options)
                assert torch.equal(alone.state, whole[rows])
        finally:
            torch.set_num_threads(threads)


def test_second_derivatives_are_those_of_the_loop(monkeypatch):
    case = Case(n=2)
    case.field.requires_grad_(False)
    found = []
    for compiled in (True, False):
        if not compiled:
            by_loop(monkeypatch)
        solution = case.solve(rtol=1e-3, atol=1e-3)
        assert in_one_call(solution) == compiled
        first = torch.autograd.grad(solution.state.square().sum(), [case.z0, case.weights], create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), [case.z0, case.weights]))
    for one, other in zip(*found, strict=True):
        assert float((one - other).norm()) < 1e-3 * float(other.norm())


def test_what_ends_at_once_passes_its_gradient_on():
    case = Case(n=3)
    batch = case.batch
    case.batch = replace(batch, end=torch.where(torch.tensor([False, True, False]), batch.start, batch.end))
    solution = case.solve()
    assert in_one_call(solution)
    still = [1, 4]
    assert torch.equal(solution.state[still], case.z0[still])
    assert not solution.stats.nfe[still].any()
    (g,) = torch.autograd.grad(solution.state.sum(), case.z0)
    assert (g[still] == 1.0).all()


@pytest.mark.parametrize("limit", [1, 4])
def test_rows_that_are_given_up_say_so(monkeypatch, limit):
    case = Case(n=6)
    found = case.solve(rtol=1e-6, atol=1e-6, max_steps=limit, throw=False)
    assert in_one_call(found)
    assert Status.STEP_LIMIT in found.status
    with pytest.raises(SolveError, match="step limit"):
        case.solve(rtol=1e-6, atol=1e-6, max_steps=limit)
    by_loop(monkeypatch)
    assert_same(found, case.solve(rtol=1e-6, atol=1e-6, max_steps=limit, throw=False))


def test_a_row_that_breaks_down_spoils_no_gradient(monkeypatch):
    """Its path is fine at first and beyond all numbers later."""
    case = Case(n=4)

    path = case.path()
    slopes = path.slopes.clone()
    slopes[2] = slopes[2] * 1e36
    slopes[2, 0, 0] = slopes[2, 0, 1]  # so that it is small where T_0 and T_1 cancel, at the start
    broken = replace(path, slopes=slopes)
    options = {"rtol": 1e-4, "atol": 1e-4, "views": VIEWS, "throw": False, "max_steps": 60}
    outcomes = []
    for compiled in (True, False):
        if not compiled:
            by_loop(monkeypatch)
        solution = integrate(ControlTerm(case.field, broken), case.z0, path.start, path.end, **options)
        others = [row for row in range(8) if row != 2]
        assert Status.FINISHED not in [solution.status[2]]
        gradients = torch.autograd.grad(solution.state[others].sum(), [case.z0, *case.field.parameters()])
        assert all(torch.isfinite(g).all() for g in gradients)
        outcomes.append((solution.state[others].detach(), gradients))
    torch.testing.assert_close(outcomes[0][0], outcomes[1][0], rtol=1e-5, atol=1e-6)
    for one, other in zip(outcomes[0][1], outcomes[1][1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


def test_a_graph_can_be_walked_twice_and_leaves_nothing_behind():
    case = Case(n=400)
    pool = memory._pool()
    gc.collect()
    before = None if pool is None else pool.free()
    solution = case.solve()
    loss = solution.state.square().sum()
    once = torch.autograd.grad(loss, case.inputs(), retain_graph=True)
    twice = torch.autograd.grad(loss, case.inputs())
    assert all(torch.equal(one, other) for one, other in zip(once, twice, strict=True))
    if pool is not None:
        assert pool.free() == before


@pytest.mark.parametrize(
    "options",
    [{"step_control": "joint"}, {"step_control": "sample"}, {"knots": "step_over"}, {"gradient": "checkpoint"}],
    ids=lambda options: next(iter(options.values())),
)
def test_what_it_does_not_know_is_left_to_the_loop(options):
    assert not in_one_call(Case().solve(**options))
    path = Case().path()
    assert not in_one_call(Case().solve(times=[float(path.start[0])]))
