"""Every contender on the same work: outputs, gradients, one training step, one inference pass, counts."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks.exact_mvc import Counts, ExactMVC
from benchmarks.paper_stack import PaperMVC
from benchmarks.settings import Work
from smoothcde.native import without_compiled_code

Gradients = dict[str, np.ndarray]
VMAPPED = 256
"""Series of a part."""


@runtime_checkable
class Entry(Protocol):
    """One contender, at a tolerance that may be changed."""

    tolerance: float
    compile_seconds: dict[str, float]

    def infer(self) -> np.ndarray:
        """Logits of all series, no gradient."""
        ...

    def step(self) -> None:
        """A training step: loss, gradients, Adam (at rate 0, so that every step is the same work)."""
        ...

    def gradients(self) -> Gradients:
        """Of the loss, by smoothcde's parameter names."""
        ...

    def counts(self) -> Counts:
        """Evaluations of the last pass."""
        ...


class TorchEntry(ABC):
    """A torch model with its optimiser; subclasses say what a forward pass is."""

    def __init__(self, work: Work, model: torch.nn.Module):
        self.work, self.model = work, model
        self.tolerance = work.setting.tolerance
        self.compile_seconds: dict[str, float] = {}
        self.targets = torch.as_tensor(work.labels)
        self.optimiser = torch.optim.Adam(model.parameters(), lr=0.0)

    @abstractmethod
    def forward(self) -> torch.Tensor:
        """Logits."""

    def named_gradients(self) -> dict[str, torch.Tensor | None]:
        """Of the last backward pass."""
        return {name: parameter.grad for name, parameter in self.model.named_parameters()}

    def infer(self) -> np.ndarray:
        """See `Entry`."""
        with torch.no_grad():
            return self.forward().numpy()

    def step(self) -> None:
        """See `Entry`."""
        self.optimiser.zero_grad()
        cross_entropy(self.forward(), self.targets).backward()
        self.optimiser.step()

    def gradients(self) -> Gradients:
        """See `Entry`."""
        self.optimiser.zero_grad()
        cross_entropy(self.forward(), self.targets).backward()
        found = self.named_gradients()
        return {name: g.double().numpy().copy() for name, g in found.items() if g is not None}


class OurEntry(TorchEntry):
    """smoothcde, a step size per row."""

    def __init__(self, work: Work, gradient: str = "backprop", solver: str = "dopri5"):
        super().__init__(work, work.model)
        self.how = {"gradient": gradient, "solver": solver}
        self.batch, self.outcome = work.batch(), None

    def forward(self) -> torch.Tensor:
        """Logits."""
        how: dict[str, Any] = {"rtol": self.tolerance, "atol": self.tolerance, **self.how}
        self.outcome = self.work.model.solve(self.batch, options=replace(self.work.model.options, **how))
        return self.outcome.outputs

    def counts(self) -> Counts:
        """Rows leave when they are done, so none is evaluated beyond its need."""
        assert self.outcome is not None
        assert self.outcome.solution is not None
        mean, stats = float(self.outcome.nfe.mean()), self.outcome.solution.stats
        return Counts(mean, mean, float(stats.backward_nfe.mean()))


class PlainEntry(OurEntry):
    """smoothcde as it is where nothing can be compiled: every operation one of torch's."""

    def infer(self) -> np.ndarray:
        """See `Entry`."""
        with without_compiled_code():
            return super().infer()

    def step(self) -> None:
        """See `Entry`."""
        with without_compiled_code():
            super().step()

    def gradients(self) -> Gradients:
        """See `Entry`."""
        with without_compiled_code():
            return super().gradients()


class ExactEntry(TorchEntry):
    """One of the torch peers."""

    def __init__(self, work: Work, model: ExactMVC):
        super().__init__(work, model)
        self.values = torch.as_tensor(work.values())

    def forward(self) -> torch.Tensor:
        """Logits."""
        self.model.tolerance = self.tolerance
        return self.model(self.values)

    def named_gradients(self) -> dict[str, torch.Tensor | None]:
        """Of the last backward pass."""
        return self.model.gradients()

    def counts(self) -> Counts:
        """Of the last pass."""
        return self.model.counts


