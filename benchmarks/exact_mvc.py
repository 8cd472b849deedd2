"""MVC-CDE with exact Gaussian process paths in plain torch: what the torch peers share, all but the solver."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, pad

from benchmarks.settings import HIDDEN, Setting
from smoothcde.models import MultiViewCDE


@dataclass(frozen=True)
class Counts:
    """Evaluations of the field.

    Attributes:
        needed: per row (a view of a series), mean over the rows: what its own steps ask for.
        computed: per row, mean: what the solver evaluated, rows that wait for others included.
        backward: evaluations of a backward solve, if there is one.
    """

    needed: float
    computed: float
    backward: float = 0.0


class ExactMVC(nn.Module, ABC):
    """The paper's forward pass on a shared regular grid, in one precision throughout.

    Parameters have the names and layouts of `MultiViewCDE`, so weights and gradients compare by name. Of the ways to
    write the field tried here (a module per view, einsum, batched products, sums), this one is the quickest in torch.
    """

    def __init__(self, setting: Setting, model: MultiViewCDE):
        super().__init__()
        self.setting, self.tolerance = setting, setting.tolerance
        for name, parameter in model.named_parameters():
            # A flat dictionary of parameters; modules of its own would only rename them.
            self.register_parameter(name.replace(".", "/"), nn.Parameter(parameter.detach().clone()))
        times = torch.arange(setting.length, dtype=torch.float32)
        self.register_buffer("times", times)
        self.register_buffer("bandwidths", torch.tensor(setting.bandwidths))
        distance = times[:, None] - times
        self.register_buffer("gram", torch.exp(-0.5 * (distance / self.bandwidths[:, None, None]) ** 2))
        self.counts, self._solved = Counts(0, 0), False

    def begin_counting(self) -> None:
        """A solve begins."""
        self.counts, self._solved = Counts(0, 0), False

    def end_counting(self) -> None:
        """It is done: what is evaluated from now on is a backward solve."""
        self._solved = True

    def count(self) -> None:
        """The field of every row is evaluated once."""
        done = self.counts
        if self._solved:
            self.counts = Counts(done.needed, done.computed, done.backward + 1)
        else:
            self.counts = Counts(done.needed + 1, done.computed + 1)

    def weight(self, name: str) -> Tensor:
        """A parameter by its name in smoothcde."""
        return self.get_parameter(name.replace(".", "/"))

    def gradients(self) -> dict[str, Tensor | None]:
        """By smoothcde's names."""
        return {name.replace("/", "."): parameter.grad for name, parameter in self.named_parameters()}

    @abstractmethod
    def integrate(self, dual: Tensor, z0: Tensor) -> Tensor:
        """Final states `[views, n, hidden]` from coefficients `[views, n, length, channels]`."""

    def forward(self, x: Tensor) -> Tensor:
        """Logits of series `[n, length, channels]`."""
        dual = self.posterior(x, self._attention(x))
        first = torch.einsum("vl,vnlc->vnc", self.kernel(self.times[0])[0], dual)
        z0 = nn.functional.linear(first, self.weight("initial.weight"), self.weight("initial.bias"))
        states = torch.cat(self.integrate(dual, z0).unbind(), dim=1)
        return nn.functional.linear(states, self.weight("readout.weight"), self.weight("readout.bias"))

    def posterior(self, x: Tensor, attention: Tensor) -> Tensor:
        """Coefficients `[views, n, length, channels]` of the paths for weights `[views, n, length]`."""
        noise = self.setting.noise**2 / (attention + 1e-5)
        # torch.linalg.solve: a Cholesky factor takes as long forwards, and three times as long with its gradient.
        values = x.expand(self.setting.views, -1, -1, -1)
        return torch.linalg.solve(self.gram[:, None] + torch.diag_embed(noise), values)

    def _attention(self, x: Tensor) -> Tensor:
        """`[views, n, length]`."""
        context = x.mT
        for layer in range(2):
            weight, bias = (self.weight(f"encoder.layers.{layer}.{part}") for part in ("weight", "bias"))
            context = torch.relu(conv1d(pad(context, (1, 1), mode="replicate"), weight, bias))
        scores = self.weight("attention.queries") @ context / math.sqrt(HIDDEN)
        return torch.softmax(scores, dim=-1).transpose(0, 1)

    def kernel(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """k(t, stamps) and its derivative in t, of each view: `[views, length]`."""
        distance = (t - self.times) / self.bandwidths[:, None]
        value = torch.exp(-0.5 * distance**2)
        return value, -distance / self.bandwidths[:, None] * value

    def field(self, z: Tensor, dx: Tensor) -> Tensor:
        """f(z) dX/dt of `[views, n, hidden]` and `[views, n, channels]`."""
        inner = torch.baddbmm(self.weight("field.inner.bias")[:, None], z, self.weight("field.inner.weight"))
        outer = torch.baddbmm(
            self.weight("field.outer.bias")[:, None], torch.tanh(inner), self.weight("field.outer.weight")
        )
        matrix = torch.tanh(outer).unflatten(2, (dx.shape[2], -1))
        return torch.linalg.vecdot(matrix, dx[..., None], dim=2)

    def field_parameters(self) -> tuple[Tensor, ...]:
        """The field's own."""
        return tuple(
            self.weight(f"field.{layer}.{part}") for layer in ("inner", "outer") for part in ("weight", "bias")
        )
