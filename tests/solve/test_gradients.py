"""Gradients reach everything a solution depends on, by whichever of the three ways."""

import gc
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from solve_problems import TinyField, double, ragged_series, smooth_series, states
from torch import Tensor

from smoothcde.paths import GPPath, JoinedPath, KernelPath, LinearPath, TimePath
from smoothcde.series import SeriesBatch
from smoothcde.solve import ControlTerm, ODETerm, Solution, integrate

FINE = {"rtol": 1e-9, "atol": 1e-9}


class Problem:
    """Two views of a batch under attention, everything trainable: scores, values, bandwidths, noise, z0, field."""

    def __init__(self, kind: str, batch: SeriesBatch, hidden: int = 3):
        self.kind, self.batch = kind, batch
        n, length = batch.times.shape
        generator = torch.Generator().manual_seed(1)
        self.scores = torch.randn(n, 2, length, generator=generator, dtype=torch.float64, requires_grad=True)
        self.values = batch.values.clone().requires_grad_()
        longest = batch.end.max().item()
        self.bandwidth = torch.tensor([0.3 * longest, 0.6 * longest], dtype=torch.float64, requires_grad=True)
        self.noise = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
        self.field = TinyField(hidden, width=3, channels=2)
        self.z0 = states(2 * n, hidden).requires_grad_()
        self.views = 2
        if kind == "linear":
            self.views, self.z0 = 1, states(n, hidden).requires_grad_()
            self.field = TinyField(hidden, width=3, channels=3)

    def path(self):
        batch = replace(self.batch, values=self.values)
        attention = torch.softmax(self.scores.masked_fill(~batch.observed[:, None], -torch.inf), dim=-1)
        if self.kind == "gp":
            return GPPath.fit(batch, self.bandwidth, self.noise, attention, nodes=16)
        if self.kind == "kernel":
            return KernelPath.fit(batch, self.bandwidth, attention)
        linear = LinearPath.fit(batch)
        return JoinedPath.of(linear, TimePath.beside(linear, 5.0))

    def inputs(self) -> list[Tensor]:
        own = {"gp": [self.scores, self.bandwidth, self.noise], "kernel": [self.scores, self.bandwidth], "linear": []}
        return [self.z0, self.values, *own[self.kind], *self.field.parameters()]

    def solve(self, **options) -> Solution:
        path = self.path()
        options = FINE | {"views": self.views} | options
        return integrate(ControlTerm(self.field, path), self.z0, path.start, path.end, **options)

    def gradients(self, **options) -> list[Tensor]:
        solution = self.solve(**options)
        loss = solution.state.square().sum()
        if solution.states is not None:
            loss = loss + solution.states.sin().sum()
        return list(torch.autograd.grad(loss, self.inputs()))


def relative_difference(found: list[Tensor], expected: list[Tensor]) -> float:
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("kind", ["gp", "kernel"])
def test_gradients_are_those_of_finite_differences(kind):
    """Entry by entry: scores, values, bandwidths, noise, initial states and the field's weights."""
    problem = Problem(kind, double(smooth_series(n=1, stamps=4, span=4.0)), hidden=2)

    def final_state(*_):  # gradcheck nudges the tensors themselves, which are the problem's own
        return problem.solve(solver="dopri8").state

    assert torch.autograd.gradcheck(final_state, problem.inputs(), eps=1e-5, atol=1e-6, rtol=1e-5, nondet_tol=1e-12)


@pytest.mark.parametrize("kind", ["gp", "kernel"])
def test_the_adjoint_is_that_of_finite_differences(kind):
    problem = Problem(kind, double(smooth_series(n=1, stamps=4, span=4.0)), hidden=2)

    def squares(*_):
        return problem.solve(solver="dopri8", gradient="adjoint").state.square().sum()

    # Two solves of their own accuracy lie between the two, hence the wider margin and the single output.
    assert torch.autograd.gradcheck(squares, problem.inputs(), eps=1e-5, atol=1e-5, rtol=1e-4, nondet_tol=1e-12)


