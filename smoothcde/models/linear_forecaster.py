"""A linear map from past to future, in the manner of DLinear: what any forecaster has to beat."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.models.base import Outcome, SeriesModel
from smoothcde.paths import LinearPath
from smoothcde.series import SeriesBatch
from smoothcde.solve import SolverOptions


class LinearForecaster(SeriesModel):
    """Trend and remainder, each mapped linearly to the horizon, the same for every channel.

    Zeng et al., "Are transformers effective for time series forecasting?", 2023. The window is read at `context`
    equally spaced moments of its linear interpolation, so irregular stamps are fine. Outputs are
    `[n, horizon * channels]`, the channels of the first step first.

    Args:
        channels: of the series.
        horizon: steps to forecast.
        context: moments the window is read at.
        trend: width of the moving average that makes the trend, in moments.
        time_scale: see `SeriesModel`.
    """

    def __init__(self, *, channels: int, horizon: int, context: int = 24, trend: int = 13, time_scale: float = 1.0):
        super().__init__(channels=channels, time_scale=time_scale)
        if trend % 2 == 0 or trend < 1:
            raise ValueError(f"trend is {trend}; a centred moving average needs an odd width")
        self.context, self.trend = context, trend
        self.readout, self.trend_readout = nn.Linear(context, horizon), nn.Linear(context, horizon)

    def solve(self, batch: SeriesBatch, times: Any = None, options: SolverOptions | None = None) -> Outcome:
        """The forecast; moments other than the horizon's are not its business."""
        if times is not None:
            raise ValueError("a linear forecaster has no outputs at requested times; it forecasts its horizon")
        self.check(batch)
        share = torch.linspace(0, 1, self.context, dtype=torch.float64, device=batch.device)
        values = LinearPath.fit(batch).evaluate(share * batch.end[:, None]).mT  # [n, channels, context]
        trend = moving_average(values, self.trend)
        forecast = self.readout(values - trend) + self.trend_readout(trend)
        outputs = forecast.mT.flatten(1)
        return Outcome(outputs, outputs.new_zeros(()), np.zeros(len(batch), dtype=np.int64))


def moving_average(values: Float[Tensor, "n channels length"], width: int) -> Float[Tensor, "n channels length"]:
    """A centred mean over `width` moments, both ends continued with their last value."""
    side = (width - 1) // 2
    return nn.functional.avg_pool1d(nn.functional.pad(values, (side, side), mode="replicate"), width, stride=1)
