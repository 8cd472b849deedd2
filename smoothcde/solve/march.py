"""The loop: propose a step, take it, settle it, let finished rows leave."""

from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from smoothcde.solve.clock import Clock, Proposal
from smoothcde.solve.compiled import compiled_march
from smoothcde.solve.controller import IntegralController, PIController
from smoothcde.solve.estimate import Estimate, corrected, embedded
from smoothcde.solve.pace import TURNS, Turning, turns_of_a_step
from smoothcde.solve.problem import Problem
from smoothcde.solve.result import Solution, Stats, Trace
from smoothcde.solve.start import first_step, first_turns
from smoothcde.solve.step import Dense, Stale, Step, take_step
from smoothcde.solve.windows import WindowedTerm

CROWDED = 0.9
"""Finished rows are cleared away when fewer than this share of the rows present still run: copies cost, too."""


@runtime_checkable
class Listener(Protocol):
    """Told of every step, for quadratures along the way."""

    def settled(self, sizes: Tensor | None, weights: np.ndarray) -> None:
        """A step was settled; `sizes` are its sizes per row present, zero where it was rejected; None if all were."""
        ...


def march(problem: Problem, *, checkpointed: bool = False, listener: Listener | None = None) -> Solution:
    """Integrate every row of a problem over its window.

    Args:
        problem: what to integrate.
        checkpointed: keep only states in the graph, and evaluate each step again in the backward pass.
        listener: told of every settled step. Slopes are then never carried from one step to the next, so that a
            listener sees all evaluations of a step together.
    """
    if listener is None and not (checkpointed and torch.is_grad_enabled()):
        solution = compiled_march(problem)
        if solution is not None:
            return solution
    return _March(problem, checkpointed, listener).run()


