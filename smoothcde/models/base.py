"""What every model is: a batch of series in, an `Outcome` out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.checks import check_above_zero
from smoothcde.paths import Path
from smoothcde.series import SeriesBatch
from smoothcde.series.problems import counted
from smoothcde.solve import Solution, SolverOptions


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything a model has to say about a batch.

    Attributes:
        outputs: `[n, outputs]`, or `[n, moments, outputs]` at requested times.
        penalty: what the model asks to be added to a training loss; 0 unless a regulariser is on.
        nfe: evaluations per row, zero for models without a solver.
        solution: states, counts and steps of models that solve once; rows are view-major.
        path: what drove that solve.
        attention: weight of each stamp in each view, for models that have it.
    """

    outputs: Float[Tensor, "n *moments outputs"]
    penalty: Float[Tensor, ""]
    nfe: np.ndarray
    solution: Solution | None = None
    path: Path | None = None
    attention: Float[Tensor, "n views length"] | None = None


def full_precision(batch: SeriesBatch) -> torch.autocast:
    """Where mixed precision is off: an adaptive solver would see the rounding of bfloat16 as error and step shorter."""
    return torch.autocast(batch.device.type, enabled=False)


class SeriesModel(nn.Module, ABC):
    """A model of series: states per series, and a readout that static features join.

    Subclasses make `readout` themselves, a linear layer of their state's features and the static ones.

    Args:
        channels: of the series.
        static: static features that join the state at the readout.
        time_scale: the unit of time: the longest span of the training series.
        options: how to integrate, for models that do.
    """

    readout: nn.Linear

    def __init__(
        self,
        *,
        channels: int,
        static: int = 0,
        time_scale: float = 1.0,
        options: SolverOptions | None = None,
    ):
        super().__init__()
        check_above_zero("time_scale", time_scale, "give the longest span of the training series")
        self.channels, self.static, self.time_scale = channels, static, float(time_scale)
        self.options = options or SolverOptions()

    @abstractmethod
    def solve(self, batch: SeriesBatch, times: Any = None, options: SolverOptions | None = None) -> Outcome:
        """Outputs, and how they came about.

        Args:
            batch: the series.
            times: moments since each series' start, `[moments]` or `[n, moments]`; outputs are then given at these
                instead of at the end.
            options: other solver options than the model's own, for this call.
        """

    def forward(self, batch: SeriesBatch) -> Float[Tensor, "n outputs"]:
        """Outputs at the end of each series' window."""
        return self.solve(batch).outputs

    def why_no_plan(self) -> str | None:
        """Why a frozen step plan (`StepPlan`) cannot serve this model, or None if it can."""
        return f"{type(self).__name__} does not integrate along one smooth path"

    def check(self, batch: SeriesBatch) -> None:
        """Refuse a batch the model was not built for."""
        if batch.channels != self.channels:
            raise ValueError(
                f"this model was built for {counted(self.channels, 'channel')}; the batch has {batch.channels}"
            )
        found = 0 if batch.static is None else batch.static.shape[1]
        if self.static and found != self.static:
            raise ValueError(
                f"this model was built for {counted(self.static, 'static feature')}; the batch has {found}"
            )

    def moments(self, times: Any, batch: SeriesBatch) -> Float[Tensor, "n moments"]:
        """Requested moments, checked, one row per series."""
        moments = torch.as_tensor(times, dtype=torch.float64, device=batch.device)
        n = len(batch)
        if moments.ndim not in (1, 2) or (moments.ndim == 2 and len(moments) != n):
            raise ValueError(f"times have shape {tuple(moments.shape)}; give [moments], or [n, moments] with n = {n}")
        if moments.isnan().any():
            raise ValueError("times hold NaN; give every requested moment a number")
        return moments.expand(n, -1) if moments.ndim == 1 else moments

    def series_of(self, rows: np.ndarray, n: int) -> np.ndarray:
        """Which of `n` series the rows of a solve belong to."""
        return rows % n

    def read(self, state: Float[Tensor, "n *moments features"], batch: SeriesBatch) -> Tensor:
        """The readout of a state and the series' static features."""
        if self.static:
            static = cast(Tensor, batch.static)  # `check` has seen it
            static = static if state.ndim == 2 else static[:, None].expand(-1, state.shape[1], -1)
            state = torch.cat([state, static], dim=-1)
        return self.readout(state)
