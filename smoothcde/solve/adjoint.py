"""Gradients by solving the adjoint equation backwards in time, in memory that does not grow with the steps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smoothcde.solve.march import march
from smoothcde.solve.problem import Problem
from smoothcde.solve.result import Solution, Stats
from smoothcde.solve.rows import Rows
from smoothcde.solve.terms import Term
from smoothcde.solve.windows import WindowedTerm


def adjoint_solve(problem: Problem) -> Solution:
    """Integrate without a graph; the backward pass integrates the adjoint, path and parameters included."""
    term = problem.term
    tensors, parameters = term.tensors(), term.parameters()
    _refuse_hidden_dependencies(problem, tensors, parameters)
    kept: dict[str, Any] = {}
    state, states = _Adjoint.apply(problem, kept, problem.z0, len(tensors), *tensors, *parameters)
    return replace(kept["solution"], state=state, states=states if problem.times is not None else None)


class _Adjoint(torch.autograd.Function):
    """State and requested states as functions of z0, the term's tensors and its parameters."""

    @staticmethod
    def forward(ctx, problem: Problem, kept: dict, z0, count: int, *inputs):
        with torch.no_grad():
            solution = march(replace(problem, z0=z0))
        kept["solution"] = solution
        # Of the solution nothing that has a graph: the node would hold itself.
        ctx.problem, ctx.count, ctx.codes, ctx.stats = problem, count, solution.codes, solution.stats
        states = solution.states if solution.states is not None else z0.new_zeros(len(z0), 0, z0.shape[1])
        ctx.save_for_backward(z0, solution.state, states, *inputs)
        return solution.state, states

    @staticmethod
    def backward(ctx, state_gradient, states_gradient):
        if torch.is_grad_enabled():  # with create_graph=True; what follows would be taken for a constant
            raise RuntimeError('gradient="adjoint" has no second derivatives; use "backprop" or "checkpoint"')
        z0, state, states, *inputs = ctx.saved_tensors
        problem = replace(ctx.problem, z0=z0)
        tensors, parameters = inputs[: ctx.count], inputs[ctx.count :]
        needed = ctx.needs_input_grad[4:]
        sweep = _Sweep(problem, tensors, parameters, needed, ctx.codes, ctx.stats)
        gradient = sweep.run(state, states, state_gradient, states_gradient)
        return None, None, gradient, None, *sweep.totals


class _Sweep:
    """The way back from the end of every window to its start, halting where a state was handed out."""

    def __init__(self, problem: Problem, tensors, parameters, needed: Sequence[bool], codes: np.ndarray, stats: Stats):
        self.problem, self.codes, self.stats = problem, codes, stats
        self.tensors = [t.detach().requires_grad_(need) for t, need in zip(tensors, needed, strict=False)]
        everything = [*self.tensors, *parameters]
        self.totals = [torch.zeros_like(x) if need else None for x, need in zip(everything, needed, strict=True)]
        self.wanted = [(x, total) for x, total in zip(everything, self.totals, strict=True) if total is not None]

    def run(self, state: Tensor, states: Tensor, state_gradient: Tensor, states_gradient: Tensor) -> Tensor:
        """The gradient with respect to z0; those of tensors and parameters end up in `totals`."""
        problem = self.problem
        # Rows that did not finish stand still, without gradient: their way back could not be integrated either. They do
        # so at zero, since a field may overflow where they ended, and zero times infinity is no zero.
        lost = self.codes != 0
        finished = torch.as_tensor(~lost, device=state.device)[:, None]
        z, costate = torch.where(finished, state, 0.0), torch.where(finished, state_gradient, 0.0)
        here = problem.end
        start = np.where(lost, here, problem.start)
        times = problem.times if problem.times is not None else np.zeros((len(here), 0))
        times = np.where(lost[:, None], here[:, None], times)
        order = np.argsort(-times, axis=1, kind="stable")
        row = torch.arange(len(here), device=z.device)
        for rank in range(times.shape[1]):
            column = order[:, rank]
            there = np.take_along_axis(times, column[:, None], axis=1)[:, 0]
            _, costate = self._back(z, costate, there, here)
            pick = torch.as_tensor(column, device=z.device)
            z = torch.where(finished, states[row, pick], z)
            costate = torch.where(finished, costate + states_gradient[row, pick], 0.0)
            here = there
        return self._back(z, costate, start, here)[1]

    def _back(self, z: Tensor, costate: Tensor, start: np.ndarray, end: np.ndarray) -> tuple[Tensor, Tensor]:
        """State and costate at `start`, from those at `end`."""
        problem = self.problem
        # Rows that share steps must not run on beyond `start` while others are still on their way.
        halting = WindowedTerm.where_needed(problem.term, start, end, problem.unit_of_row, z.device)
        term = _AdjointTerm(self, halting)
        # Backwards in time is forwards in s = -t, which, unlike end - t, rounds no time and no knot.
        backwards = replace(problem, term=term, z0=torch.cat([z, costate], dim=1), start=-end, end=-start, times=None)
        with torch.no_grad():
            solution = march(backwards, listener=term.tape)
        solution.raise_if_failed()
        np.add(self.stats.backward_nfe, solution.stats.nfe, out=self.stats.backward_nfe)
        before, gradient = solution.state.chunk(2, dim=1)
        return before, gradient


