"""Models of one size, for comparisons that compare ideas and not parameter counts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from smoothcde.models import SeriesModel, build_model, matching_hidden, parameter_count

REFERENCE = "mvc-gp"
WITHOUT_WIDTH = ("gru-d", "gru", "mamba")
"""Models that have no field, hence no width of one."""


@dataclass(frozen=True)
class Lineup:
    """The models that take part in one comparison, each with as many parameters as mvc-gp.

    ```python
    lineup = Lineup(channels=3, outputs=20, time_scale=118.0, bandwidths=(1.4, 1.4, 1.4, 1.4))
    lineup.parameters, parameter_count(lineup.model("gru-d"))
    ```

    Attributes:
        channels: of the series.
        outputs: classes.
        time_scale: the longest span of the training series.
        bandwidths: of the models with several views, one each; single paths take the first.
        hidden: size of the reference's state per view.
        width: of every field's hidden layer, and of the encoder.
        options: further settings for all, such as tolerances.
    """

    channels: int
    outputs: int
    time_scale: float
    bandwidths: Sequence[float]
    hidden: int = 128
    width: int = 128
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> int:
        """The reference's count, which the others meet as nearly as whole hidden units allow."""
        return parameter_count(self.build(REFERENCE, self.hidden))

    def hidden_of(self, name: str) -> int:
        """The hidden size that brings a model nearest to the reference."""
        if name == REFERENCE:
            return self.hidden
        with torch.device("meta"):  # shapes without numbers: nothing is drawn for models that are only counted
            return matching_hidden(lambda h: self.build(name, h), self.parameters)

    def model(self, name: str) -> SeriesModel:
        """A model of the reference's size."""
        return self.build(name, self.hidden_of(name))

    def build(self, name: str, hidden: int) -> SeriesModel:
        """A model of any size."""
        settings: dict[str, Any] = {} if name in WITHOUT_WIDTH else {"width": self.width}
        if name.startswith("mvc"):
            settings["encoder_width"] = self.width
        return build_model(
            name,
            channels=self.channels,
            outputs=self.outputs,
            time_scale=self.time_scale,
            bandwidths=self.bandwidths if name.startswith("mv") else self.bandwidths[:1],
            hidden=hidden,
            **settings,
            **self.options,
        )
