"""What every neural CDE model is: paths, an initial state, a solve, a readout."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.models.fields import Activation, TanhField
from smoothcde.paths import JoinedPath, Path, TimePath
from smoothcde.series import SeriesBatch
from smoothcde.solve import ControlTerm, Solution, SolverOptions, integrate


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything a model has to say about a batch.

    Attributes:
        outputs: `[n, outputs]`, or `[n, moments, outputs]` at requested times.
        solution: states, counts and steps; rows are view-major.
        path: what drove the solve.
        attention: weight of each stamp in each view, for models that have it.
        penalty: what the model asks to be added to a training loss; 0 unless a regulariser is on.
    """

    outputs: Float[Tensor, "n *moments outputs"]
    solution: Solution
    path: Path
    attention: Float[Tensor, "n views length"] | None
    penalty: Float[Tensor, ""]


class CDEModel(nn.Module, ABC):
    """z(start) = W X(start) + b, dz = f(z) dX, outputs = readout of z(end).

    Subclasses say how a batch becomes paths. Views share the initial layer, have a field each, and are read out
    together; static features join at the readout.
    """

    def __init__(
        self,
        *,
        views: int,
        path_channels: int,
        outputs: int,
        hidden: int = 128,
        width: int = 128,
        activation: Activation = "tanh",
        static: int = 0,
        time_scale: float = 1.0,
        time_channel: bool = False,
        options: SolverOptions | None = None,
    ):
        super().__init__()
        if not time_scale > 0:
            raise ValueError(f"time_scale is {time_scale}; give the longest span of the training series")
        self.views, self.hidden = views, hidden
        self.time_scale, self.time_channel = float(time_scale), time_channel
        self.options = options or SolverOptions()
        channels = path_channels + time_channel
        self.initial = nn.Linear(channels, hidden)
        self.field = TanhField(views, hidden, channels, width, activation)
        self.readout = nn.Linear(views * hidden + static, outputs)
        self.static = static

    @abstractmethod
    def smooth(self, batch: SeriesBatch) -> tuple[Path, Tensor | None, Tensor]:
        """The control paths of a batch (view-major), attention if there is any, and a penalty."""

    def forward(self, batch: SeriesBatch) -> Float[Tensor, "n outputs"]:
        """Outputs at the end of each series' window."""
        return self.solve(batch).outputs

    def solve(self, batch: SeriesBatch, times: Any = None, options: SolverOptions | None = None) -> Outcome:
        """Outputs, and how they came about.

        Args:
            batch: the series.
            times: moments since each series' start, `[moments]` or `[n, moments]`; outputs are then given at these
                instead of at the end. A smoothed path at such a moment has seen the whole window: for forecasts that
                know only the past, end the window there (`SeriesSet.with_window`).
            options: other solver options than the model's own, for this call.
        """
        path, attention, penalty = self.smooth(batch)
        if self.time_channel:
            path = JoinedPath.of(path, TimePath.beside(path, self.time_scale))
        z0 = self.initial(path.evaluate(path.start))
        moments = None if times is None else self._moments(times, path, len(batch))
        solution = integrate(
            ControlTerm(self.field, path),
            z0,
            path.start,
            path.end,
            times=moments,
            views=self.views,
            **asdict(options or self.options),
        )
        states = solution.state if solution.states is None else solution.states
        return Outcome(self._read(states, batch), solution, path, attention, penalty)

    def _moments(self, times: Any, path: Path, n: int) -> Tensor:
        moments = torch.as_tensor(times, dtype=torch.float64, device=path.device)
        if moments.ndim not in (1, 2) or (moments.ndim == 2 and len(moments) != n):
            raise ValueError(f"times have shape {tuple(moments.shape)}; give [moments], or [n, moments] with n = {n}")
        moments = moments.expand(n, -1) if moments.ndim == 1 else moments
        return path.clock(moments.repeat(self.views, 1))

    def _read(self, states: Tensor, batch: SeriesBatch) -> Tensor:
        """Concatenate the views of a series, and its static features, for the readout."""
        together = torch.cat(states.unflatten(0, (self.views, len(batch))).unbind(), dim=-1)
        if self.static:
            if batch.static is None or batch.static.shape[1] != self.static:
                found = 0 if batch.static is None else batch.static.shape[1]
                raise ValueError(f"this model was built for {self.static} static features; the batch has {found}")
            features = batch.static if together.ndim == 2 else batch.static[:, None].expand(-1, together.shape[1], -1)
            together = torch.cat([together, features], dim=-1)
        return self.readout(together)


def check_channels(batch: SeriesBatch, channels: int) -> None:
    """Refuse a batch the model was not built for."""
    if batch.channels != channels:
        raise ValueError(f"this model was built for {channels} channels; the batch has {batch.channels}")
