"""GRU-D: a gated recurrent unit whose inputs and state decay while nothing is observed."""

import math
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from smoothcde.models.recurrent import RecurrentModel
from smoothcde.paths.missing import previous_observed
from smoothcde.series import SeriesBatch


class GRUDModel(RecurrentModel):
    """GRU-D (Che et al., "Recurrent neural networks for multivariate time series with missing values", 2018).

    With m the mask, d the time since a channel's last observation x' (in units of the time scale) and the channel's
    mean taken to be 0, as after standardisation:

        decay_x = exp(-max(0, w d + b))         per channel      x_hat = m x + (1 - m) decay_x x'
        decay_h = exp(-max(0, W d + b))         per unit         h <- decay_h h
        r, u = sigmoid(W x_hat + U h + V m + b)                  c = tanh(W x_hat + U (r h) + V m + b)
        h <- (1 - u) h + u c

    The decays start at 1 (weights and biases zero), so that no signal vanishes at the start of training.

    Args:
        channels: of the series.
        outputs: of the readout.
        hidden: units.
        settings: `static`, `time_scale`, see `SeriesModel`.
    """

    def __init__(self, *, channels: int, outputs: int, hidden: int = 128, **settings: Any):
        super().__init__(channels=channels, **settings)
        self.hidden = hidden
        self.input_decay_weight = nn.Parameter(torch.zeros(channels))
        self.input_decay_bias = nn.Parameter(torch.zeros(channels))
        self.state_decay = nn.Linear(channels, hidden)
        nn.init.zeros_(self.state_decay.weight)
        nn.init.zeros_(self.state_decay.bias)
        self.from_input = nn.Linear(2 * channels, 3 * hidden)  # W and V side by side, for reset, update and candidate
        bound = 1 / math.sqrt(hidden)
        self.to_gates = nn.Parameter(torch.empty(hidden, 2 * hidden).uniform_(-bound, bound))
        self.to_candidate = nn.Parameter(torch.empty(hidden, hidden).uniform_(-bound, bound))
        self.readout = nn.Linear(hidden + self.static, outputs)

    def states(self, batch: SeriesBatch) -> Float[Tensor, "n length hidden"]:
        """After each stamp."""
        mask = batch.mask.to(batch.dtype)
        last, since = last_observation(batch)
        since = (since / self.time_scale).to(batch.dtype)
        decay = _decay(self.input_decay_weight * since + self.input_decay_bias)
        values = mask * batch.values + (1 - mask) * decay * last
        pushes = self.from_input(torch.cat([values, mask], dim=2))
        fades = _decay(self.state_decay(since))
        h = batch.values.new_zeros(len(batch), self.hidden)
        states = []
        for push, fade in zip(pushes.unbind(1), fades.unbind(1), strict=True):
            h = fade * h
            for_gates, for_candidate = push.split([2 * self.hidden, self.hidden], dim=1)
            reset, update = torch.sigmoid(torch.addmm(for_gates, h, self.to_gates)).chunk(2, dim=1)
            candidate = torch.tanh(torch.addmm(for_candidate, reset * h, self.to_candidate))
            h = h + update * (candidate - h)
            states.append(h)
        return torch.stack(states, dim=1)


def _decay(rate: Tensor) -> Tensor:
    # `relu` has no gradient at 0, where all rates start: they would stay there. `clamp` has.
    return torch.exp(-rate.clamp(min=0.0))


def last_observation(
    batch: SeriesBatch,
) -> tuple[Float[Tensor, "n length channels"], Float64[Tensor, "n length channels"]]:
    """Each channel's value observed last before each stamp, and the time since.

    A channel not observed yet has the value 0, and the time since the first stamp.
    """
    previous = previous_observed(batch.mask)
    before = torch.cat([torch.full_like(previous[:, :1], -1), previous[:, :-1]], dim=1)
    at = before.clamp(min=0)
    value = torch.where(before >= 0, batch.values.gather(1, at), 0.0)
    times = batch.times[:, :, None].expand(-1, -1, batch.channels)
    return value, times - times.gather(1, at)