CASES = {
    "plain": {},
    "moments for all": {"times": [0.0, 1.3, 4.0, 50.0]},
    "moments of their own": {"times": torch.tensor([[3.0, 1.0], [0.5, 2.5], [3.9, 0.0]])},
    "one step for all": {"step_control": "joint"},
    "one step for all, moments": {"step_control": "joint", "times": [0.0, 1.3, 4.0, 50.0]},
    "one step for the views": {"step_control": "sample", "times": [1.3]},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["gp", "kernel", "linear"])
def test_the_three_ways_agree(kind, case):
    """Checkpoints to the last bit or nearly, the adjoint to tolerance; windows are unequal."""
    options = dict(CASES[case])
    if isinstance(options.get("times"), Tensor) and kind != "linear":
        options["times"] = options["times"].repeat(2, 1)
    problem = Problem(kind, double(ragged_series((5, 3, 4))))
    expected = problem.gradients(**options)
    assert relative_difference(problem.gradients(gradient="checkpoint", **options), expected) < 1e-12
    assert relative_difference(problem.gradients(gradient="adjoint", **options), expected) < 1e-5


@pytest.mark.parametrize("solver", ["bosh3", "bs5", "tsit5", "dopri8"])
def test_the_adjoint_agrees_with_every_method(solver):
    problem = Problem("gp", double(ragged_series((7, 4))))
    tolerance = 1e-7 if solver == "bosh3" else 1e-9
    options = {"solver": solver, "rtol": tolerance, "atol": tolerance, "times": [2.0]}
    expected = problem.gradients(**options)
    assert relative_difference(problem.gradients(gradient="adjoint", **options), expected) < 1e-5


def test_the_three_ways_have_the_same_forward_pass():
    problem = Problem("kernel", double(ragged_series((7, 4, 5))))
    solved = {g: problem.solve(gradient=g, times=[2.0]) for g in ("backprop", "checkpoint", "adjoint")}
    for solution in solved.values():
        assert torch.equal(solution.state, solved["backprop"].state)
        assert torch.equal(solution.states, solved["backprop"].states)
        assert (solution.stats.nfe == solved["backprop"].stats.nfe).all()


@pytest.mark.parametrize("gradient", ["backprop", "checkpoint", "adjoint"])
def test_evaluations_of_the_backward_pass_are_counted_apart(gradient):
    problem = Problem("gp", double(ragged_series((7, 4))))
    solution = problem.solve(gradient=gradient)
    assert (solution.stats.backward_nfe == 0).all()
    solution.state.sum().backward()
    if gradient == "backprop":
        assert (solution.stats.backward_nfe == 0).all()
    elif gradient == "checkpoint":
        # Accepted steps are made again, and rejected ones that another row accepted; not the very first slope.
        stats = solution.stats
        assert (stats.backward_nfe >= 6 * stats.accepted).all()
        assert (stats.backward_nfe <= 6 * (stats.accepted + stats.rejected)).all()
    else:
        assert (solution.stats.backward_nfe > 0).all()


def test_without_a_graph_nothing_is_kept():
    problem = Problem("gp", double(ragged_series((7, 4))))
    for gradient in ("backprop", "checkpoint", "adjoint"):
        with torch.no_grad():
            assert not problem.solve(gradient=gradient).state.requires_grad


@pytest.mark.parametrize("gradient", ["backprop", "checkpoint", "adjoint"])
@pytest.mark.parametrize("times", [None, [1.0, 2.0]])
@pytest.mark.parametrize("backward", [True, False])
def test_a_solve_is_freed_when_nobody_holds_it(gradient, times, backward):
    """Graphs are held by C++, where the garbage collector sees no cycles: what is held in one is never freed."""
    problem = Problem("gp", double(ragged_series((7, 4))))
    gc.collect()
    gc.disable()
    try:
        solution = problem.solve(gradient=gradient, times=times, rtol=1e-3, atol=1e-3)
        if backward:
            solution.state.sum().backward()
        held = [weakref.ref(solution.state), weakref.ref(solution.stats.nfe)]
        marches = [weakref.ref(found) for found in gc.get_objects() if type(found).__name__ == "_March"]
        del solution
        assert [ref() for ref in (*held, *marches) if ref() is not None] == []
    finally:
        gc.enable()


