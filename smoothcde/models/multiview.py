"""MV-CDE and MVC-CDE: several attentive views of a series, smoothed and integrated side by side."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from smoothcde.checks import check_above_zero, check_choice
from smoothcde.models.attention import (
    ConvEncoder,
    EncoderInputs,
    QueryAttention,
    compiled_scores,
    context_width,
    diversity_penalty,
    encoder_features,
)
from smoothcde.models.bandwidths import Bandwidths
from smoothcde.models.base import full_precision
from smoothcde.models.cde import CDEModel, kinks_of_kernel
from smoothcde.paths import GPPath, JoinedPath, KernelPath, Path
from smoothcde.series import SeriesBatch

CACHED_NUMBERS = 2**20
"""Activations of one convolution that are made at a time."""


class MultiViewCDE(CDEModel):
    """Views of a series, each smoothed with its own bandwidth and its own attention, each driving a neural CDE.

    Encoder -> attention weights per view -> weighted kernel or Gaussian process path per view -> one solve, every view
    at its own pace -> readout of all views' final states (the paper's section 3.5). The context that scores attention
    never enters the path, which stays a smoothing of the observations.

    ```python
    model = MultiViewCDE(channels=3, outputs=8, bandwidths=(0.1, 0.2, 0.4), time_scale=315.0, smoother="gp")
    outcome = model.solve(series.batch())
    outcome.outputs, outcome.attention, outcome.nfe
    ```

    Args:
        channels: of the series.
        outputs: of the readout.
        bandwidths: one fraction of `time_scale` per view; see `homogeneous`, `geometric`, `silverman`.
        smoother: "gp" or "kernel".
        encoder: "conv" (MVC-CDE) or "identity" (MV-CDE).
        encoder_width: units of the convolutions.
        encoder_inputs: "values", or "values+mask+gap" for series with missing values or irregular times.
        noise: sigma of the Gaussian process.
        kernel: of the kernel path.
        learn_bandwidths: train the bandwidths with the model.
        bandwidth_floor: the smallest fraction they may reach, a quarter of the smallest start by default.
        learn_noise: train sigma with the model.
        scaled_queries: divide scores by the square root of the context's width, as the paper's text does.
        diversity: weight of a penalty on views that attend alike (the paper tries 0.1).
        count_channels: append how often each channel was observed so far, smoothed like its view.
        count_scale: unit of those counts.
        settings: `hidden`, `width`, `activation`, `rank`, `static`, `time_scale`, `time_channel`, `time_unit`,
            `integral_channels`, `integral_unit`, `options`, see `CDEModel`.
    """

    def __init__(
        self,
        *,
        channels: int,
        outputs: int,
        bandwidths: Sequence[float],
        smoother: Literal["gp", "kernel"] = "gp",
        encoder: Literal["conv", "identity"] = "conv",
        encoder_width: int = 128,
        encoder_inputs: EncoderInputs = "values",
        noise: float = 0.01,
        kernel: str = "gaussian",
        learn_bandwidths: bool = False,
        bandwidth_floor: float | None = None,
        learn_noise: bool = False,
        scaled_queries: bool = True,
        diversity: float = 0.0,
        count_channels: bool = False,
        count_scale: float = 0.1,
        **settings: Any,
    ):
        for name, value, allowed in (
            ("smoother", smoother, ("gp", "kernel")),
            ("encoder", encoder, ("conv", "identity")),
        ):
            check_choice(name, value, allowed)
        check_above_zero("noise", noise, "it must be positive, 0.01 is the usual choice")
        path_channels = channels * (1 + count_channels)
        super().__init__(
            views=len(bandwidths), channels=channels, path_channels=path_channels, outputs=outputs, **settings
        )
        self.smoother, self.kernel, self.diversity = smoother, kernel, diversity
        self.encoder_inputs: EncoderInputs = encoder_inputs
        self.count_scale = count_scale if count_channels else None
        self.bandwidths = Bandwidths(bandwidths, self.time_scale, learn_bandwidths, bandwidth_floor)
        self.log_noise = nn.Parameter(torch.tensor(noise).log()) if learn_noise else None
        self._noise = noise
        context = context_width(channels, encoder_inputs)
        self.encoder = ConvEncoder(context, encoder_width) if encoder == "conv" else None
        self.attention = QueryAttention(
            len(bandwidths), encoder_width if encoder == "conv" else context, scaled_queries
        )

    @property
    def noise(self) -> Any:
        """Sigma of the Gaussian process."""
        return self._noise if self.log_noise is None else self.log_noise.exp()

    def why_no_plan(self) -> str | None:
        """None, unless its kernel has kinks at the stamps."""
        return None if self.smoother == "gp" else kinks_of_kernel(self.kernel)

    def smooth(self, batch: SeriesBatch) -> tuple[Path, Tensor | None, Tensor]:
        """Paths of all views, view-major, with the attention that shaped them."""
        weights = self.weights(batch)
        with full_precision(batch):
            path = self.fit_path(batch, weights)
        penalty = self.diversity * diversity_penalty(weights) if self.diversity else weights.new_zeros(())
        return path, weights, penalty

    def weights(self, batch: SeriesBatch) -> Tensor:
        """How much each view listens to each stamp, `[n, views, length]`."""
        return self.attention(self.scores(batch), batch).to(batch.dtype)

    def fit_path(self, batch: SeriesBatch, weights: Tensor) -> Path:
        """Paths of all views for given attention."""
        bandwidth = self.bandwidths.values
        if self.smoother == "gp":
            nodes = self.bandwidths.nodes(float(batch.end.max()) if len(batch) else 0.0)
            path: Path = GPPath.fit(batch, bandwidth, self.noise, weights, nodes=nodes)
        else:
            path = KernelPath.fit(batch, bandwidth, weights, self.kernel)
        return self.with_counts(path, batch)

    def with_counts(self, path: Path, batch: SeriesBatch) -> Path:
        """The paths with channels that count observations, if the model has them."""
        if self.count_scale is None:
            return path
        return JoinedPath.of(path, KernelPath.fit(batch.counts(self.count_scale), self.bandwidths.values))

    def scores(self, batch: SeriesBatch) -> Tensor:
        """How much each view's query likes each stamp."""
        return self.scores_of(self.features(batch), batch.lengths)

    def features(self, batch: SeriesBatch) -> Tensor:
        """What the encoder sees of each stamp."""
        return encoder_features(batch, self.encoder_inputs, self.time_scale)

    def scores_of(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of stamps by what the encoder sees of them."""
        if self.encoder is None:
            return self.attention.scores(features)
        compiled = compiled_scores(self.encoder, self.attention, features, lengths)
        if compiled is not None:
            return compiled
        n, length, _ = features.shape
        if torch.compiler.is_exporting():  # a graph has no number of series to cut into blocks
            return self.attention.scores(self.encoder(features, lengths))
        # On a CPU, a few series at a time stay in the cache and in memory the allocator has at hand: half the time at
        # 264 series of 315 stamps.
        block = (
            max(1, CACHED_NUMBERS // (length * self.attention.queries.shape[1])) if features.device.type == "cpu" else n
        )
        parts = zip(features.split(block), lengths.split(block), strict=True)
        scores = [self.attention.scores(self.encoder.end_to_end(part, lengths)) for part, lengths in parts]
        return torch.cat(scores)[:, :, :length]
