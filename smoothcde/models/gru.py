"""A gated recurrent unit over the stamps."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.models.attention import EncoderInputs, context_width, encoder_features
from smoothcde.models.recurrent import RecurrentModel
from smoothcde.series import SeriesBatch


class GRUModel(RecurrentModel):
    """The discrete baseline: a GRU over the stamps.

    Args:
        channels: of the series.
        outputs: of the readout.
        hidden: units.
        layers: GRUs on top of each other.
        encoder_inputs: "values" leaves it blind to time and to what is missing (it sees the last value carried on);
            "values+mask+gap" tells it both.
        settings: `static`, `time_scale`, see `SeriesModel`.
    """

    def __init__(
        self,
        *,
        channels: int,
        outputs: int,
        hidden: int = 128,
        layers: int = 1,
        encoder_inputs: EncoderInputs = "values+mask+gap",
        **settings: Any,
    ):
        super().__init__(channels=channels, **settings)
        self.encoder_inputs: EncoderInputs = encoder_inputs
        self.recurrence = nn.GRU(context_width(channels, encoder_inputs), hidden, layers, batch_first=True)
        self.readout = nn.Linear(hidden + self.static, outputs)

    def states(self, batch: SeriesBatch) -> Float[Tensor, "n length hidden"]:
        """After each stamp."""
        return self.recurrence(encoder_features(batch, self.encoder_inputs, self.time_scale, causal=True))[0]
