"""Reversible instance normalisation: each series on its own scale, forecasts back on the original one."""

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.series import SeriesBatch


class InstanceScale(NamedTuple):
    """Mean and standard deviation of each series' observations, channel by channel."""

    mean: Float[Tensor, "n 1 channels"]
    spread: Float[Tensor, "n 1 channels"]


class RevIN(nn.Module):
    """RevIN (Kim et al., "Reversible instance normalization for accurate time-series forecasting", 2022).

    Statistics are over what was observed in the window, so a forecast never sees beyond it; a channel without
    observations keeps mean 0 and spread 1. Scale and shift per channel are learnt, and undone by `denormalise`.
    """

    def __init__(self, channels: int, epsilon: float = 1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.scale = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def normalise(self, batch: SeriesBatch) -> tuple[SeriesBatch, InstanceScale]:
        """The batch with every series on its own scale, and that scale."""
        mask = batch.mask.to(batch.dtype)
        count = mask.sum(dim=1, keepdim=True)
        mean = (batch.values * mask).sum(dim=1, keepdim=True) / count.clamp(min=1)
        variance = (((batch.values - mean) * mask) ** 2).sum(dim=1, keepdim=True) / count.clamp(min=1)
        spread = torch.where(count > 0, (variance + self.epsilon).sqrt(), torch.ones_like(variance))
        values = ((batch.values - mean) / spread * self.scale + self.shift) * mask
        return replace(batch, values=values), InstanceScale(mean, spread)

    def denormalise(
        self, forecast: Float[Tensor, "n horizon channels"], scale: InstanceScale
    ) -> Float[Tensor, "n horizon channels"]:
        """Forecasts in the units of the series."""
        return (forecast - self.shift) / (self.scale + self.epsilon**2) * scale.spread + scale.mean
