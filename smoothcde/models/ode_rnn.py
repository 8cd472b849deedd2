"""ODE-RNN: a recurrent state that follows an ordinary differential equation between observations."""

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from smoothcde.models.base import Outcome, SeriesModel
from smoothcde.series import SeriesBatch
from smoothcde.solve import ODETerm, SolverOptions, integrate


class StateDerivative(nn.Module):
    """dh/dt = W2 tanh(W1 h + b1) + b2, with an output layer that starts at zero: at first the state stands still."""

    def __init__(self, hidden: int, width: int):
        super().__init__()
        self.inner, self.outer = nn.Linear(hidden, width), nn.Linear(width, hidden)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, t: Tensor, h: Tensor) -> Tensor:
        """The derivative; it does not depend on t."""
        return self.outer(torch.tanh(self.inner(h)))


class ODERNN(SeriesModel):
    """ODE-RNN (Rubanova, Chen and Duvenaud, "Latent ODEs for irregularly-sampled time series", 2019).

    Between two stamps of a series its state is integrated adaptively over its own gap, in units of the time scale; at a
    stamp where anything was observed a GRU cell takes in the values and the mask. One solve per stamp makes it slow.

    Args:
        channels: of the series.
        outputs: of the readout.
        hidden: units.
        width: of the derivative's hidden layer.
        settings: `static`, `time_scale`, `options`, see `SeriesModel`.
    """

    def __init__(self, *, channels: int, outputs: int, hidden: int = 128, width: int = 128, **settings: Any):
        super().__init__(channels=channels, **settings)
        self.hidden = hidden
        self.cell = nn.GRUCell(2 * channels, hidden)
        self.derivative = StateDerivative(hidden, width)
        self.readout = nn.Linear(hidden + self.static, outputs)

    def solve(self, batch: SeriesBatch, times: Any = None, options: SolverOptions | None = None) -> Outcome:
        """Outputs at the end of the window, or at each requested moment; `nfe` adds up all gaps of a series."""
        self.check(batch)
        nfe = np.zeros(len(batch), dtype=np.int64)
        h = batch.values.new_zeros(len(batch), self.hidden)
        inputs = torch.cat([batch.values, batch.mask.to(batch.dtype)], dim=2)
        observed, now = batch.observed, batch.start
        after, stamps = [h], [batch.start]
        for stamp in range(batch.values.shape[1]):
            then = torch.where(batch.stamped[:, stamp], batch.times[:, stamp], now)
            h = self._drift(h, then - now, nfe, options)
            h = torch.where(observed[:, stamp, None], self.cell(inputs[:, stamp], h), h)
            now = then
            after.append(h)
            stamps.append(torch.where(batch.stamped[:, stamp], then, torch.inf))
        if times is None:
            state = self._drift(h, batch.end - now, nfe, options)
        else:
            # Past the end of its window a state stands still, as in every other model.
            moments = self.moments(times, batch).minimum(batch.end[:, None])
            state = self._at(moments, torch.stack(after, 1), torch.stack(stamps, 1), nfe, options)
        outputs = self.read(state, batch)
        return Outcome(outputs, outputs.new_zeros(()), nfe)

    def _drift(self, h: Tensor, gap: Tensor, nfe: np.ndarray, options: SolverOptions | None) -> Tensor:
        """The state a gap later; evaluations are added to `nfe`."""
        how = asdict(options or self.options)
        with torch.autocast(h.device.type, enabled=False):  # a solver would see the rounding of mixed precision
            solution = integrate(ODETerm(self.derivative, autonomous=True), h, 0.0, gap / self.time_scale, **how)
        np.add(nfe, solution.stats.nfe, out=nfe)
        return solution.state

    def _at(self, moments: Tensor, after: Tensor, stamps: Tensor, nfe: np.ndarray, options) -> Tensor:
        """States at requested moments: that after the last stamp before it, drifted on."""
        place = torch.searchsorted(stamps, moments.contiguous(), right=True) - 1
        place = place.clamp(min=0)
        h = after.gather(1, place[:, :, None].expand(-1, -1, self.hidden))
        gap = (moments - stamps.gather(1, place)).clamp(min=0.0)
        each = np.zeros(gap.numel(), dtype=np.int64)
        states = self._drift(h.flatten(0, 1), gap.flatten(), each, options).view_as(h)
        np.add(nfe, each.reshape(gap.shape).sum(axis=1), out=nfe)
        return states
