"""Scores of stamps by a convolutional encoder and queries in compiled code, as one node of torch's graph."""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from smoothcde.native.library import call, counts, pointers, structure
from smoothcde.native.memory import room_to_keep
from smoothcde.native.panels import differentiable, in_panels, panel_columns, right_sides, room, zeros

SOURCE = "conv_scores.c"

_Sizes = structure(
    "_Sizes", ctypes.c_int64, "series", "length", "features", "views", "width", "padded_width", "threads"
)
_Weights = structure(
    "_Weights", ctypes.c_void_p, "first", "first_bias", "second", "second_bias", "second_back", "queries"
)
_Gradients = structure("_Gradients", ctypes.c_void_p, "first", "first_bias", "second", "second_bias", "queries")

FILTER = torch.tensor(
    [
        [1, 0, 0],
        [-2 / 9, -2 / 9, -2 / 9],
        [-2 / 9, 2 / 9, -2 / 9],
        [1 / 90, 1 / 45, 2 / 45],
        [1 / 90, -1 / 45, 2 / 45],
        [32 / 45, 16 / 45, 8 / 45],
        [32 / 45, -16 / 45, 8 / 45],
        [0, 0, 1],
    ],
    dtype=torch.float64,
)
"""G of Winograd's F(6, 3): what three taps become."""

Plain = Callable[[Sequence[Tensor], Tensor, Tensor], Tensor]


def conv_scores(
    features: Float[Tensor, "n length features"],
    lengths: Int[Tensor, "n"],
    first: tuple[Float[Tensor, "width features 3"], Float[Tensor, "width"]],
    second: tuple[Float[Tensor, "width width 3"], Float[Tensor, "width"]],
    queries: Float[Tensor, "views width"],
    plain: Plain,
) -> Float[Tensor, "n views length"]:
    """q^T relu(conv(relu(conv(features)))), the ends of each series repeated; zero behind them.

    Features get no gradient: they are data. `plain` is the same from (weights, biases and queries), features and
    lengths in torch's own operations, for second derivatives.
    """
    parameters = (*first, *second, queries)
    if torch.is_grad_enabled():
        return _Scores.apply(plain, features, lengths, *parameters)  # type: ignore[return-value]
    return _Packed(features, lengths, parameters).forward(None)


class _Packed:
    """One batch and the weights in panels."""

    def __init__(self, features: Tensor, lengths: Tensor, parameters: Sequence[Tensor]):
        self.features, self.lengths, self.panel = features.contiguous(), counts(lengths.tolist()), panel_columns(SOURCE)
        first, first_bias, second, second_bias, queries = (p.detach() for p in parameters)
        n, length, count = features.shape
        self.width, self.views = len(first), len(queries)
        self.padded = -(-self.width // self.panel) * self.panel
        self.sizes = _Sizes(n, length, count, self.views, self.width, self.padded, torch.get_num_threads())
        self.taps = second.contiguous()
        self.tensors = (
            in_panels(first.permute(2, 1, 0).flatten(0, 1), self.panel).transpose(0, 1).contiguous(),
            self._wide(first_bias),
            self._in_tiles(back=False),
            self._wide(second_bias),
            None,
            self._wide(queries),
        )

    def _wide(self, tensor: Tensor) -> Tensor:
        return pad(tensor, (0, self.padded - self.width)).contiguous()

    def _in_tiles(self, back: bool) -> Tensor:
        """What the second layer's taps become for tiles, in panels of outputs, or of inputs for the way back."""
        tiles = room(len(FILTER), self.padded // self.panel, self.padded, self.panel)
        call(SOURCE, "conv_scores_taps", self.sizes, self.taps, ctypes.c_int64(back), tiles)
        return right_sides(SOURCE, tiles)

    def forward(self, kept: Tensor | None) -> Tensor:
        scores = zeros(len(self.features), self.views, self.features.shape[1])
        weights = _Weights(*pointers(self.tensors))
        call(SOURCE, "conv_scores_forward", self.sizes, weights, self.lengths, self.features, scores, kept)
        return scores

    def room(self) -> Tensor:
        """For the second layer of all stamps."""
        return room_to_keep(*self.features.shape[:2], self.padded)

    def backward(self, g: Tensor, kept: Tensor) -> tuple[Tensor, ...]:
        """Gradients of the parameters."""
        threads, wide, inputs = self.sizes.threads, self.padded, self.features.shape[2]
        shapes = ((3 * inputs, wide), (wide,), (len(FILTER), wide, wide), (wide,), (self.views, wide))
        shares = [zeros(threads, *shape) for shape in shapes]
        back = self._in_tiles(back=True)
        weights = _Weights(*pointers((*self.tensors[:4], back, self.tensors[5])))
        arguments = (self.features, g.contiguous(), kept, _Gradients(*pointers(shares)))
        call(SOURCE, "conv_scores_backward", self.sizes, weights, self.lengths, *arguments)
        first, first_bias, taps, second_bias, queries = (share.sum(dim=0)[..., : self.width] for share in shares)
        second = torch.einsum("it,ico->oct", FILTER, taps[:, : self.width].double()).float()
        return first.unflatten(0, (3, inputs)).permute(2, 1, 0), first_bias, second, second_bias, queries


class _Scores(torch.autograd.Function):
    """Keeps the second layer; the first is made again."""

    @staticmethod
    def forward(ctx, plain: Plain, features, lengths, *parameters):
        packed = _Packed(features, lengths, parameters)
        kept = packed.room()
        scores = packed.forward(kept)
        ctx.plain, ctx.packed = plain, packed
        ctx.save_for_backward(features, lengths, kept, *parameters)
        return scores

    @staticmethod
    def backward(ctx, *gradients):
        (g,) = gradients
        features, lengths, kept, *parameters = ctx.saved_tensors
        if torch.is_grad_enabled():  # someone wants second derivatives
            plain = partial(ctx.plain, features=features, lengths=lengths)
            return None, None, None, *differentiable(plain, parameters, ctx.needs_input_grad[3:], g)
        return None, None, None, *ctx.packed.backward(g, kept)
