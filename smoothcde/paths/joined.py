"""Further channels for a path: time itself, and anything else that is a path."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor
from torch.nn.functional import pad

from smoothcde.paths.base import Path, Polynomials
from smoothcde.paths.piecewise import inner_knots


@dataclass(frozen=True, eq=False, kw_only=True)
class TimePath(Path):
    """Time as a channel: (t - start) / scale, with constant derivative 1 / scale.

    Appended after smoothing, so that no kernel bends it.
    """

    scale: Float[Tensor, "rows 1"]

    @classmethod
    def beside(cls, path: Path, scale: float) -> "TimePath":
        """A time channel over the windows of another path."""
        if not scale > 0:
            raise ValueError(f"scale is {scale}; it must be positive")
        column = torch.full((path.rows, 1), scale, dtype=path.dtype, device=path.device)
        return cls(start=path.start, end=path.end, scale=column)

    @property
    def template(self) -> Tensor:
        """The scale."""
        return self.scale

    def _evaluate(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        return (t - self.start[:, None])[:, :, None].to(self.dtype) / self.scale[:, None]

    def _derivative(self, t: Float64[Tensor, "rows moments"], order: int) -> Float[Tensor, "rows moments channels"]:
        slope = 1 / self.scale[:, None] if order == 1 else torch.zeros_like(self.scale[:, None])
        return slope.expand(*t.shape, 1)

    def polynomials(self) -> Polynomials:
        """A line."""
        window = torch.where(self.end > self.start, self.end - self.start, 1.0)
        slope = torch.stack([1 / self.scale, torch.zeros_like(self.scale)], dim=1)
        half = slope[:, 0] * (window[:, None] / 2).to(self.dtype)
        return Polynomials(torch.stack([half, half], dim=1), slope, window)

    def squared_derivatives_at(self, shares: tuple[float, ...], orders: int) -> Float64[Tensor, "orders rows moments"]:
        """A window over the scale, and zeros."""
        squares = self.start.new_zeros(orders, self.rows, len(shares))
        squares[0] = ((self.end - self.start)[:, None] / self.scale.detach()).square()
        return squares


@dataclass(frozen=True, eq=False, kw_only=True)
class JoinedPath(Path):
    """Several paths over the same windows, their channels side by side."""

    parts: tuple[Path, ...]

    @classmethod
    def of(cls, *parts: Path) -> "JoinedPath":
        """Join paths that have the same rows."""
        rows = [part.rows for part in parts]
        if any(count != rows[0] for count in rows):
            raise ValueError(
                f"paths with {sorted(set(rows))} rows cannot be joined; fit them to the same batch and views"
            )
        return cls(start=parts[0].start, end=parts[0].end, parts=parts)

    @property
    def template(self) -> Tensor:
        """The first part's."""
        return self.parts[0].template

    @property
    def channels(self) -> int:
        """Channels of all parts."""
        return sum(part.channels for part in self.parts)

    @property
    def knots(self) -> Float64[Tensor, "rows knots"]:
        """The knots of all parts."""
        return inner_knots(torch.cat([part.knots for part in self.parts], dim=1), self.start, self.end)

    @property
    def longest_step(self) -> Float64[Tensor, "rows"] | None:
        """The shortest of the parts'."""
        limits = [limit for part in self.parts if (limit := part.longest_step) is not None]
        return torch.stack(limits).amin(dim=0) if limits else None

    def clock(self, t: Float64[Tensor, "rows moments"]) -> Float64[Tensor, "rows moments"]:
        """The first part's clock."""
        return self.parts[0].clock(t)

    def _evaluate(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        return torch.cat([part._evaluate(t) for part in self.parts], dim=2)

    def _derivative(self, t: Float64[Tensor, "rows moments"], order: int) -> Float[Tensor, "rows moments channels"]:
        return torch.cat([part._derivative(t, order) for part in self.parts], dim=2)

    def squared_derivatives_at(
        self, shares: tuple[float, ...], orders: int
    ) -> Float64[Tensor, "orders rows moments"] | None:
        """Those of all parts, if all have them at hand."""
        found = [part.squared_derivatives_at(shares, orders) for part in self.parts]
        known = [squares for squares in found if squares is not None]
        return sum(known[1:], start=known[0]) if len(known) == len(found) else None

    def polynomials(self) -> Polynomials | None:
        """Those of all parts side by side, if all are polynomials of the same windows."""
        found = [part.polynomials() for part in self.parts]
        known = [polynomials for polynomials in found if polynomials is not None]
        if len(known) < len(found) or any(not torch.equal(p.length, known[0].length) for p in known[1:]):
            return None
        values = [p.values for p in known if p.values is not None]
        beside = _beside(values) if len(values) == len(known) else None
        return Polynomials(beside, _beside([p.slopes for p in known]), known[0].length)

    def slopes_at(self, shares: tuple[tuple[float, ...], ...]) -> Float[Tensor, "rows moments channels"]:
        """Those of all parts."""
        return torch.cat([part.slopes_at(shares) for part in self.parts], dim=2)

    def select(self, rows: Any) -> "JoinedPath":
        """The paths of the given rows."""
        return replace(super().select(rows), parts=tuple(part.select(rows) for part in self.parts))

    def tensors(self) -> tuple[Tensor, ...]:
        """Those of all parts."""
        return tuple(tensor for part in self.parts for tensor in part.tensors())

    def with_tensors(self, tensors: Sequence[Tensor]) -> "JoinedPath":
        """The same parts on other tensors."""
        parts, begin = [], 0
        for part in self.parts:
            count = len(part.tensors())
            parts.append(part.with_tensors(tensors[begin : begin + count]))
            begin += count
        return replace(self, parts=tuple(parts))


def _beside(coefficients: Sequence[Tensor]) -> Float[Tensor, "rows most channels"]:
    """Coefficients of all channels, the shorter ones filled up with zeros."""
    most = max(c.shape[1] for c in coefficients)
    return torch.cat([pad(c, (0, 0, 0, most - c.shape[1])) for c in coefficients], dim=2)
