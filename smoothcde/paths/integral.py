"""A path with its running integral as further channels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from smoothcde.paths.base import Path, Polynomials

PANELS, NODES = 16, 8


@dataclass(frozen=True, eq=False, kw_only=True)
class IntegralPath(Path):
    """Another path X and, beside it, its integral from the start of the window to t, over `scale`.

    The slope of an integral is the path itself, so dz = f(z) dX gains a part g(z) X dt, by which a state moves with
    where the path is and not only with where it goes.
    """

    path: Path
    scale: float

    @classmethod
    def of(cls, path: Path, scale: float) -> "IntegralPath":
        """A path with its integral in units of `scale`."""
        if not scale > 0:
            raise ValueError(f"scale is {scale}; it must be positive")
        return cls(start=path.start, end=path.end, path=path, scale=float(scale))

    @property
    def template(self) -> Tensor:
        """The path's."""
        return self.path.template

    @property
    def channels(self) -> int:
        """Twice the path's."""
        return 2 * self.path.channels

    @property
    def knots(self) -> Float64[Tensor, "rows knots"]:
        """The path's."""
        return self.path.knots

    @property
    def longest_step(self) -> Float64[Tensor, "rows"] | None:
        """The path's."""
        return self.path.longest_step

    def clock(self, t: Float64[Tensor, "rows moments"]) -> Float64[Tensor, "rows moments"]:
        """The path's."""
        return self.path.clock(t)

    def _evaluate(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        return torch.cat([self.path._evaluate(t), self._integral(t) / self.scale], dim=2)

    def _derivative(self, t: Float64[Tensor, "rows moments"], order: int) -> Float[Tensor, "rows moments channels"]:
        before = self.path._evaluate(t) if order == 1 else self.path._derivative(t, order - 1)
        return torch.cat([self.path._derivative(t, order), before / self.scale], dim=2)

    def polynomials(self) -> Polynomials | None:
        """The path's slopes, and beside them its values."""
        found = self.path.polynomials()
        if found is None or found.values is None:
            return None
        return Polynomials(None, torch.cat([found.slopes, found.values / self.scale], dim=2), found.length)

    def squared_derivatives_at(
        self, shares: tuple[float, ...], orders: int
    ) -> Float64[Tensor, "orders rows moments"] | None:
        """The path's, and with them the one before each."""
        found = self.path.squared_derivatives_at(shares, orders)
        if found is None:
            return None
        values = self.path.evaluate(self.times_at(shares)).detach().double()
        before = torch.cat([values.square().sum(dim=2)[None], found[:-1]])
        return found + before * ((self.end - self.start) / self.scale)[:, None].square()

    def _integral(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        """By Gauss-Legendre quadrature on panels that end on the path's knots; an equation asks for slopes only."""
        start = self.start[:, None, None]
        shares = torch.linspace(0, 1, PANELS + 1, dtype=t.dtype, device=t.device)
        cuts = start + shares * (t[:, :, None] - start)
        knots = self.path.knots[:, None, :].expand(-1, t.shape[1], -1)
        cuts = torch.cat([cuts, torch.minimum(torch.maximum(knots, start), t[:, :, None])], dim=2).sort(dim=2).values
        nodes, weights = (torch.as_tensor(part, device=t.device) for part in np.polynomial.legendre.leggauss(NODES))
        half, middle = cuts.diff(dim=2)[..., None] / 2, (cuts[..., :-1, None] + cuts[..., 1:, None]) / 2
        values = self.path._evaluate((middle + half * nodes).flatten(1)).unflatten(1, (t.shape[1], -1))
        return ((half * weights).flatten(2)[..., None].to(self.dtype) * values).sum(dim=2)

    def select(self, rows: Any) -> "IntegralPath":
        """The paths of the given rows."""
        return replace(super().select(rows), path=self.path.select(rows))

    def tensors(self) -> tuple[Tensor, ...]:
        """The path's."""
        return self.path.tensors()

    def with_tensors(self, tensors: Sequence[Tensor]) -> "IntegralPath":
        """The same path on other tensors."""
        return replace(self, path=self.path.with_tensors(tensors))
