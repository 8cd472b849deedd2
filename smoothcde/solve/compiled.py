"""A whole march in one call of compiled code, where there is one for it."""

import numpy as np
import torch

from smoothcde import native
from smoothcde.solve.clock import STRETCH, smallest_steps
from smoothcde.solve.controller import PIController
from smoothcde.solve.estimate import DOUBT, DOUBT_OF_LONG, STEEPNESS
from smoothcde.solve.pace import TURNS, Turning, turns_of_a_step
from smoothcde.solve.problem import Problem
from smoothcde.solve.result import Solution, Stats, Trace
from smoothcde.solve.start import first_turns
from smoothcde.solve.terms import ControlTerm


def compiled_march(problem: Problem) -> Solution | None:
    """What `march` finds, to rounding; None where compiled code has no answer.

    It serves rows with steps of their own along polynomials, of fields that are compiled themselves, where nobody asks
    for states on the way.
    """
    options, tableau, z0 = problem.options, problem.tableau, problem.z0
    if not isinstance(problem.term, ControlTerm) or options.step_control != "row" or options.classical:
        return None
    if problem.times is not None or not len(z0) or not native.serves(native.march.SOURCE, z0):
        return None
    if (polynomials := problem.term.path.polynomials()) is None or problem.term.knots is not None:
        return None
    term = problem.term.prepared()
    if not isinstance(term.field, native.PackedField) or not native.march.reads(term.field):
        return None
    if not native.serves(native.march.SOURCE, polynomials.slopes):
        return None
    pace = problem.unit_pace(problem.unit_of_row, problem.start, problem.end)
    if not isinstance(pace, Turning):
        return None
    slope = term.slope(z0, term.controls(torch.from_numpy(problem.start)[:, None]), 0, problem.rows)
    tolerances, constants = (options.rtol, options.atol), TURNS[tableau.name]
    usual = turns_of_a_step(constants.rate, tableau.order, max(tolerances))
    size = first_turns(z0, slope, tolerances, usual, pace.first, lambda per_row: per_row)
    running = problem.end > problem.start
    if not np.isfinite(size[running]).all():
        return None  # rows that end before they begin, and have to leave the graph
    journey = native.march.Journey(
        method=tableau.compiled,
        nodes=tableau.nodes,
        control=_control(problem),
        rows_of_view=problem.rows.sizes,
        start=problem.start,
        end=problem.end,
        limit=problem.unit_limits(problem.term.longest_step, problem.unit_of_row, len(z0)),
        smallest=smallest_steps(problem.start, problem.end),
        rate=pace.rate,
        reached=pace.reached,
        length=polynomials.length.detach().cpu().numpy(),
        size=np.where(running, size, 0.0),
        expected=constants.always + 1 + pace.reached[:, -1] / usual,
    )
    state = native.march.march(term.field, journey, z0, slope, polynomials.slopes)
    trace = Trace(problem.start, problem.unit_of_row)
    for rows, times in journey.log:
        trace.note(rows, times)
    evaluations = np.where(running, 1 + (tableau.slopes - 1) * (journey.accepted + journey.rejected), 0)
    stats = Stats(evaluations, journey.accepted, journey.rejected, np.zeros_like(evaluations))
    return Solution(state, None, stats, journey.code, trace)


def _control(problem: Problem) -> native.march.Control:
    """What steps are held to: by how a march estimates errors and follows them with its steps."""
    options, tableau, controller = problem.options, problem.tableau, PIController()
    chance = problem.z0.shape[1] ** -0.5
    return native.march.Control(
        rtol=options.rtol,
        atol=options.atol,
        tolerance=max(options.rtol, options.atol),
        doubt=1 + DOUBT * chance,
        trust=tableau.trust * (1 + DOUBT_OF_LONG * chance),
        steepness=STEEPNESS,
        order=tableau.order,
        safety=controller.safety,
        shrink=controller.shrink,
        grow=controller.grow,
        damping=controller.damping,
        stretch=STRETCH,
        max_steps=options.max_steps,
    )
