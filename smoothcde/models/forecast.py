"""`ForecastModel`: any model of series as the encoder of a forecast, each window on its own scale."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.checks import check_known
from smoothcde.models.base import Outcome, SeriesModel
from smoothcde.models.build import MODELS, build_model
from smoothcde.models.forecast_inputs import carried_on, channel_by_channel, with_phases
from smoothcde.models.linear_forecaster import LinearForecaster
from smoothcde.models.revin import InstanceScale, RevIN
from smoothcde.paths import fill_forward
from smoothcde.series import SeriesBatch
from smoothcde.solve import SolverOptions

BASELINES = ("linear-forecast", "last-value")
FORECASTERS = (*MODELS, *BASELINES)
"""Names that `build_forecaster` takes."""


class ForecastModel(SeriesModel):
    """RevIN -> an encoder whose linear readout gives the whole horizon -> RevIN undone (the paper's section 4.4).

    Outputs are `[n, levels * horizon * channels]`: level by level, in each the channels of the first step first. With
    several levels they are quantiles, which never cross: the middle one is a forecast, and its neighbours are a
    positive distance away, in units of the window's own spread.

    Args:
        encoder: of `levels * horizon` outputs per channel it reads.
        channels: of the series.
        horizon: steps to forecast.
        levels: quantiles, an odd number with the median in the middle; 1 for a plain forecast.
        independent: whether the encoder reads each channel as a series of its own, with the same weights.
        periods: lengths of cycles, such as a day, whose phase the encoder is told at every stamp, by two channels each.
        carry: time between the stamps at which a channel that fell silent keeps its last value up to the window's end,
            see `carried_on`; None to leave it to the encoder what silence means.
    """

    def __init__(
        self,
        encoder: SeriesModel,
        *,
        channels: int,
        horizon: int,
        levels: int = 1,
        independent: bool = False,
        periods: Sequence[float] = (),
        carry: float | None = None,
    ):
        super().__init__(channels=channels, time_scale=encoder.time_scale, options=encoder.options)
        self.encoder, self.revin = encoder, RevIN(channels)
        self.horizon, self.levels, self.independent = horizon, levels, independent
        self.periods, self.carry = tuple(float(p) for p in periods), carry

    def solve(self, batch: SeriesBatch, times: Any = None, options: SolverOptions | None = None) -> Outcome:
        """The forecast of each window, and how the encoder came to it (in the window's own scale)."""
        if times is not None:
            raise ValueError("a forecaster has no outputs at requested times; it forecasts its horizon")
        self.check(batch)
        normal, scale = self.revin.normalise(batch)
        known = normal if self.carry is None else carried_on(normal, self.carry)
        inputs = channel_by_channel(known) if self.independent else known
        outcome = self.encoder.solve(with_phases(inputs, self.periods), options=options)
        raw = outcome.outputs.to(batch.dtype)
        if self.independent:
            raw = raw.unflatten(0, (len(batch), self.channels)).mT
        forecast = raw.reshape(len(batch), self.levels, self.horizon, self.channels)
        attention = outcome.attention
        if self.independent:
            attention = None  # channels read one by one are not the batch's series
        elif attention is not None:
            attention = attention[:, :, : batch.values.shape[1]] * batch.stamped[:, None]
        return replace(outcome, outputs=self._denormalised(forecast, scale).flatten(1), attention=attention)

    def series_of(self, rows: np.ndarray, n: int) -> np.ndarray:
        """See `SeriesModel.series_of`: the encoder may have a row per channel."""
        if self.independent:
            return rows % (n * self.channels) // self.channels
        return super().series_of(rows, n)

    def views(self, batch: SeriesBatch, outcome: Outcome, moments: Tensor) -> Float[Tensor, "views n moments channels"]:
        """The encoder's paths at moments since each window's start, in the units of the batch."""
        if outcome.path is None:
            raise ValueError("this forecaster's encoder has no path; 'mvc-gp' has")
        _, scale = self.revin.normalise(batch)
        path, n = outcome.path, len(batch)
        values = path.evaluate(path.clock(moments.to(path.device).expand(path.rows, -1)))
        if self.independent:
            values = values[..., 0].unflatten(0, (-1, n, self.channels)).mT
        else:
            values = values[..., : self.channels].unflatten(0, (-1, n))
        return torch.stack([self.revin.denormalise(view.to(batch.dtype), scale) for view in values])

    def _denormalised(
        self, raw: Float[Tensor, "n levels horizon channels"], scale: InstanceScale
    ) -> Float[Tensor, "n levels horizon channels"]:
        middle = self.levels // 2
        centre = self.revin.denormalise(raw[:, middle], scale)[:, None]
        # Distances know nothing of RevIN's learnt scale: were it to turn negative, quantiles would cross.
        distance = nn.functional.softplus(raw) * scale.spread[:, None]
        below = centre - distance[:, :middle].flip(1).cumsum(dim=1).flip(1)
        return torch.cat([below, centre, centre + distance[:, middle + 1 :].cumsum(dim=1)], dim=1)


class LastValue(SeriesModel):
    """Each channel's last observation, carried on over the horizon: nothing to learn. Zero where there is none."""

    def __init__(self, *, channels: int, horizon: int, time_scale: float = 1.0):
        super().__init__(channels=channels, time_scale=time_scale)
        self.horizon = horizon

    def solve(self, batch: SeriesBatch, times: Any = None, options: SolverOptions | None = None) -> Outcome:
        """The last observation, `horizon` times."""
        self.check(batch)
        last = (batch.lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, batch.channels)
        values = fill_forward(batch).gather(1, last)
        outputs = values.expand(-1, self.horizon, -1).flatten(1).to(batch.dtype)
        return Outcome(outputs, outputs.new_zeros(()), np.zeros(len(batch), dtype=np.int64))


def build_forecaster(
    name: str,
    *,
    channels: int,
    horizon: int,
    context: int,
    time_scale: float,
    levels: int = 1,
    independent: bool = False,
    periods: Sequence[float] = (),
    carry: float | None = None,
    **settings: Any,
) -> ForecastModel:
    """A forecaster by the name of its encoder.

    ```python
    model = build_forecaster("mvc-gp", channels=7, horizon=24, context=24, time_scale=23.0, bandwidths=(0.1, 0.4))
    ```

    Args:
        name: one of `MODELS`, or "linear-forecast" (see `LinearForecaster`) or "last-value".
        channels: of the series.
        horizon: steps to forecast.
        context: steps of a window, for the linear forecaster.
        time_scale: length of a window.
        levels: see `ForecastModel`.
        independent: likewise; the two baselines treat channels alike anyway.
        periods: likewise; the two baselines know nothing of time.
        carry: likewise; the two baselines carry last values on by themselves.
        settings: further ones, for `build_model`.
    """
    check_known("forecaster", name, FORECASTERS)
    if levels < 1 or levels % 2 == 0:
        raise ValueError(f"there are {levels} levels; give an odd number, with the median in the middle")
    sizes: dict[str, Any] = {"channels": channels, "time_scale": time_scale}
    encoder: SeriesModel
    if name == "last-value":
        if levels > 1:
            raise ValueError("'last-value' knows no quantiles; leave them out, or choose another model")
        encoder = LastValue(horizon=horizon, **sizes)
    elif name == "linear-forecast":
        trend = min(13, context - 1 + context % 2)
        encoder = LinearForecaster(horizon=levels * horizon, context=context, trend=trend, **sizes)
    else:
        read = 1 if independent else channels
        sizes["channels"] = read + 2 * len(periods)
        encoder = build_model(name, **sizes, outputs=levels * horizon * read, **settings)
    kind: dict[str, Any] = {"levels": levels}
    if name not in BASELINES:
        kind |= {"independent": independent, "periods": periods, "carry": carry}
    return ForecastModel(encoder, channels=channels, horizon=horizon, **kind)