def test_the_adjoint_refuses_second_derivatives():
    problem = Problem("gp", double(ragged_series((7, 4))))
    state = problem.solve(gradient="adjoint").state
    with pytest.raises(RuntimeError, match='"adjoint" has no second derivatives; use "backprop" or "checkpoint"'):
        torch.autograd.grad(state.sum(), problem.z0, create_graph=True)


def test_only_what_asks_for_a_gradient_gets_one():
    problem = Problem("gp", double(ragged_series((7, 4))))
    problem.z0 = problem.z0.detach()
    problem.field.requires_grad_(False)
    problem.solve(gradient="adjoint").state.sum().backward()
    assert problem.scores.grad is not None
    assert problem.field.inner.grad is None


class TestHiddenDependencies:
    """An adjoint that did not know of a tensor would leave it without gradient, silently."""

    def test_the_adjoint_refuses_a_function_that_closes_over_a_trainable_tensor(self):
        rate = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
        with pytest.raises(ValueError, match=r'must know every tensor .* register it, or use "checkpoint"'):
            integrate(ODETerm(lambda t, z: -rate * z), states(2), 0.0, 1.0, gradient="adjoint")

    def test_the_adjoint_refuses_such_a_field_too(self):
        inner = TinyField()
        disguised = SimpleNamespace(product=inner.product)
        path = GPPath.fit(double(smooth_series()), 2.0, 0.1)
        with pytest.raises(
            ValueError, match=r"neither a parameter of it \(is it an nn.Module\?\) nor part of the path"
        ):
            integrate(ControlTerm(disguised, path), states(3), path.start, path.end, gradient="adjoint")
        assert all(p.requires_grad for p in inner.parameters())

    @pytest.mark.parametrize("gradient", ["backprop", "checkpoint"])
    def test_the_others_find_it(self, gradient):
        rate = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
        z0 = torch.ones(1, 1, dtype=torch.float64)
        solution = integrate(ODETerm(lambda t, z: -rate * z), z0, 0.0, 2.0, gradient=gradient, **FINE)
        (pulled,) = torch.autograd.grad(solution.state.sum(), rate)
        torch.testing.assert_close(pulled, -2 * torch.exp(-2 * rate.detach()), rtol=1e-7, atol=0)


class Power(torch.nn.Module):
    """z' = rate z^2: z leaves for infinity at t = 1 / (rate z0)."""

    def __init__(self):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64))

    def forward(self, t: Tensor, z: Tensor) -> Tensor:
        return self.rate * z**2


class Exponential(Power):
    """z' = rate exp(z): trial steps overflow to infinity."""

    def forward(self, t: Tensor, z: Tensor) -> Tensor:
        return self.rate * torch.exp(z)


@pytest.mark.parametrize("times", [None, [0.2, 0.9]], ids=["", "moments"])
@pytest.mark.parametrize("gradient", ["backprop", "checkpoint", "adjoint"])
@pytest.mark.parametrize("field", [Power, Exponential])
def test_a_row_that_fails_leaves_the_gradients_of_the_others_alone(field, gradient, times):
    options = {"gradient": gradient, "times": times, "rtol": 1e-6, "atol": 1e-6, "max_steps": 300}
    z0 = torch.tensor([[0.3], [9.0], [-0.5]], dtype=torch.float64, requires_grad=True)
    finished = [0, 2]

    def gradients(z0: Tensor, rows: list[int], throw: bool) -> tuple[Tensor, ...]:
        module = field()
        solution = integrate(ODETerm(module), z0, 0.0, 0.5, throw=throw, **options)
        loss = solution.state[rows].sum()
        if times is not None:
            loss = loss + solution.states[rows].sum()
        return torch.autograd.grad(loss, [z0, module.rate])

    found, found_rate = gradients(z0, finished, throw=False)
    expected, expected_rate = gradients(z0[finished], [0, 1], throw=True)
    torch.testing.assert_close(found[finished], expected, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(found_rate, expected_rate, rtol=1e-8, atol=1e-10)
    assert found[1].item() == 0
