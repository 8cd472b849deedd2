"""Mamba, a selective state-space model, over the stamps (through mambapy)."""

from collections.abc import Callable
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.models.attention import EncoderInputs, context_width, encoder_features
from smoothcde.models.recurrent import RecurrentModel
from smoothcde.models.selective_scan import selective_scan
from smoothcde.series import SeriesBatch


class MambaModel(RecurrentModel):
    """Mamba (Gu and Dao, 2024) in plain PyTorch; needs the extra `smoothcde[mamba]`.

    Its recurrence is the parallel scan of mambapy on a GPU and `selective_scan` elsewhere, where that is faster.

    Args:
        channels: of the series.
        outputs: of the readout.
        hidden: width of the residual stream.
        layers: blocks.
        state: numbers of state per channel of a block.
        expand: inner width over outer width.
        encoder_inputs: "values+mask+gap" tells it what was observed and when, "values" does not.
        settings: `static`, `time_scale`, see `SeriesModel`.
    """

    def __init__(
        self,
        *,
        channels: int,
        outputs: int,
        hidden: int = 128,
        layers: int = 2,
        state: int = 16,
        expand: int = 2,
        encoder_inputs: EncoderInputs = "values+mask+gap",
        **settings: Any,
    ):
        super().__init__(channels=channels, **settings)
        try:
            from mambapy.mamba import Mamba, MambaBlock, MambaConfig
        except ImportError as error:
            remedy = 'install it with: pip install "smoothcde[mamba]"'
            raise ImportError(f"model 'mamba' needs the package mambapy; {remedy}") from error
        self.encoder_inputs: EncoderInputs = encoder_inputs
        self.embed = nn.Linear(context_width(channels, encoder_inputs), hidden)
        config = MambaConfig(d_model=hidden, n_layers=layers, d_state=state, expand_factor=expand, pscan=True)
        self.blocks = Mamba(config)
        for block in self.blocks.modules():
            if isinstance(block, MambaBlock):
                block.selective_scan = partial(_scan, block.selective_scan)  # type: ignore[method-assign]
        self.readout = nn.Linear(hidden + self.static, outputs)

    def states(self, batch: SeriesBatch) -> Float[Tensor, "n length hidden"]:
        """After each stamp; every block looks back only."""
        return self.blocks(self.embed(encoder_features(batch, self.encoder_inputs, self.time_scale, causal=True)))


def _scan(parallel: Callable[..., Tensor], inputs: Tensor, *rest: Tensor) -> Tensor:
    return parallel(inputs, *rest) if inputs.is_cuda else selective_scan(inputs, *rest)
