"""Vector fields f of controlled differential equations, one set of weights per view."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from smoothcde.checks import check_choice
from smoothcde.models.tanh_product import affine, plain_product, tanh_product
from smoothcde.native import PackedField, serves, tanh_field
from smoothcde.solve import Field, Rows

Activation = Literal["tanh", "relu"]
ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu}


class ViewLinear(nn.Module):
    """An affine layer per view, applied to rows in view-major order."""

    def __init__(self, views: int, inputs: int, outputs: int):
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(views, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(views, outputs).uniform_(-bound, bound))

    def forward(self, x: Float[Tensor, "rows inputs"], rows: Rows) -> Float[Tensor, "rows outputs"]:
        """Each slice of rows through its own view's weights."""
        return affine(x, self.weight, self.bias, rows.sizes)


class TanhField(nn.Module):
    """f(z) = tanh(W2 act(W1 z + b1) + b2), a hidden x channels matrix bounded entry by entry (the paper's field).

    Only its product with dX/dt is ever needed; `matrix` is there to look at.
    """

    def __init__(self, views: int, hidden: int, channels: int, width: int = 128, activation: Activation = "tanh"):
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        self.hidden, self.channels, self.activation = hidden, channels, activation
        self.inner = ViewLinear(views, hidden, width)
        self.outer = ViewLinear(views, width, channels * hidden)

    def product(
        self, z: Float[Tensor, "rows hidden"], dx: Float[Tensor, "rows channels"], rows: Rows
    ) -> Float[Tensor, "rows hidden"]:
        """f(z) dx."""
        inner, outer = (self.inner.weight, self.inner.bias), (self.outer.weight, self.outer.bias)
        return tanh_product(z, dx, inner, outer, self.activation, rows.sizes)

    def prepared(self) -> Field:
        """The same field for the length of a solve: in compiled code where that can be had, else itself."""
        inner, outer = (self.inner.weight, self.inner.bias), (self.outer.weight, self.outer.bias)
        if not serves(tanh_field.SOURCE, *inner, *outer):
            return self
        return PackedField(inner, outer, self.activation, partial(plain_product, activation=self.activation))

    def graph_weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All that it depends on, a matrix per view and channel: a graph then need not reshape what they make."""
        shape = (self.channels, self.hidden)
        outer = self.outer.weight.unflatten(2, shape).transpose(1, 2).contiguous()
        bias = self.outer.bias.unflatten(1, shape)[:, :, None]
        return self.inner.weight, self.inner.bias[:, None], outer, bias

    def product_in_graph(
        self,
        weights: Sequence[Tensor],
        z: Float[Tensor, "views n hidden"],
        dx: Float[Tensor, "views channels n 1"],
    ) -> Float[Tensor, "views n hidden"]:
        """f(z) dx of all views in few plain operations, with `graph_weights` as a loop in a graph hands them in."""
        inner_weight, inner_bias, outer_weight, outer_bias = weights
        inner = ACTIVATIONS[self.activation](torch.bmm(z, inner_weight) + inner_bias)
        matrix = torch.tanh(torch.matmul(inner[:, None], outer_weight) + outer_bias)
        return (matrix * dx).sum(dim=1)

    def matrix(self, z: Float[Tensor, "rows hidden"], rows: Rows) -> Float[Tensor, "rows hidden channels"]:
        """f(z)."""
        return torch.tanh(self._inside_tanh(z, rows)).mT

    def _inside_tanh(self, z: Tensor, rows: Rows) -> Float[Tensor, "rows channels hidden"]:
        inner = ACTIVATIONS[self.activation](self.inner(z, rows))
        return self.outer(inner, rows).view(-1, self.channels, self.hidden)

    def column_derivatives(
        self, z: Float[Tensor, "rows hidden"], directions: Float[Tensor, "rows hidden channels"], rows: Rows
    ) -> Float[Tensor, "rows hidden channels"]:
        """Df_j(z) v_j for every column f_j of the matrix, each along its own direction v_j: forward mode by hand.

        A general forward-mode derivative would compute all columns along each direction and keep one of them.
        """
        inner = ACTIVATIONS[self.activation](self.inner(z, rows))
        outer = torch.tanh(self.outer(inner, rows)).view(-1, self.channels, self.hidden)
        steepness = 1 - inner**2 if self.activation == "tanh" else (inner > 0).to(z.dtype)
        columns = []
        views = zip(directions.mT.split(rows.sizes), steepness.split(rows.sizes), strict=True)
        for (v, s), w1, w2 in zip(views, self.inner.weight, self.outer.weight, strict=True):
            moved = (v @ w1) * s[:, None]  # [rows, channels, width]
            columns.append(torch.einsum("rcw,wch->rch", moved, w2.view(-1, self.channels, self.hidden)))
        return ((1 - outer**2) * torch.cat(columns)).mT
