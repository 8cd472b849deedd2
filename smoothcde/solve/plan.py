"""A frozen step plan: the steps of a solve, fixed before the series are seen."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from smoothcde.checks import check_above_zero
from smoothcde.series import SeriesBatch, SeriesSet
from smoothcde.solve.density import Densities
from smoothcde.solve.follow import Followed, Schedule, follow
from smoothcde.solve.integrate import integrate
from smoothcde.solve.options import SolverOptions
from smoothcde.solve.tableaus import TABLEAUS
from smoothcde.solve.terms import ControlTerm

ROOM = 2.5
"""Calibration series are held to a part of what is allowed, which leaves room for series that nobody has seen."""
SLACK = 1.25
"""How far a series' error estimates may exceed all that were seen in calibration before it is outside the plan."""
FINER = 100.0
"""How much tighter the tolerance of the reference is. The adaptive solver's own answer cannot be it: on recorded
gestures (UWaveGestureLibrary) half of its states are more than one tolerance off."""
ROUNDS, MOST_ROUNDS = 16, 40
"""Plans that are tried for each view; the shortest that holds is kept. More are tried where none has held yet."""
MOST_STEPS = 512
"""Steps per view, beyond which a plan is no plan."""


@dataclass(frozen=True)
class StepPlan:
    """Where the steps of each view end, as shares of a series' own window, and how errors are judged.

    Every series is solved in the same steps, whatever its length: positions are shares of the row's window. What the
    adaptive solver would have found out step by step was found out once, on calibration series. Each step's error
    estimate is still computed, and a series with one above the limit of its view is *outside the plan*.

    ```python
    plan = StepPlan.calibrate(model, series, coverage=0.99)
    frozen = FrozenModel(model, plan)
    ```

    Attributes:
        ends: per view, increasing, the last one 1.
        limits: per view, the largest error estimate of a step, in tolerances, that is still inside the plan: at most 1,
            beyond which no solver accepts a step, and not much more than calibration series have.
        solver: the Runge-Kutta method.
        rtol: relative tolerance that errors are judged by.
        atol: absolute tolerance, likewise.
        coverage: share of the calibration series that the plan was asked to hold for.
        covered: share that it holds for.
        series: how many calibration series there were.
    """

    ends: tuple[tuple[float, ...], ...]
    limits: tuple[float, ...]
    solver: str
    rtol: float
    atol: float
    coverage: float
    covered: float
    series: int

    def __post_init__(self):
        SolverOptions(self.solver, self.rtol, self.atol)
        if not self.ends:
            raise ValueError("a plan needs at least one view")
        if len(self.limits) != len(self.ends) or not all(0 < limit <= 1 for limit in self.limits):
            raise ValueError(f"the limits are {self.limits}; give one per view, above 0 and up to 1")
        for view, ends in enumerate(self.ends):
            steps = np.diff([0.0, *ends])
            if not (len(ends) and (steps > 0).all() and ends[-1] == 1.0):
                raise ValueError(
                    f"the step ends of view {view} are {ends}; give shares that increase from above 0 to 1"
                )

    @property
    def views(self) -> int:
        """Views it is for."""
        return len(self.ends)

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps of each view."""
        return tuple(len(ends) for ends in self.ends)

    @property
    def nfe(self) -> tuple[int, ...]:
        """Evaluations that a series costs in each view."""
        return tuple(1 + (TABLEAUS[self.solver].slopes - 1) * steps for steps in self.steps)

    def follow(self, term: ControlTerm, z0: Tensor) -> Followed:
        """Integrate along the plan."""
        return follow(self._schedule, term, z0, (self.rtol, self.atol))

    @cached_property
    def _schedule(self) -> Schedule:
        return Schedule(self.ends, TABLEAUS[self.solver])

    @classmethod
    def calibrate(
        cls,
        model: Any,
        data: SeriesSet | SeriesBatch,
        coverage: float = 0.99,
        within: float = 10.0,
        batch_size: int = 256,
    ) -> "StepPlan":
        """The shortest plan found that holds for a share of the given series.

        The accepted steps of the adaptive solver give a first density of steps over the window, a quantile over the
        series; plans are then tried and their steps moved to where the errors are. A plan holds for a series if no step
        of any view has an error estimate above the tolerance, and all final states are close to what the adaptive
        solver gives at a hundredth of the tolerance.

        Args:
            model: a CDE along smooth paths: mv-gp, mvc-gp, mv-kernel, mvc-kernel, gp, kernel, hermite, cubic,
                smoothing-spline.
            data: series like those to come, standardised as the model takes them; a few hundred.
            coverage: the share.
            within: how far final states may be off, in units of atol + rtol |z|, largest component: ten, as tests of
                the adaptive solver allow. Calibration series are held to 1 / 2.5 of it.
            batch_size: series that are solved at a time.
        """
        check_plannable(model)
        if not 0 < coverage <= 1:
            raise ValueError(f"coverage is {coverage}; give a share above 0 and up to 1, such as 0.99")
        check_above_zero("within", within, "give how many tolerances states may be off, such as 10")
        if not len(data):
            raise ValueError("there are no calibration series; give some that look like those to be predicted")
        options: SolverOptions = model.options
        with torch.no_grad():
            solved = [_solve(model, batch) for batch in _batches(model, data, batch_size)]
            trials = _Trials(solved, model.views, coverage, within / ROOM, options)
            for rounds in range(MOST_ROUNDS):
                if rounds >= ROUNDS and trials.held():
                    break
                trials.try_next()
        plans, covered = trials.best()
        ends, limits = (tuple(getattr(plan, name) for plan in plans) for name in ("ends", "limit"))
        how = (options.solver, options.rtol, options.atol)
        return cls(ends, limits, *how, coverage, covered, trials.series)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"ends": [list(ends) for ends in self.ends], "limits": list(self.limits)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> "StepPlan":
        """The plan of `as_dict`."""
        ends = tuple(tuple(float(end) for end in view) for view in entry["ends"])
        limits = tuple(float(limit) for limit in entry["limits"])
        numbers = {name: float(entry[name]) for name in ("rtol", "atol", "coverage", "covered")}
        return cls(ends=ends, limits=limits, solver=str(entry["solver"]), series=int(entry["series"]), **numbers)


def check_plannable(model: Any) -> None:
    """Refuse a model that cannot follow a plan, with the reason."""
    reason = model.why_no_plan() if hasattr(model, "why_no_plan") else f"{type(model).__name__} is no model of series"
    if reason is not None:
        raise ValueError(f"a frozen step plan cannot serve this model: {reason}; use the adaptive solver")


def kinked(path: Any, options: SolverOptions) -> np.ndarray:
    """Which rows have points that a solver should end steps on, which no plan knows."""
    if options.knots == "step_over" or not path.knots.shape[1]:
        return np.zeros(path.rows, dtype=bool)
    return path.knots.isfinite().any(dim=1).cpu().numpy()


class _Solved(NamedTuple):
    """A batch as the adaptive solver leaves it: its steps, and the states of a much finer solve."""

    begun: Any
    state: Tensor
    steps: list[np.ndarray]  # shares of the row's window
    usable: np.ndarray


def _batches(model: Any, data: SeriesSet | SeriesBatch, size: int) -> Iterator[SeriesBatch]:
    if isinstance(data, SeriesBatch):
        yield data
        return
    like = next(p for p in model.parameters() if p.is_floating_point())
    for begin in range(0, len(data), size):
        yield data.batch(np.arange(begin, min(begin + size, len(data))), device=like.device, dtype=like.dtype)


def _solve(model: Any, batch: SeriesBatch) -> _Solved:
    begun = model.begin(batch)
    options: dict[str, Any] = asdict(model.options) | {"step_control": "row"}
    path = begun.path
    least = 8 * torch.finfo(begun.z0.dtype).eps
    fine = {name: max(options[name] / FINER, least) for name in ("rtol", "atol")}
    solution, reference = (
        integrate(begun.term, begun.z0, path.start, path.end, views=model.views, throw=False, **chosen)
        for chosen in (options, options | fine)
    )
    start, window = (bound.cpu().numpy() for bound in (path.start, path.end - path.start))
    shares = [(t - s) / (w if w > 0 else 1.0) for t, s, w in zip(solution.steps, start, window, strict=True)]
    finished = (solution.codes == 0) & (reference.codes == 0)
    return _Solved(begun, reference.state, shares, finished & ~kinked(path, model.options))


class _Held(NamedTuple):
    """A plan of one view, and which series it holds for."""

    ends: tuple[float, ...]
    limit: float
    holds: np.ndarray

    @property
    def share(self) -> float:
        """Of the series that it holds for."""
        return float(self.holds.mean())


class _Trials:
    """Plans that were tried, view by view: the views of a series never meet inside a solve."""

    def __init__(self, solved: list[_Solved], views: int, coverage: float, close: float, options: SolverOptions):
        self.solved, self.views, self.coverage, self.close, self.options = solved, views, coverage, close, options
        # By view, then by series, over all batches.
        self.usable = np.concatenate([s.usable.reshape(views, -1) for s in solved], axis=1)
        self.series = self.usable.shape[1]
        steps: list[list[np.ndarray]] = [[] for _ in range(views)]
        for batch in solved:
            for row, shares in enumerate(batch.steps):
                if batch.usable[row] and shares[-1] > 0:
                    steps[row * views // len(batch.steps)].append(shares)
        order = TABLEAUS[options.solver].order
        self.densities = [Densities(of_view, coverage, order) for of_view in steps]
        self.tried: list[list[_Held]] = [[] for _ in range(views)]
        # If each view holds for all but its part of what may fail, all views together hold for the share asked for.
        self.needed = 1 - (1 - coverage) / views

    def try_next(self) -> None:
        """Follow the present plan of every view, judge it, and go on to the next."""
        ends = tuple(density.ends() for density in self.densities)
        if max(map(len, ends)) > MOST_STEPS:
            return
        schedule = Schedule(ends, TABLEAUS[self.options.solver])
        tolerances = (self.options.rtol, self.options.atol)
        ratios, apart = [], []
        for batch in self.solved:
            begun = batch.begun
            followed = follow(schedule, begun.term, begun.z0, tolerances)
            ratios.append(followed.ratios.unflatten(0, (self.views, -1)).double().cpu().numpy())
            apart.append(distance(followed.state, batch.state, tolerances).reshape(self.views, -1))
        errors = np.nan_to_num(np.concatenate(ratios, axis=1), nan=1e6, posinf=1e6)
        off = np.concatenate(apart, axis=1)
        for view, of_view in enumerate(ends):
            worst = errors[view].max(axis=1)
            holds = (worst <= 1) & (off[view] <= self.close) & self.usable[view]
            plan = _Held(of_view, _limit(worst[holds]), holds)
            self.tried[view].append(plan)
            of_interest = errors[view][self.usable[view], : len(of_view)]
            self.densities[view].move(of_view, of_interest, plan.share >= self.needed - 1e-12)

    def held(self) -> bool:
        """Whether there are plans that together hold for the share asked for."""
        return self._covered(self._chosen()) >= self.coverage - 1e-12

    def _chosen(self) -> list[_Held]:
        """The shortest plan of each view that fails for no more than its part; where a view has none, the one that
        fails for fewest.
        """
        chosen = []
        for plans in filter(None, self.tried):
            least = min(self.needed, max(plan.share for plan in plans)) - 1e-12
            chosen.append(min((plan for plan in plans if plan.share >= least), key=lambda plan: len(plan.ends)))
        return chosen

    def _covered(self, plans: list[_Held]) -> float:
        """The share of the series that all views' plans hold for: what is hard in one is often hard in all."""
        if len(plans) < self.views:
            return 0.0
        return float(np.stack([plan.holds for plan in plans]).all(axis=0).mean())

    def best(self) -> tuple[list[_Held], float]:
        """A plan for each view, and the share of the series that they hold for together."""
        plans = self._chosen()
        covered = self._covered(plans)
        if self.held():
            return plans, covered
        kinks = 1 - float(self.usable.all(axis=0).mean())
        because = f" ({kinks:.0%} of the series have kinks or gaps that steps must end on)" if kinks else ""
        raise ValueError(
            f"no plan was found that holds for {self.coverage:.1%} of the {self.series} calibration series; the best "
            f"holds for {covered:.1%} of them in all views{because}. Lower `coverage`, raise `within`, give a larger "
            "bandwidth or a looser tolerance, or stay with the adaptive solver"
        )


def _limit(worst: np.ndarray) -> float:
    """The largest error estimate inside the plan.

    A method of order 5 underestimates the errors of long steps: on UWaveGestureLibrary states are ten tolerances off
    where estimates are a tenth to a third of the tolerance. But the estimates rank the series right (correlation 0.8 to
    0.97 with the true error), so what exceeds all that calibration has vouched for is suspect.
    """
    largest = float(worst.max(initial=0.0))
    return 1.0 if largest == 0 else min(1.0, SLACK * largest)


def distance(found: Tensor, expected: Tensor, tolerances: tuple[float, float]) -> np.ndarray:
    """The largest difference of two states of each row, in units of atol + rtol |z|."""
    rtol, atol = tolerances
    difference = (found - expected).abs() / (atol + rtol * expected.abs())
    return np.nan_to_num(difference.amax(dim=1).double().cpu().numpy(), nan=np.inf)