class _Tape:
    """The slopes of the step under way with their graphs, until it is settled."""

    def __init__(self, sweep: _Sweep):
        self._sweep = sweep
        self.slopes: list[tuple[Tensor, Tensor]] = []

    def settled(self, sizes: Tensor | None, weights: np.ndarray) -> None:
        """Add the step's share of every quadrature, by the method's own weights; outside the error norm."""
        slopes, self.slopes = self.slopes[-len(weights) :], []
        wanted = self._sweep.wanted
        if not wanted or sizes is None:
            return
        used = [(f, a * (w * sizes)[:, None]) for (f, a), w in zip(slopes, weights, strict=True) if w]
        outputs, cotangents = zip(*used, strict=True)
        # The selection of rows is part of many steps' graphs, so no step may free it.
        found = torch.autograd.grad(outputs, [x for x, _ in wanted], cotangents, allow_unused=True, retain_graph=True)
        for (_, total), gradient in zip(wanted, found, strict=True):
            if gradient is not None:
                total += gradient


class _AdjointTerm(Term):
    """d/ds of (z, a) with s = -t: z runs back along itself, a' = a^T df/dz."""

    def __init__(self, sweep: _Sweep, term: Term):
        self.tape = _Tape(sweep)
        self._knots = term.knots
        with torch.enable_grad():
            self._term = term.with_tensors(sweep.tensors).prepared()

    def controls(self, times: Tensor) -> Any:
        """Those of the forward term, with a graph."""
        with torch.enable_grad():
            return self._term.controls(-times)

    def slope(self, z: Tensor, controls: Any, stage: int, rows: Rows) -> Tensor:
        """(-f, a^T df/dz), and a note on the tape."""
        state, costate = z.chunk(2, dim=1)
        with torch.enable_grad():
            state = state.detach().requires_grad_()
            f = self._term.slope(state, controls, stage, rows)
            (pulled,) = torch.autograd.grad(f, state, costate, retain_graph=True, allow_unused=True)
        self.tape.slopes.append((f, costate))
        pulled = torch.zeros_like(costate) if pulled is None else pulled
        return torch.cat([-f.detach(), pulled], dim=1)

    def select(self, positions: Tensor) -> "_AdjointTerm":
        """The adjoint of the given rows, on the same tape."""
        chosen = object.__new__(_AdjointTerm)
        chosen.tape = self.tape
        chosen._knots = None if self._knots is None else self._knots[positions]
        with torch.enable_grad():
            chosen._term = self._term.select(positions)
        return chosen

    @property
    def knots(self) -> Tensor | None:
        """The forward term's, seen from the other end."""
        return None if self._knots is None else -self._knots

    @property
    def longest_step(self) -> Tensor | None:
        """The forward term's."""
        return self._term.longest_step

    def tensors(self) -> tuple[Tensor, ...]:
        """None: nothing differentiates an adjoint here."""
        return ()

    def with_tensors(self, tensors: Sequence[Tensor]) -> "_AdjointTerm":
        """Itself."""
        return self

    def parameters(self) -> tuple[Tensor, ...]:
        """None."""
        return ()


def _refuse_hidden_dependencies(problem: Problem, tensors: Sequence[Tensor], parameters: Sequence[Tensor]) -> None:
    """An adjoint that does not know of a tensor would silently leave it without gradient; find out, and say so."""
    probe = problem.term.with_tensors([t.detach() for t in tensors])
    times = torch.as_tensor(problem.start, device=problem.z0.device)[:, None]
    slope = probe.slope(problem.z0.detach(), probe.controls(times), 0, problem.rows)
    known = {id(parameter) for parameter in parameters}
    if any(id(leaf) not in known for leaf in _leaves(slope)):
        raise ValueError(
            'gradient="adjoint" must know every tensor the right-hand side depends on, and this field uses one that is '
            'neither a parameter of it (is it an nn.Module?) nor part of the path; register it, or use "checkpoint"'
        )


def _leaves(tensor: Tensor) -> Iterator[Tensor]:
    """What a tensor was computed from, as far as it could be given a gradient."""
    seen, ahead = set(), [tensor.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            yield leaf
        ahead += [before for before, _ in node.next_functions]