class DiffraxEntry:
    """diffrax, compiled ahead; the tolerance is an argument, so that another one compiles nothing anew.

    With a step size per row a large batch is trained on in equal parts, as its users would have to: the backward pass
    under `vmap` holds a gradient of the field's weights for every row, 17 GB for SpokenArabicDigits.
    """

    def __init__(
        self, work: Work, steps: Literal["joint", "row"] = "joint", double_gram: bool = False, tuned: bool = True
    ):
        import jax
        import jax.numpy as jnp
        import optax

        from benchmarks.diffrax_stack import DiffraxMVC, array_of

        self.tolerance = work.setting.tolerance
        self.parts = max(1, work.setting.series // VMAPPED) if steps == "row" else 1
        self.model = DiffraxMVC(work.setting, steps, jnp.float64 if double_gram else jnp.float32, tuned=tuned)
        self.weights = array_of({name: p.detach().numpy() for name, p in work.model.named_parameters()})
        self.x, self.labels = jnp.asarray(work.values()), jnp.asarray(work.labels)
        self.optimiser = optax.adam(0.0)
        self.state = jax.block_until_ready(self.optimiser.init(self.weights))
        self.compile_seconds: dict[str, float] = {}
        self._functions: dict[str, Any] = {}
        self.last: dict[str, Any] = {}
        self._taken = np.zeros(1)

    def infer(self) -> np.ndarray:
        """See `Entry`."""
        arguments = (self.weights, self.x, self._tolerance())
        logits, steps = self._compiled("inference", self.model.forward, arguments)(*arguments)
        self._taken = np.asarray(steps)
        return np.asarray(logits)

    def step(self) -> None:
        """See `Entry`."""
        self.weights, self.state, self.last = self.prepare_step()(*self._step_arguments())

    def gradients(self) -> Gradients:
        """See `Entry`."""
        self.step()
        return {name: np.asarray(g, dtype=np.float64) for name, g in self.last.items()}

    def prepare_step(self) -> Callable[..., Any]:
        """Compile the step without running it."""
        from benchmarks.diffrax_stack import training_step

        step = training_step(self.model, self.optimiser, self.parts)
        return self._compiled("training step", step, self._step_arguments())

    def _step_arguments(self) -> tuple[Any, ...]:
        return self.weights, self.state, self.x, self.labels, self._tolerance()

    def _compiled(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        from benchmarks.diffrax_stack import Compiled

        if name not in self._functions:
            self._functions[name] = Compiled(function, *arguments)
            self.compile_seconds[name] = self._functions[name].seconds
        return self._functions[name]

    def _tolerance(self) -> np.float32:
        return np.float32(self.tolerance)

    def counts(self) -> Counts:
        """Of the last inference pass. Under `vmap` all rows are evaluated until the slowest is done."""
        from benchmarks.diffrax_stack import EVALUATIONS_BEFORE

        needed, computed = (EVALUATIONS_BEFORE + 6 * float(n) for n in (self._taken.mean(), self._taken.max()))
        return Counts(needed, computed)


def _published(work: Work, gradient: Literal["backprop", "adjoint"] = "backprop") -> ExactEntry:
    from benchmarks.published_stack import PublishedMVC  # the page can be made where torchcde is not installed

    return ExactEntry(work, PublishedMVC(work.setting, work.model, gradient))


def _torchode(work: Work) -> ExactEntry:
    from benchmarks.torchode_stack import TorchodeMVC  # likewise

    return ExactEntry(work, TorchodeMVC(work.setting, work.model))


OURS, PUBLISHED, PAPER = "smoothcde", "paper's stack, as published", "paper's stack, backprop"
DIFFRAX = "diffrax, joint steps"
ENTRIES: dict[str, Callable[[Work], Entry]] = {
    OURS: OurEntry,
    "smoothcde, bs5": lambda work: OurEntry(work, solver="bs5"),
    "smoothcde, adjoint": lambda work: OurEntry(work, "adjoint"),
    "smoothcde, nothing compiled": PlainEntry,
    PUBLISHED: _published,
    "paper's stack, as published, adjoint": lambda work: _published(work, "adjoint"),
    PAPER: lambda work: ExactEntry(work, PaperMVC(work.setting, work.model)),
    "paper's stack, adjoint": lambda work: ExactEntry(work, PaperMVC(work.setting, work.model, "adjoint")),
    "torchode": _torchode,
    DIFFRAX: DiffraxEntry,
    "diffrax, joint steps, float64 Cholesky": lambda work: DiffraxEntry(work, double_gram=True),
    "diffrax, joint steps, as it comes": lambda work: DiffraxEntry(work, tuned=False),
    "diffrax, own steps (vmap)": lambda work: DiffraxEntry(work, "row"),
}
