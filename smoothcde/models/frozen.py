"""A model whose solver's steps are frozen: the same for every series, known beforehand."""

from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
import torch

from smoothcde.checks import check_choice
from smoothcde.models.base import Outcome, SeriesModel, full_precision
from smoothcde.models.cde import CDEModel
from smoothcde.series import SeriesBatch
from smoothcde.solve import Solution, SolveError, SolverOptions, Stats
from smoothcde.solve.plan import StepPlan, check_plannable, kinked
from smoothcde.solve.result import Trace

Fallback = Literal["adaptive", "none"]


@dataclass(frozen=True, eq=False)
class FrozenOutcome(Outcome):
    """An `Outcome` that says which series the plan did not serve.

    Attributes:
        error_ratio: per series, the largest error estimate of any step of any view, over the plan's limit for it;
            infinite where a path has kinks that no plan knows.
        total_error: per series, the estimates added up over the steps, in tolerances, for the worst view.
        flagged: series outside the plan: `error_ratio` above 1, or not a number.
        resolved: flagged series that were solved again by the adaptive solver; the outcome shows those solutions.
    """

    error_ratio: np.ndarray = field(default_factory=lambda: np.zeros(0))
    total_error: np.ndarray = field(default_factory=lambda: np.zeros(0))
    flagged: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    resolved: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))


class FrozenModel(SeriesModel):
    """A CDE model that follows a `StepPlan` instead of finding its steps.

    ```python
    frozen = FrozenModel(model, StepPlan.calibrate(model, series))
    frozen(batch)                                               # outputs by the plan alone
    outcome = frozen.solve(batch, fallback="adaptive")          # series outside the plan are solved again
    outcome.flagged, outcome.error_ratio
    ```

    Args:
        model: what to freeze; its weights are shared, not copied.
        plan: made by `StepPlan.calibrate` for that model.
        fallback: what becomes of series outside the plan unless a call says otherwise: "none" keeps what the plan gave
            and flags them, "adaptive" solves them again.
    """

    def __init__(self, model: SeriesModel, plan: StepPlan, fallback: Fallback = "none"):
        check_plannable(model)
        self._check_fallback(fallback)
        super().__init__(
            channels=model.channels, static=model.static, time_scale=model.time_scale, options=model.options
        )
        self.model = cast(CDEModel, model)
        if plan.views != self.model.views:
            raise ValueError(
                f"the plan is for {plan.views} views and the model has {self.model.views}; "
                "calibrate a plan for this model with StepPlan.calibrate"
            )
        self.plan, self.fallback = plan, fallback

    def why_no_plan(self) -> str | None:
        """It has one."""
        return "it follows a plan already"

    def solve(
        self,
        batch: SeriesBatch,
        times: Any = None,
        options: SolverOptions | None = None,
        fallback: str | None = None,
    ) -> FrozenOutcome:
        """Outputs at the end of each window, and which series the plan did not serve.

        Args:
            batch: the series.
            times: not to be had: a plan answers at the end of a window.
            options: of the adaptive solver where it is asked; a plan has its own.
            fallback: see the class.
        """
        if times is not None:
            raise ValueError("a frozen plan answers at the end of a window only; ask the adaptive model for `times`")
        fallback = self._check_fallback(self.fallback if fallback is None else fallback)
        if not len(batch):
            empty = self.model.solve(batch, options=options)
            return FrozenOutcome(*(getattr(empty, name) for name in Outcome.__dataclass_fields__))
        views, n = self.model.views, len(batch)
        term, z0, path, attention, penalty = self.model.begin(batch)
        with full_precision(batch):
            followed = self.plan.follow(cast(Any, term), z0)
        # Nothing is asked of the device before the last step is under way.
        ratios = followed.ratios.detach().double().cpu().numpy()
        worst = np.where(kinked(path, self.options), np.inf, ratios.max(axis=1)).reshape(views, n)
        worst = (worst / np.array(self.plan.limits)[:, None]).max(axis=0)
        total = ratios.sum(axis=1).reshape(views, n).max(axis=0)
        flagged = ~(worst <= 1)
        start, window = (bound.cpu().numpy() for bound in (path.start, path.end - path.start))
        steps = [start[r] + np.array([0.0, *self.plan.ends[r // n]]) * window[r] for r in range(views * n)]
        count = np.repeat(self.plan.steps, n)
        stats = Stats(np.repeat(self.plan.nfe, n), count, np.zeros_like(count), np.zeros_like(count))
        codes = np.zeros(views * n, dtype=np.int64)
        solution = Solution(followed.state, None, stats, codes, Trace.of(steps))
        if fallback == "adaptive" and flagged.any():
            solution = self._solved_again(batch, solution, np.flatnonzero(flagged), options)
        outputs = self.model.read_views(solution.state, batch)
        resolved = flagged & (fallback == "adaptive")
        return FrozenOutcome(
            outputs, penalty, solution.stats.nfe, solution, path, attention, worst, total, flagged, resolved
        )

    def _solved_again(
        self, batch: SeriesBatch, planned: Solution, series: np.ndarray, options: SolverOptions | None
    ) -> Solution:
        """The solution with these series as the adaptive solver has them; evaluations of both are counted."""
        flagged = batch.select(torch.as_tensor(series, device=batch.device))
        try:
            again = self.model.solve(flagged, options=options).solution
        except SolveError as error:
            again = error.solution
        assert again is not None
        rows = (np.arange(self.model.views)[:, None] * len(batch) + series).ravel()
        state = planned.state.index_copy(0, torch.as_tensor(rows, device=batch.device), again.state)
        counts = {name: getattr(planned.stats, name).copy() for name in ("accepted", "rejected", "backward_nfe")}
        for name, count in counts.items():
            count[rows] = getattr(again.stats, name)
        nfe = planned.stats.nfe.copy()
        nfe[rows] += again.stats.nfe
        steps = planned.steps
        for row, found in zip(rows, again.steps, strict=True):
            steps[row] = found
        codes = planned.codes.copy()
        codes[rows] = again.codes
        merged = Solution(state, None, Stats(nfe, **counts), codes, Trace.of(steps))
        merged.raise_if_failed()  # here, where rows have the numbers of the whole batch
        return merged

    @staticmethod
    def _check_fallback(fallback: str) -> str:
        check_choice("fallback", fallback, ("adaptive", "none"))
        return fallback
