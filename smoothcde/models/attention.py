"""Which observations each view listens to: encoders, queries, and how alike the views are."""

import math
from collections.abc import Sequence
from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from smoothcde.checks import check_choice
from smoothcde.native import conv_scores, serves
from smoothcde.paths import fill_forward, fill_linear
from smoothcde.series import SeriesBatch

EncoderInputs = Literal["values", "values+mask+gap"]


def context_width(channels: int, inputs: EncoderInputs) -> int:
    """Features per stamp that an encoder sees."""
    check_choice("encoder_inputs", inputs, ("values", "values+mask+gap"))
    return channels if inputs == "values" else 2 * channels + 1


def encoder_features(
    batch: SeriesBatch, inputs: EncoderInputs, time_scale: float, causal: bool = False
) -> Float[Tensor, "n length features"]:
    """What an encoder sees at each stamp.

    "values": the observations, missing ones filled by straight lines. "values+mask+gap": also what was observed, and
    the time since the stamp before, in units of the time scale. Fixed when a model is built, never by a batch.
    With `causal`, a missing value is the last one observed, 0 before the first: no later stamp shines through.
    """
    values = (fill_forward(batch) if causal else fill_linear(batch)).to(batch.dtype)
    if inputs == "values":
        return values
    gap = torch.diff(batch.times, dim=1, prepend=batch.times[:, :1]) / time_scale
    return torch.cat([values, batch.mask.to(batch.dtype), gap[:, :, None].to(batch.dtype)], dim=2)


class ConvEncoder(nn.Module):
    """Two convolutions of width 3 over the stamps, ReLU after each: the C of MVC-CDE.

    Both ends of a series repeat its own first and last stamp's features, whatever the padding of its batch. Written as
    plain matrix products on series laid end to end, which needs no padded copy of the wide activations.
    """

    def __init__(self, features: int, width: int = 128):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(features, width, 3), nn.Conv1d(width, width, 3)])

    def forward(
        self, features: Float[Tensor, "n length features"], lengths: Int[Tensor, "n"]
    ) -> Float[Tensor, "n length width"]:
        """Context of each stamp; padding holds something finite."""
        return self.end_to_end(features, lengths)[:, : features.shape[1]]

    def context_at(
        self,
        features: Float[Tensor, "n length features"],
        lengths: Int[Tensor, "n"],
        series: Int[Tensor, "stamps"],
        places: Int[Tensor, "stamps"],
    ) -> Float[Tensor, "stamps width"]:
        """Context of single stamps: what `forward` gives there, from five stamps' features each."""
        first, first_bias, second, second_bias = self.weights
        last = (lengths[series] - 1).clamp(min=0)[:, None]
        shifts = torch.arange(-1, 2, device=features.device)
        inner = (places[:, None] + shifts).clamp(min=0).minimum(last)  # places of the first layer, ends repeated
        outer = (inner[:, :, None] + shifts).clamp(min=0).minimum(last[:, :, None])
        seen = features[series[:, None, None], outer].flatten(2)  # [stamps, 3, 3 features]
        inner_weight = first.permute(2, 1, 0).flatten(0, 1)
        context = torch.relu(torch.addmm(first_bias, seen.flatten(0, 1), inner_weight)).unflatten(0, (-1, 3))
        # Tap by tap, as for whole series: so the two round alike.
        outputs = second_bias
        for tap, weight in enumerate(second.permute(2, 1, 0)):
            outputs = torch.addmm(outputs, context[:, tap], weight)
        return torch.relu(outputs)

    def end_to_end(
        self, features: Float[Tensor, "n length features"], lengths: Int[Tensor, "n"]
    ) -> Float[Tensor, "n places width"]:
        """Context in contiguous memory; two places behind the stamps of each series mean nothing."""
        return _end_to_end(features, lengths, *self.weights)

    @property
    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Weight and bias of both layers."""
        first, second = cast("list[nn.Conv1d]", list(self.layers))
        assert first.bias is not None
        assert second.bias is not None
        return first.weight, first.bias, second.weight, second.bias


def _end_to_end(
    features: Tensor, lengths: Tensor, first: Tensor, first_bias: Tensor, second: Tensor, second_bias: Tensor
) -> Tensor:
    n, length, _ = features.shape
    # The first layer at positions -1 ... length, each clamped into its series: its own ends, repeated.
    last = (lengths[:, None] - 1).clamp(min=0)
    place = torch.arange(-1, length + 1, device=features.device).clamp(min=0).minimum(last)
    series = torch.arange(n, device=features.device)[:, None]
    windows = [features[series, (place + shift).clamp(min=0).minimum(last)] for shift in (-1, 0, 1)]
    inputs = torch.cat(windows, dim=2).flatten(0, 1)
    inputs = nn.functional.pad(inputs, (0, 0, 0, 2))  # two rows more, so that three shifted slices have equal length
    inner = torch.relu(torch.addmm(first_bias, inputs, first.permute(2, 1, 0).flatten(0, 1)))
    return torch.relu(_convolve(inner, second.permute(2, 1, 0), second_bias)).view(n, length + 2, len(second))


def compiled_scores(
    encoder: ConvEncoder, attention: "QueryAttention", features: Tensor, lengths: Tensor
) -> Float[Tensor, "n views length"] | None:
    """`attention.scores` of an encoder's context in compiled code; None where that cannot be had."""
    weights, queries = encoder.weights, attention.queries * attention.scale
    if features.requires_grad or not serves(conv_scores.SOURCE, features, queries, *weights):
        return None
    return conv_scores.conv_scores(features, lengths, weights[:2], weights[2:], queries, _plain_scores)


