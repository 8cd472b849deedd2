"""A vector field for many channels: a matrix of low rank that is never built."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.checks import check_choice, check_whole
from smoothcde.models.fields import ACTIVATIONS, Activation, ViewLinear
from smoothcde.solve import Rows

MANY = 32
"""Channels from which on a field is scaled down, so that together they move the state as far as this many would."""


class LowRankField(nn.Module):
    """f(z) = c sum_k a_k(z) b_k(z)^T, with a_k of the state's size, b_k of the path's, both behind a tanh.

    A full field has hidden x channels outputs, and a weight for each of them and each hidden unit: 128 units and 963
    channels make 16 million weights per view. This one has rank x (hidden + channels) outputs, and its product with
    dX/dt costs as much. What it gives up: at any state the path moves z in at most `rank` directions.

    The scale c is 1 / sqrt(rank) for a few channels. Hundreds of them would push a state so far before anything is
    learned that training starts from saturated units and in many small steps, hence the root of their number beyond
    `MANY`.
    """

    def __init__(
        self,
        views: int,
        hidden: int,
        channels: int,
        width: int = 128,
        activation: Activation = "tanh",
        rank: int = 8,
    ):
        super().__init__()
        check_whole("rank", rank, 1)
        check_choice("activation", activation, ACTIVATIONS)
        self.hidden, self.channels, self.rank, self.activation = hidden, channels, rank, activation
        self.scale = 1 / math.sqrt(rank * max(1.0, channels / MANY))
        self.inner = ViewLinear(views, hidden, width)
        self.outer = ViewLinear(views, width, rank * (hidden + channels))

    def product(
        self, z: Float[Tensor, "rows hidden"], dx: Float[Tensor, "rows channels"], rows: Rows
    ) -> Float[Tensor, "rows hidden"]:
        """f(z) dx."""
        left, right = self._factors(z, rows)
        along = torch.bmm(right, dx[:, :, None])
        return torch.bmm(along.mT, left)[:, 0] * self.scale

    def matrix(self, z: Float[Tensor, "rows hidden"], rows: Rows) -> Float[Tensor, "rows hidden channels"]:
        """f(z)."""
        left, right = self._factors(z, rows)
        return left.mT @ right * self.scale

    def _factors(self, z: Tensor, rows: Rows) -> tuple[Float[Tensor, "rows rank hidden"], Tensor]:
        inner = ACTIVATIONS[self.activation](self.inner(z, rows))
        both = torch.tanh(self.outer(inner, rows)).unflatten(1, (self.rank, self.hidden + self.channels))
        return both[..., : self.hidden], both[..., self.hidden :]
