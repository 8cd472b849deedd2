"""`integrate`: the front door of the solver."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from smoothcde.solve.adjoint import adjoint_solve
from smoothcde.solve.march import march
from smoothcde.solve.options import Gradient, Knots, SolverOptions, StepControl
from smoothcde.solve.problem import Problem
from smoothcde.solve.result import Solution
from smoothcde.solve.terms import Term


def integrate(
    term: Term,
    z0: Float[Tensor, "rows hidden"],
    start: Any,
    end: Any,
    *,
    times: Any = None,
    views: int = 1,
    solver: str = "dopri5",
    rtol: float = 1e-3,
    atol: float = 1e-3,
    step_control: StepControl = "row",
    knots: Knots = "land",
    gradient: Gradient = "backprop",
    max_steps: int = 10_000,
    throw: bool = True,
) -> Solution:
    """Integrate dz/dt = term(z, t) for every row over that row's own window.

    ```python
    path = GPPath.fit(batch, bandwidth=2.0, noise=0.01)
    solution = integrate(ControlTerm(field, path), z0, path.start, path.end, rtol=1e-4, atol=1e-4)
    solution.state, solution.stats.nfe, solution.steps[0]
    ```

    Args:
        term: the right-hand side.
        z0: states at the start.
        start: of the windows, a number or one per row.
        end: of the windows.
        times: moments at which states are wanted too, `[moments]` or `[rows, moments]`; interpolated inside the step
            they fall in (dense output, of order 3 for bosh3, 4 for the three of order 5, 5 for dopri8), at no further
            evaluation.
        views: rows are this many views of as many series, view-major.
        solver: see `SolverOptions`, as for all that follow.
        rtol: relative tolerance.
        atol: absolute tolerance.
        step_control: "row", "sample" or "joint".
        knots: "land" or "step_over".
        gradient: "backprop", "checkpoint" or "adjoint". All three reach everything the term depends on; step sizes and
            windows are not differentiated. Only the adjoint has no second derivatives.
        max_steps: tried steps per row.
        throw: raise `SolveError` if any row does not finish; otherwise `Solution.status` tells. The adjoint gives
            unfinished rows no gradient.
    """
    options = SolverOptions(solver, rtol, atol, step_control, knots, gradient, max_steps)
    problem = Problem.of(term, z0, start, end, times, views, options)
    if gradient == "adjoint" and torch.is_grad_enabled():
        solution = adjoint_solve(problem)
    else:
        solution = march(problem, checkpointed=gradient == "checkpoint")
    if throw:
        solution.raise_if_failed()
    return solution