def _plain_scores(parameters: Sequence[Tensor], features: Tensor, lengths: Tensor) -> Tensor:
    *weights, queries = parameters
    context = _end_to_end(features, lengths, *weights)[:, : features.shape[1]]
    inside = torch.arange(features.shape[1], device=features.device) < lengths[:, None]
    return (context @ queries.mT).mT * inside[:, None]


class _Convolution(torch.autograd.Function):
    """y[p] = x[p] W_0 + x[p + 1] W_1 + x[p + 2] W_2 + b as three products of shifted slices, forwards and backwards."""

    @staticmethod
    def forward(ctx, x: Tensor, taps: Tensor, bias: Tensor) -> Tensor:
        count = x.shape[0] - 2
        y = torch.addmm(bias, x[:count], taps[0])
        y.addmm_(x[1 : count + 1], taps[1]).addmm_(x[2:], taps[2])
        ctx.save_for_backward(x, taps)
        return y

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (gradient,) = gradients
        x, taps = ctx.saved_tensors
        count = gradient.shape[0]
        to_x = x.new_zeros(x.shape)
        for shift, tap in enumerate(taps):
            to_x[shift : shift + count].addmm_(gradient, tap.mT)
        to_taps = torch.stack([x[shift : shift + count].mT @ gradient for shift in range(3)])
        return to_x, to_taps, gradient.sum(dim=0)


def _convolve(
    x: Float[Tensor, "places inputs"], taps: Float[Tensor, "3 inputs outputs"], bias: Float[Tensor, "outputs"]
) -> Float[Tensor, "places-2 outputs"]:
    kind = x.device.type
    if torch.is_autocast_enabled(kind):  # its products are written in place, which mixed precision does not convert
        x, taps, bias = (tensor.to(torch.get_autocast_dtype(kind)) for tensor in (x, taps, bias))
    with torch.autocast(kind, enabled=False):
        return _Convolution.apply(x, taps, bias)  # type: ignore[return-value]


class QueryAttention(nn.Module):
    """alpha_{m,k} = softmax_k(q_m^T u_k / sqrt(d)) with a learnt query q_m ~ N(0, 1) per view (the paper's eq. 3).

    The softmax runs over the stamps where anything was observed; all others get a weight of exactly zero.
    """

    def __init__(self, views: int, width: int, scaled: bool = True):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(views, width))
        self.scale = 1 / math.sqrt(width) if scaled else 1.0

    def scores(self, context: Float[Tensor, "n length width"]) -> Float[Tensor, "n views length"]:
        """q_m^T u_k / sqrt(d)."""
        return (context @ (self.queries.mT * self.scale)).mT

    def forward(self, scores: Float[Tensor, "n views length"], batch: SeriesBatch) -> Float[Tensor, "n views length"]:
        """Weights of each view over the stamps; all zero for a series without observations."""
        if not torch.compiler.is_exporting() and batch.complete:
            return torch.softmax(scores, dim=2)
        observed = batch.observed[:, None, :]
        nothing = ~observed.any(dim=2, keepdim=True)
        weights = torch.softmax(scores.masked_fill(~observed, -torch.inf).masked_fill(nothing, 0.0), dim=2)
        return weights * observed


def view_similarity(weights: Float[Tensor, "n views length"]) -> Float[Tensor, "n views views"]:
    """Cosine similarity of every two views' attention."""
    unit = nn.functional.normalize(weights, dim=2, eps=1e-12)
    return unit @ unit.mT


def largest_similarity(weights: Float[Tensor, "n views length"]) -> Float[Tensor, ""]:
    """The largest pairwise cosine of a series' views, averaged over series; 0 for a single view."""
    views = weights.shape[1]
    if views < 2:
        return weights.new_zeros(())
    own = torch.eye(views, dtype=torch.bool, device=weights.device)
    return view_similarity(weights).masked_fill(own, -torch.inf).amax(dim=(1, 2)).mean()


def largest_divergence(weights: Float[Tensor, "n views length"]) -> Float[Tensor, ""]:
    """The largest pairwise Jensen-Shannon divergence (in bits, 0 to 1) of a series' views, averaged over series."""
    if weights.shape[1] < 2:
        return weights.new_zeros(())
    one, other = weights[:, :, None], weights[:, None, :]
    middle = (one + other) / 2
    bits = torch.special.entr(middle) - (torch.special.entr(one) + torch.special.entr(other)) / 2
    return (bits.sum(dim=3) / math.log(2)).amax(dim=(1, 2)).mean()


def diversity_penalty(weights: Float[Tensor, "n views length"]) -> Float[Tensor, ""]:
    """The mean pairwise cosine of a series' views: what a head-diversity regulariser adds to the loss."""
    views = weights.shape[1]
    if views < 2:
        return weights.new_zeros(())
    similarity = view_similarity(weights)
    apart = similarity.sum(dim=(1, 2)) - similarity.diagonal(dim1=1, dim2=2).sum(dim=1)
    return (apart / (views * (views - 1))).mean()
