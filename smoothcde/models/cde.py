"""What every neural CDE model is: paths, an initial state, a solve, a readout."""

from abc import abstractmethod
from dataclasses import asdict
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.checks import check_above_zero
from smoothcde.models.base import Outcome, SeriesModel, full_precision
from smoothcde.models.fields import Activation, TanhField
from smoothcde.models.low_rank import LowRankField
from smoothcde.paths import IntegralPath, JoinedPath, Path, TimePath
from smoothcde.series import SeriesBatch
from smoothcde.solve import ControlTerm, SolverOptions, Term, integrate


class Beginning(NamedTuple):
    """Where a solve begins: what is integrated, from which states, along which paths, and what shaped these."""

    term: Term
    z0: Tensor
    path: Path
    attention: Tensor | None
    penalty: Tensor


class CDEModel(SeriesModel):
    """z(start) = W X(start) + b, dz = f(z) dX, outputs = readout of z(end).

    Subclasses say how a batch becomes paths. Views share the initial layer, have a field each, and are read out
    together; static features join at the readout.

    Args:
        views: of each series.
        channels: of the series.
        path_channels: of its paths, without time.
        outputs: of the readout.
        hidden: size of the state, per view.
        width: of the field's hidden layer.
        activation: of that layer.
        rank: of the field's matrix, for many channels (see `LowRankField`); None for a full one, as in the paper.
        static: see `SeriesModel`.
        time_scale: likewise.
        time_channel: append time to the paths.
        time_unit: of that channel, a fraction of `time_scale`: in a small one time is long, and a state may settle and
            forget many times over within a window, instead of moving only where the path does.
        integral_channels: append the running integral of every channel, so that dz = f(z) dX + g(z) X dt: the state is
            told where the path is beside where it goes. For short histories, as in forecasting.
        integral_unit: of those channels, a fraction of `time_scale`.
        options: how to integrate.
    """

    def __init__(
        self,
        *,
        views: int,
        channels: int,
        path_channels: int,
        outputs: int,
        hidden: int = 128,
        width: int = 128,
        activation: Activation = "tanh",
        rank: int | None = None,
        static: int = 0,
        time_scale: float = 1.0,
        time_channel: bool = False,
        time_unit: float = 1.0,
        integral_channels: bool = False,
        integral_unit: float = 0.3,
        options: SolverOptions | None = None,
    ):
        super().__init__(channels=channels, static=static, time_scale=time_scale, options=options)
        for name, unit in (("time_unit", time_unit), ("integral_unit", integral_unit)):
            check_above_zero(name, unit, "give a positive fraction of the time scale")
        self.views, self.hidden = views, hidden
        self.time_channel, self.time_unit = time_channel, time_unit
        self.integral_channels, self.integral_unit = integral_channels, integral_unit
        self.initial = nn.Linear(path_channels + time_channel, hidden)
        driving = path_channels * (1 + integral_channels) + time_channel
        sizes = (views, hidden, driving, width, activation)
        self.field = TanhField(*sizes) if rank is None else LowRankField(*sizes, rank)
        self.readout = nn.Linear(views * hidden + static, outputs)

    @abstractmethod
    def smooth(self, batch: SeriesBatch) -> tuple[Path, Tensor | None, Tensor]:
        """The control paths of a batch (view-major), attention if there is any, and a penalty."""

    def start_features(self, path: Path) -> Tensor:
        """What the initial state is made of: X at the start."""
        return path.evaluate(path.start)

    def term(self, path: Path) -> Term:
        """What is integrated along a path."""
        return ControlTerm(self.field, path)

    def begin(self, batch: SeriesBatch) -> Beginning:
        """Everything of a solve but the solve."""
        self.check(batch)
        return self.begin_along(batch, *self.smooth(batch))

    def begin_along(self, batch: SeriesBatch, path: Path, attention: Tensor | None, penalty: Tensor) -> Beginning:
        """The same with paths that are at hand, as `smooth` gives them."""
        with full_precision(batch):
            path, z0 = self.start(path)
        return Beginning(self.term(path), z0, path, attention, penalty)

    def start(self, path: Path) -> tuple[Path, Tensor]:
        """The path with the channels of time and integrals that it is to have, and the initial states."""
        timed = self._timed(path)
        z0 = self.initial(self.start_features(timed))
        if not self.integral_channels:
            return timed, z0
        return self._timed(IntegralPath.of(path, self.integral_unit * self.time_scale)), z0

    def _timed(self, path: Path) -> Path:
        if not self.time_channel:
            return path
        return JoinedPath.of(path, TimePath.beside(path, self.time_unit * self.time_scale))

    def solve(self, batch: SeriesBatch, times: Any = None, options: SolverOptions | None = None) -> Outcome:
        """Outputs, and how they came about.

        A smoothed path at a requested moment has seen the whole window: for forecasts that know only the past, end the
        window there (`SeriesSet.with_window`).

        Args:
            batch: the series.
            times: see `SeriesModel.solve`.
            options: likewise.
        """
        return self.finish(batch, self.begin(batch), times, options)

    def finish(
        self, batch: SeriesBatch, beginning: Beginning, times: Any = None, options: SolverOptions | None = None
    ) -> Outcome:
        """The solve from a beginning, and the readout; arguments as for `solve`."""
        term, z0, path, attention, penalty = beginning
        with full_precision(batch):
            moments = None if times is None else path.clock(self.moments(times, batch).repeat(self.views, 1))
            solution = integrate(
                term,
                z0,
                path.start,
                path.end,
                times=moments,
                views=self.views,
                **asdict(options or self.options),
            )
        states = solution.state if solution.states is None else solution.states
        return Outcome(self.read_views(states, batch), penalty, solution.stats.nfe, solution, path, attention)

    def read_views(self, states: Float[Tensor, "rows *moments hidden"], batch: SeriesBatch) -> Tensor:
        """The readout of all views' states, side by side."""
        return self.read(torch.cat(states.unflatten(0, (self.views, batch.values.shape[0])).unbind(), dim=-1), batch)


def kinks_of_kernel(kernel: str) -> str | None:
    """Why paths of this kernel cannot be followed by a plan, or None if they can."""
    if kernel in ("gaussian", "cauchy"):
        return None
    return f"a path of the {kernel} kernel has kinks at or around every stamp, and steps have to end on them"
