"""What is integrated: the right-hand side of a differential equation, with what depends on time alone kept apart."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from smoothcde.native import StepResult
from smoothcde.paths import LogSignaturePath, Path
from smoothcde.solve.rows import Rows
from smoothcde.solve.tableaus import Tableau


class Term(ABC):
    """dz/dt = slope(z, t), row by row.

    A step's stage times are known before its first stage, so everything that depends on time alone is computed for all
    stages in one call of `controls`; `slope` then does the work that depends on the state.
    """

    @abstractmethod
    def controls(self, times: Float64[Tensor, "rows stages"]) -> Any:
        """What `slope` needs of the times, `[rows, stages, ...]`."""

    @abstractmethod
    def slope(
        self, z: Float[Tensor, "rows hidden"], controls: Any, stage: int, rows: Rows
    ) -> Float[Tensor, "rows hidden"]:
        """dz/dt at a stage."""

    @abstractmethod
    def select(self, positions: Tensor) -> "Term":
        """The term of the rows at the given positions."""

    @property
    @abstractmethod
    def knots(self) -> Float64[Tensor, "rows knots"] | None:
        """Times at which the right-hand side is not smooth, or None if it always is."""

    @property
    def longest_step(self) -> Float64[Tensor, "rows"] | None:
        """The longest step to try, or None for any."""
        return None

    @property
    def driven(self) -> bool:
        """Whether something from outside moves the state: then its first slopes do not tell what is to come."""
        return True

    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """Per-row tensors that the right-hand side depends on, for the adjoint."""

    @abstractmethod
    def with_tensors(self, tensors: Sequence[Tensor]) -> "Term":
        """The same term on other tensors, in the order of `tensors()`."""

    @abstractmethod
    def parameters(self) -> tuple[Tensor, ...]:
        """Parameters shared by all rows, for the adjoint."""

    def prepared(self) -> "Term":
        """The same right-hand side, ready to be evaluated many times; a solve begins with it."""
        return self

    def step(
        self,
        tableau: Tableau,
        z: Float[Tensor, "rows hidden"],
        first: Float[Tensor, "rows hidden"],
        controls: Any,
        h: Float[Tensor, "rows 1"],
        tolerances: tuple[float, float],
        rows: Rows,
    ) -> StepResult | None:
        """A whole Runge-Kutta step at once, by terms that know a faster way than slope by slope; None for others.

        `first` is the slope at its beginning, `controls` are those of all stages behind it.
        """
        return None


@runtime_checkable
class Field(Protocol):
    """The vector field f of a controlled differential equation.

    It need never build the `hidden x channels` matrix: all a solver asks for is its product with dX/dt.

    A field may offer more. `prepared()`: a form of itself that is faster for the length of a solve. And of that form,
    `step` and `steps`: whole steps, see `ControlTerm`. (Looked up by name: asking for a protocol takes as long as a
    product.)
    """

    def product(
        self, z: Float[Tensor, "rows hidden"], dx: Float[Tensor, "rows channels"], rows: Rows
    ) -> Float[Tensor, "rows hidden"]:
        """f(z) dx, row by row."""
        ...


@dataclass(frozen=True, eq=False)
class AlongPath(Term):
    """A field that is driven by a path: what both kinds of control share."""

    field: Any
    path: Path

    def controls(self, times: Float64[Tensor, "rows stages"]) -> Float[Tensor, "rows stages channels"]:
        """dX/dt at the stages."""
        return self.path.derivative(times)

    def select(self, positions: Tensor) -> "Term":
        """The same field along the paths of the given rows."""
        return replace(self, path=self.path.select(positions))

    @property
    def knots(self) -> Float64[Tensor, "rows knots"] | None:
        """The path's."""
        knots = self.path.knots
        return knots if knots.shape[1] else None

    @property
    def longest_step(self) -> Float64[Tensor, "rows"] | None:
        """The path's."""
        return self.path.longest_step

    def tensors(self) -> tuple[Tensor, ...]:
        """The path's."""
        return self.path.tensors()

    def with_tensors(self, tensors: Sequence[Tensor]) -> "Term":
        """The same field along the path on other tensors."""
        return replace(self, path=self.path.with_tensors(tensors))

    def parameters(self) -> tuple[Tensor, ...]:
        """The field's."""
        return parameters_of(self.field)