class _March:
    """One run of the loop. `present` are the rows still on the device; a unit's numbers live in the clock."""

    def __init__(self, problem: Problem, checkpointed: bool, listener: Listener | None):
        self.problem, self.checkpointed, self.listener = problem, checkpointed, listener
        self.tableau, options = problem.tableau, problem.options
        self.tolerances = (options.rtol, options.atol)
        self.unit_of_row = problem.unit_of_row
        start, end = problem.unit_windows(self.unit_of_row)
        self.term = WindowedTerm.where_needed(
            problem.term.prepared(), problem.start, problem.end, self.unit_of_row, problem.z0.device
        )
        knots = problem.unit_knots(self.term.knots, len(start))
        controller = IntegralController() if options.step_control == "joint" else PIController()
        limits = problem.unit_limits(self.term.longest_step, self.unit_of_row, len(start))
        self.pace = problem.unit_pace(self.unit_of_row, start, end)
        self.clock = Clock(start, end, knots, limits, controller, options.max_steps, self.pace)
        self.backward_nfe = np.zeros(len(self.unit_of_row), dtype=np.int64)
        # Far enough from a kink to be on one side of it after rounding; units without kinks have no need of it.
        kinked = np.isfinite(knots).any(axis=1)
        self.margin = np.where(kinked, 16 * np.spacing(np.maximum(np.abs(start), np.abs(end))), 0.0)
        self.trace = Trace(start, self.unit_of_row)
        # A step's last slope is the next one's first, unless a listener wants to see each step's slopes together.
        self.reuses = listener is None

        self.present = problem.rows
        self.z = problem.z0
        self.slope: Tensor | None = None
        self.left: list[tuple[np.ndarray, Tensor]] = []
        self.wanted: list[tuple[np.ndarray, np.ndarray, Tensor]] = []

    def run(self) -> Solution:
        """March until no unit runs."""
        self._note_starts()
        if self.clock.running.any():
            self._begin()
        while self.clock.running.any():
            proposal = self.clock.propose()
            dense, asked = self._asked(proposal)
            step = self._try(proposal, dense)
            error = self._error(step)
            if not np.isfinite(error.ratio).all() and (error.ratio <= 1).any():
                step = self._without(proposal, dense, ~np.isfinite(error.ratio))
            accepted = self.clock.settle(proposal, error)
            self._keep(proposal, step, accepted, asked)
            self._clear_away()
        return self._solution()

    def _begin(self) -> None:
        """The first slope and the first step size."""
        start = self.clock.time.copy()
        self.slope = self._slope(start, self.z)
        if isinstance(self.pace, Turning):
            usual = turns_of_a_step(TURNS[self.tableau.name].rate, self.tableau.order, max(self.tolerances))
            size = first_turns(self.z, self.slope, self.tolerances, usual, self.pace.first, self._mean_over_units)
            self.clock.count(1)
        else:
            size = self._first_step(start)
            self.clock.count(2)
        before = self.clock.running
        self.clock.begin(size)
        if (before & ~self.clock.running).any():
            # Their slopes are no numbers; left in the graph, they would make the gradients of all others none either.
            self._clear_away(at_once=True)
            self.slope = self._slope(start, self.z) if len(self.present.index) else None
        if not self.reuses:
            self.slope = None

    def _first_step(self, start: np.ndarray) -> np.ndarray:
        assert self.slope is not None
        room = np.where(self.clock.running, self.problem.unit_windows(self.unit_of_row)[1] - start, 0.0)

        def slope_after(step: np.ndarray, z: Tensor) -> Tensor:
            return self._slope(start + step, z)

        return first_step(
            self.z,
            self.slope,
            self.tolerances,
            self.tableau.order,
            room,
            self.problem.options.step_control != "joint",
            self.problem.term.driven,
            self._mean_over_units,
            lambda of_unit: of_unit[self.unit_of_row],
            slope_after,
        )

    def _slope(self, unit_times: np.ndarray, z: Tensor) -> Tensor:
        times = (unit_times + self.margin)[self.unit_of_row[self.present.index]][:, None]
        return self.term.slope(z, self.term.controls(self._to_device(times)), 0, self.present)

    def _try(self, proposal: Proposal, dense: Dense | None) -> Step:
        units = self.unit_of_row[self.present.index]
        nodes = self.tableau.nodes if self.slope is None else self.tableau.nodes[1:]
        begin, end, size = (part[units][:, None] for part in (proposal.begin, proposal.end, proposal.size))
        # Just inside the step, so that a kink at either end shows the side the step is on.
        margin = np.minimum(self.margin[units][:, None], size / 4)
        times = np.clip(np.where(nodes == 1.0, end, begin + nodes * size), begin + margin, end - margin)
        stale = None if self.slope is None else self._stale(units, begin + margin)
        sizes = self._to_device(size, self.z.dtype)
        arguments = (self._to_device(times), sizes, self.tolerances, dense, stale)
        evaluations = len(nodes)
        self.clock.count(evaluations)
        if stale is not None:
            self.clock.count(1, of=self.clock.landed)
        tableau, term, present = self.tableau, self.term, self.present
        if not (self.checkpointed and torch.is_grad_enabled()):
            return take_step(tableau, term, present, self.z, self.slope, *arguments)

        again = self.clock.landed if stale is not None else False
        counted = (self.clock.running * (evaluations + 1 * again))[self.unit_of_row]
        # Not `self`, which holds the states: graph and march would hold each other, and neither ever be freed.
        first_time, backward_nfe = [True], self.backward_nfe

        def step(z: Tensor, slope: Tensor | None) -> Step:
            if not first_time[0]:
                np.add(backward_nfe, counted, out=backward_nfe)
            first_time[0] = False
            return take_step(tableau, term, present, z, slope, *arguments)

        return checkpoint(step, self.z, self.slope, use_reentrant=False, preserve_rng_state=False)

    def _stale(self, units: np.ndarray, begin: np.ndarray) -> Stale | None:
        """Rows whose slope is from before the kink they landed on.

        The device evaluates all rows present again, but only these are counted: a row's count is what it costs alone.
        """
        rows = (self.clock.landed & self.clock.running)[units]
        return Stale(self._to_device(rows, torch.bool), self._to_device(begin)) if rows.any() else None

    def _without(self, proposal: Proposal, dense: Dense | None, failed: np.ndarray) -> Step:
        """The same step with the failed units standing still: an infinity left in the graph would turn zero gradients
        into NaN.
        """
        size = np.where(failed, 0.0, proposal.size)
        end = np.where(failed, proposal.begin, proposal.end)
        counted = self.clock.nfe.copy()
        step = self._try(Proposal(proposal.begin, end, size), dense)
        self.clock.nfe = counted
        return step

    def _keep(self, proposal: Proposal, step: Step, accepted: np.ndarray, asked) -> None:
        """Take over the accepted rows' states, slopes and requested states."""
        units = self.unit_of_row[self.present.index]
        rows = accepted[units]
        if self.listener is not None:
            sizes = np.where(rows, proposal.size[units], 0.0)
            self.listener.settled(self._to_device(sizes, self.z.dtype) if rows.any() else None, self.tableau.weights)
        if not rows.any():
            self.slope = step.first if self.reuses else None
            return
        moved = np.flatnonzero(accepted)
        self.trace.note(moved, proposal.end[moved])
        if step.states is not None:
            position, column = asked
            kept = np.flatnonzero(rows[position])
            states = step.states if len(kept) == len(position) else step.states[self._to_device(kept, torch.long)]
            self.wanted.append((self.present.index[position[kept]], column[kept], states))
        if rows.all():
            self.z, slope = step.state, step.slope
        else:
            choose = self._to_device(rows, torch.bool)[:, None]
            self.z = torch.where(choose, step.state, self.z)
            slope = torch.where(choose, step.slope, step.first)
        self.slope = slope if self.reuses else None

    def _clear_away(self, at_once: bool = False) -> None:
        """Let rows go that have ended, as soon as there are enough of them."""
        running = self.clock.running[self.unit_of_row[self.present.index]]
        if running.all() or (running.sum() > CROWDED * len(running) and not at_once):
            return
        stay, leave = np.flatnonzero(running), np.flatnonzero(~running)
        self.left.append((self.present.index[leave], self.z.index_select(0, self._to_device(leave, torch.long))))
        if not len(stay):
            self.present = self.present.keep(stay)
            return
        position = self._to_device(stay, torch.long)
        self.z = self.z.index_select(0, position)
        self.slope = None if self.slope is None else self.slope.index_select(0, position)
        self.term = self.term.select(position)
        self.present = self.present.keep(stay)

    def _note_starts(self) -> None:
        """Requested moments at a row's very start."""
        if self.problem.times is None:
            return
        row, column = np.nonzero(self.problem.times <= self.problem.start[:, None])
        if len(row):
            self.wanted.append((row, column, self.z[self._to_device(row, torch.long)]))

    def _asked(self, proposal: Proposal) -> tuple[Dense | None, tuple[np.ndarray, np.ndarray] | None]:
        """Requested moments inside the step that is about to be tried: position among the rows present, and column."""
        if self.problem.times is None:
            return None, None
        units = self.unit_of_row[self.present.index]
        times = self.problem.times[self.present.index]
        begin, end = proposal.begin[units][:, None], proposal.end[units][:, None]
        # A row's own start was noted at the outset, though a unit may reach it later.
        begin = np.maximum(begin, self.problem.start[self.present.index][:, None])
        position, column = np.nonzero((times > begin) & (times <= end))
        if not len(position):
            return None, None
        unit = units[position]
        share = (times[position, column] - proposal.begin[unit]) / proposal.size[unit]
        return Dense(self._to_device(position, torch.long), self._to_device(np.minimum(share, 1.0))), (position, column)

    def _error(self, step: Step) -> Estimate:
        """Of each unit's step; the one synchronisation of a step."""
        classical = self.problem.options.classical
        departure = None if classical else step.squared_departure
        parts = [step.squared_ratio] if departure is None else [step.squared_ratio, departure]
        squares = [self._mean_over_units(part) for part in torch.stack(parts).double().cpu().numpy()]
        if classical:
            return embedded(self.tableau, *squares)
        components = self.z.shape[1] * (len(self.unit_of_row) // len(self.clock.time))
        return corrected(self.tableau, max(self.tolerances), components, *squares)

    def _mean_over_units(self, per_row: np.ndarray) -> np.ndarray:
        """Mean over the rows present of each unit; zero for units that have left."""
        if self.problem.options.step_control == "row":
            whole = np.zeros(len(self.clock.time))
            whole[self.present.index] = per_row
            return whole
        units = self.unit_of_row[self.present.index]
        total = np.bincount(units, weights=per_row, minlength=len(self.clock.time))
        return total / np.maximum(np.bincount(units, minlength=len(self.clock.time)), 1)

    def _to_device(self, array: np.ndarray, dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.z.device, dtype, non_blocking=True)

    def _solution(self) -> Solution:
        count, hidden = self.problem.z0.shape
        if len(self.present.index):
            self.left.append((self.present.index, self.z))
        rows = np.concatenate([index for index, _ in self.left]) if self.left else np.zeros(0, dtype=np.int64)
        states = torch.cat([z for _, z in self.left]) if self.left else self.z
        back = np.argsort(rows)
        in_order = len(self.left) <= 1 and (np.diff(rows) == 1).all()
        state = states if in_order else states[self._to_device(back, torch.long)]
        of_row = self.unit_of_row
        clock = self.clock
        stats = Stats(clock.nfe[of_row], clock.accepted[of_row], clock.rejected[of_row], self.backward_nfe)
        return Solution(state, self._requested(count, hidden), stats, clock.code[of_row], self.trace)

    def _requested(self, count: int, hidden: int) -> Tensor | None:
        if self.problem.times is None:
            return None
        shape = (count, self.problem.times.shape[1], hidden)
        # Moments that a failed row never reached stay NaN.
        states = torch.full(shape, torch.nan, dtype=self.problem.z0.dtype, device=self.problem.z0.device)
        if not self.wanted:
            return states
        row = self._to_device(np.concatenate([r for r, _, _ in self.wanted]), torch.long)
        column = self._to_device(np.concatenate([c for _, c, _ in self.wanted]), torch.long)
        return states.index_put((row, column), torch.cat([s for _, _, s in self.wanted]))
