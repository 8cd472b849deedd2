"""MVC-CDE in the form of the authors' public code: torchcde, a kernel matrix per row, einsum over the views.

Told apart from `paper_stack.py`, which does the same work in the quickest form we found for it.
"""

from typing import Literal

import torch
import torchcde
from torch import Tensor, nn

from benchmarks.exact_mvc import ExactMVC
from benchmarks.settings import Setting
from smoothcde.models import MultiViewCDE


class PublishedMVC(ExactMVC):
    """`ExactMVC` as github.com/awesomeslayer/Efficient_NCE_via_Attentive_Kernel_Smoothing goes about it.

    Views of a series are neighbours in memory, every row has its own kernel matrix, the field's matrix is built and
    multiplied with dX/dt by `torchcde.cdeint`. Left out is what that code does beside: statistics of the field read
    back at every evaluation, and a second diagonal matrix for missing values.

    Its classifiers leave `cdeint` at its default, the adjoint, which then does not know of the path: encoder and
    queries learn through the initial state alone. That is "adjoint" here, less work than the gradient takes and another
    one. With "backprop" gradients go through the steps and are those of everyone else, as in its forecasting models.
    """

    def __init__(self, setting: Setting, model: MultiViewCDE, gradient: Literal["backprop", "adjoint"] = "backprop"):
        super().__init__(setting, model)
        self.gradient: str = gradient

    def posterior(self, x: Tensor, attention: Tensor) -> Tensor:
        """See `ExactMVC`, with a kernel matrix for every row."""
        noise = self.setting.noise**2 / (attention.transpose(0, 1).flatten(0, 1) + 1e-5)
        squared = (self.times[:, None] - self.times) ** 2
        gram = torch.exp(-0.5 * squared / self._row_bandwidths(len(x)) ** 2)
        values = x.repeat_interleave(self.setting.views, dim=0)
        dual = torch.linalg.solve(gram + torch.diag_embed(noise), values)
        return dual.unflatten(0, (len(x), self.setting.views)).transpose(0, 1)

    def integrate(self, dual: Tensor, z0: Tensor) -> Tensor:
        """One call of torchcde, rows of one series side by side."""
        views, n = z0.shape[:2]
        path = _Path(self.times, self._row_bandwidths(n), dual.transpose(0, 1).flatten(0, 1))
        self.begin_counting()
        field, adjoint = _Field(self), self.gradient == "adjoint"
        states = torchcde.cdeint(
            X=path,
            func=field,
            z0=z0.transpose(0, 1).flatten(0, 1),
            t=path.interval,
            adjoint=adjoint,
            rtol=self.tolerance,
            atol=self.tolerance,
            **({"adjoint_params": field.weights} if adjoint else {}),
        )
        self.end_counting()
        return states[:, -1].unflatten(0, (n, views)).transpose(0, 1)

    def _row_bandwidths(self, n: int) -> Tensor:
        return self.bandwidths.repeat(n)[:, None, None]


class _Path(nn.Module):
    """The posterior mean as torchcde takes a path."""

    def __init__(self, times: Tensor, bandwidths: Tensor, dual: Tensor):
        super().__init__()
        self.times, self.bandwidths, self.dual = times, bandwidths, dual

    @property
    def interval(self) -> Tensor:
        return torch.stack([self.times[0], self.times[-1]])

    def derivative(self, t: Tensor) -> Tensor:
        distance = (t - self.times)[None, None]
        kernel = torch.exp(-0.5 * distance**2 / self.bandwidths**2) * (-distance / self.bandwidths**2)
        return torch.matmul(kernel, self.dual).squeeze(1)


class _Field(nn.Module):
    """The matrix `[rows, hidden, channels]` of every row, views of a series beside each other."""

    def __init__(self, model: ExactMVC):
        super().__init__()
        self.views, self.channels, self.count = model.setting.views, model.setting.channels, model.count
        self.inner = model.weight("field.inner.weight").mT
        self.inner_bias = model.weight("field.inner.bias")
        # From channel by channel, as smoothcde holds it, to state by state.
        self.outer = (
            model.weight("field.outer.weight").unflatten(2, (self.channels, -1)).permute(0, 3, 2, 1).flatten(1, 2)
        )
        self.outer_bias = model.weight("field.outer.bias").unflatten(1, (self.channels, -1)).mT.flatten(1)
        self.weights = (self.inner, self.inner_bias, self.outer, self.outer_bias)

    def forward(self, t: Tensor, z: Tensor) -> Tensor:
        self.count()
        state = z.unflatten(0, (-1, self.views))
        inner = torch.tanh(torch.einsum("voi,nvi->nvo", self.inner, state) + self.inner_bias)
        outer = torch.tanh(torch.einsum("voi,nvi->nvo", self.outer, inner) + self.outer_bias)
        return outer.reshape(len(z), -1, self.channels)