@dataclass(frozen=True, eq=False)
class ControlTerm(AlongPath):
    """dz/dt = f(z) dX/dt: a neural controlled differential equation (the paper's eq. 1).

    Attributes:
        field: see `Field`.
        path: what drives it.
    """

    def slope(
        self, z: Float[Tensor, "rows hidden"], controls: Tensor, stage: int, rows: Rows
    ) -> Float[Tensor, "rows hidden"]:
        """f(z) dX/dt."""
        return self.field.product(z, controls[:, stage], rows)

    def prepared(self) -> "ControlTerm":
        """With the field's own faster form."""
        return replace(self, field=self.field.prepared()) if hasattr(self.field, "prepared") else self

    def step(
        self,
        tableau: Tableau,
        z: Float[Tensor, "rows hidden"],
        first: Float[Tensor, "rows hidden"],
        controls: Tensor,
        h: Float[Tensor, "rows 1"],
        tolerances: tuple[float, float],
        rows: Rows,
    ) -> StepResult | None:
        """By the field, if it takes whole steps."""
        if not hasattr(self.field, "step"):
            return None
        return self.field.step(tableau.compiled, z, first, controls, h, tolerances, rows)

    def steps(
        self,
        tableau: Tableau,
        z: Float[Tensor, "rows hidden"],
        first: Float[Tensor, "rows hidden"],
        controls: Float[Tensor, "rows steps stages channels"],
        h: Float[Tensor, "rows steps"],
        tolerances: tuple[float, float],
        rows: Rows,
    ) -> StepResult | None:
        """Several steps at once by the field, if it takes them and nobody wants gradients."""
        if torch.is_grad_enabled() or not hasattr(self.field, "steps"):
            return None
        return self.field.steps(tableau.compiled, z, first, controls, h, tolerances, rows)


@dataclass(frozen=True, eq=False)
class ODETerm(Term):
    """dz/dt = f(t, z): an ordinary differential equation, `f(t [rows], z [rows, hidden])`.

    Attributes:
        field: f.
        autonomous: whether it takes no notice of t.
    """

    field: Any
    autonomous: bool = False

    def controls(self, times: Float64[Tensor, "rows stages"]) -> Tensor:
        """The times themselves."""
        return times

    def slope(
        self, z: Float[Tensor, "rows hidden"], controls: Tensor, stage: int, rows: Rows
    ) -> Float[Tensor, "rows hidden"]:
        """f(t, z)."""
        return self.field(controls[:, stage].to(z.dtype), z)

    def select(self, positions: Tensor) -> "ODETerm":
        """Itself: it is the same for every row."""
        return self

    @property
    def knots(self) -> None:
        """None: the field is taken to be smooth."""
        return None

    @property
    def driven(self) -> bool:
        """By time, unless the field takes no notice of it."""
        return not self.autonomous

    def tensors(self) -> tuple[Tensor, ...]:
        """None."""
        return ()

    def with_tensors(self, tensors: Sequence[Tensor]) -> "ODETerm":
        """Itself."""
        return self

    def parameters(self) -> tuple[Tensor, ...]:
        """The field's."""
        return parameters_of(self.field)


def parameters_of(field: Any) -> tuple[Tensor, ...]:
    """The trainable parameters of a module; none for a plain function."""
    found: Iterable[Tensor] = field.parameters() if isinstance(field, nn.Module) else ()
    return tuple(p for p in found if p.requires_grad and torch.is_floating_point(p))


@dataclass(frozen=True, eq=False)
class LogODETerm(AlongPath):
    """dz/dt = f(z) dX/dt + sum_{i<j} [f_i, f_j](z) dA_ij/dt: the log-ODE method on a path of log-signatures of depth 2.

    [f_i, f_j] = Df_j f_i - Df_i f_j is the Lie bracket of two columns of the field, from its directional derivatives
    (forward mode). With depth 1 there are no areas, and this is `ControlTerm`. (Walker et al., "Log Neural Controlled
    Differential Equations: The Lie Brackets Make a Difference", 2024.)

    Attributes:
        field: with `product`, `matrix` and `column_derivatives`, as `TanhField` has them.
        path: increments first, then areas for i < j.
    """

    path: LogSignaturePath

    def slope(
        self, z: Float[Tensor, "rows hidden"], controls: Tensor, stage: int, rows: Rows
    ) -> Float[Tensor, "rows hidden"]:
        """The log-ODE vector field."""
        channels = self.path.base_channels
        increments, areas = controls[:, stage, :channels], controls[:, stage, channels:]
        if not areas.shape[1]:
            return self.field.product(z, increments, rows)
        matrix = self.field.matrix(z, rows)
        signed = _antisymmetric(areas, channels)
        # sum_{i<j} A_ij (Df_j f_i - Df_i f_j) = sum_j Df_j (f A)_j for the antisymmetric A.
        brackets = self.field.column_derivatives(z, matrix @ signed, rows).sum(dim=2)
        return torch.bmm(matrix, increments[:, :, None])[:, :, 0] + brackets


def _antisymmetric(areas: Float[Tensor, "rows pairs"], channels: int) -> Float[Tensor, "rows channels channels"]:
    first, second = torch.triu_indices(channels, channels, offset=1, device=areas.device)
    upper = areas.new_zeros(len(areas), channels, channels)
    upper[:, first, second] = areas
    return upper - upper.mT
