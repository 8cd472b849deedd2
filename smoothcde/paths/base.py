"""The contract of a control path: what a Neural CDE is driven by."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from smoothcde.series import SeriesBatch

AnyPath = TypeVar("AnyPath", bound="Path")  # not typing.Self, which run-time checking by beartype refuses in methods

LONGEST_STEP = 2.0
"""In bandwidths: far from observations a smoothed path is flat, and a solver that sees nothing would step over all that
comes next. The stages of such a step are close enough that some of them fall into any bump or rise."""


class Polynomials(NamedTuple):
    """Paths and their slopes as Chebyshev polynomials.

    Attributes:
        values: coefficients of X, if they are at hand.
        slopes: coefficients of X'.
        length: in time, of what [-1, 1] is to a row's polynomials, which begin with its window.
    """

    values: Float[Tensor, "rows count channels"] | None
    slopes: Float[Tensor, "rows count channels"]
    length: Float64[Tensor, "rows"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Path(ABC):
    """A batch of continuous paths X(t), one per row, each over its own window `[start, end]`.

    Rows are view-major: with several views of `n` series, row = view * n + series.

    To add a path, write a frozen dataclass whose tensor fields all have `rows` as their first dimension, and give it
    `_evaluate`; selecting rows, moving, and gradients then work by themselves. Derivatives come from automatic
    differentiation unless `_derivative` is overridden:

    ```python
    @dataclass(frozen=True, eq=False, kw_only=True)
    class SinePath(Path):
        amplitude: Tensor                                     # [rows, channels]

        @property
        def template(self):                                   # tells channels, dtype and device
            return self.amplitude

        def _evaluate(self, t):                               # t is [rows, moments]
            return self.amplitude[:, None, :] * torch.sin(t)[:, :, None].to(self.amplitude)
    ```

    Outside its window a path is constant: `evaluate` clamps, `derivative` is zero.
    """

    start: Float64[Tensor, "rows"]
    end: Float64[Tensor, "rows"]

    @property
    @abstractmethod
    def template(self) -> Tensor:
        """Some field whose last dimension is the channels: tells `channels`, `dtype` and `device`."""

    @abstractmethod
    def _evaluate(self, t: Float64[Tensor, "rows moments"]) -> Float[Tensor, "rows moments channels"]:
        """X at times inside the window."""

    def _derivative(self, t: Float64[Tensor, "rows moments"], order: int) -> Float[Tensor, "rows moments channels"]:
        """The derivative of the given order at times inside the window, by nested forward-mode differentiation."""

        def differentiate(function):
            # A row's value depends on that row's time alone, so a tangent of ones gives every derivative at once.
            return lambda s: torch.func.jvp(function, (s,), (torch.ones_like(s),))[1]

        function = self._evaluate
        for _ in range(order):
            function = differentiate(function)
        return function(t.contiguous())

    @property
    def rows(self) -> Any:
        """Number of paths: an int, or a symbol while a graph is traced."""
        return self.start.shape[0]

    @property
    def channels(self) -> int:
        """Dimension of X(t)."""
        return self.template.shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        """Precision of X(t). Times are float64 whatever it is."""
        return self.template.dtype

    @property
    def device(self) -> torch.device:
        """Where the path lives."""
        return self.template.device

    @property
    def knots(self) -> Float64[Tensor, "rows knots"]:
        """Times a solver should end a step on, increasing per row and padded with infinity; none for smooth paths."""
        return self.start.new_zeros(self.rows, 0)

    @property
    def longest_step(self) -> Float64[Tensor, "rows"] | None:
        """The longest step a solver should try, lest it miss what the path does in between; None for any."""
        return None

    def clock(self, t: Float64[Tensor, "rows moments"]) -> Float64[Tensor, "rows moments"]:
        """The path's own parameter at real time `t`: the same, unless the path says otherwise (rectilinear does)."""
        return t

    def evaluate(self, t: Any) -> Float[Tensor, "rows *moments channels"]:
        """X(t).

        Args:
            t: a number, one time per row `[rows]`, or several per row `[rows, moments]`.

        Returns:
            `[rows, channels]`, or `[rows, moments, channels]` for several times per row.
        """
        times, single = self._times(t)
        values = self._evaluate(torch.clamp(times, self.start[:, None], self.end[:, None]))
        return values[:, 0] if single else values

    def derivative(self, t: Any, order: int = 1) -> Float[Tensor, "rows *moments channels"]:
        """The derivative of X of the given order at `t`, shaped as by `evaluate`; zero outside the window."""
        if order < 1:
            raise ValueError(f"order is {order}; a derivative's order is at least 1, use evaluate for the value")
        times, single = self._times(t)
        start, end = self.start[:, None], self.end[:, None]
        slopes = self._derivative(torch.clamp(times, start, end), order)
        inside = (times >= start) & (times <= end)
        slopes = slopes * inside[:, :, None].to(slopes.dtype)
        return slopes[:, 0] if single else slopes

    def slopes_at(self, shares: tuple[tuple[float, ...], ...]) -> Float[Tensor, "rows moments channels"]:
        """X' at given shares of each row's own window, the same for all rows of a view: where a plan wants it."""
        passed = torch.tensor(shares, dtype=torch.float64, device=self.device)[:, None, :]
        start, end = (bound.view(len(shares), -1, 1) for bound in (self.start, self.end))
        times = torch.minimum(start + passed * (end - start), end)
        return self.derivative(times.flatten(0, 1))

    def times_at(self, shares: Sequence[float]) -> Float64[Tensor, "rows moments"]:
        """When the same shares of each row's own window have passed."""
        passed = torch.tensor(shares, dtype=torch.float64, device=self.device)
        return self.start[:, None] + (self.end - self.start)[:, None] * passed

    def squared_derivatives_at(
        self, shares: tuple[float, ...], orders: int
    ) -> Float64[Tensor, "orders rows moments"] | None:
        """|X'|^2, |X''|^2 and so on, over all channels, at the same shares of each row's own window, time measured in
        windows, if they are at hand; None if they would cost as much as many slopes. Without gradients.
        """
        return None

    def polynomials(self) -> Polynomials | None:
        """The whole path of every row as one polynomial, if that is what it is."""
        return None

    def select(self: AnyPath, rows: Any) -> AnyPath:
        """The paths of the given rows (indices or a boolean mask)."""
        index = torch.arange(self.rows, device=self.device)[rows].reshape(-1)
        # index_select's backward pass is several times faster than that of indexing with a tensor.
        tensors = {
            f.name: t.index_select(0, index) for f in fields(self) if isinstance(t := getattr(self, f.name), Tensor)
        }
        return replace(self, **tensors)

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor that X(t) depends on smoothly: what an adjoint must send gradients to."""
        return tuple(getattr(self, name) for name in self._smooth_fields())

    def with_tensors(self: AnyPath, tensors: Sequence[Tensor]) -> AnyPath:
        """The same path on other tensors, in the order of `tensors()`."""
        return replace(self, **dict(zip(self._smooth_fields(), tensors, strict=True)))

    def _smooth_fields(self) -> list[str]:
        times = {"start", "end", "grid", "landings", "longest"}  # where things happen is data, not something to learn
        return [
            f.name
            for f in fields(self)
            if f.name not in times and isinstance(t := getattr(self, f.name), Tensor) and t.is_floating_point()
        ]

    def _times(self, t: Any) -> tuple[Float64[Tensor, "rows moments"], bool]:
        times = torch.as_tensor(t, dtype=torch.float64, device=self.device)
        if times.ndim == 0:
            times = times.expand(self.rows)
        if times.ndim not in (1, 2) or times.shape[0] != self.rows:
            raise ValueError(
                f"times have shape {tuple(times.shape)}; give a number, one time per row ({self.rows},), "
                f"or several per row ({self.rows}, moments)"
            )
        return (times[:, None], True) if times.ndim == 1 else (times, False)


def repeat_views(tensor: Tensor, views: int) -> Tensor:
    """`[n, ...]` to `[views * n, ...]`, view-major."""
    return tensor if views == 1 else tensor.repeat(views, *[1] * (tensor.ndim - 1))


def positive_per_view(value: Any, name: str, views: int, batch: SeriesBatch) -> Float64[Tensor, "views"]:
    """A positive setting, one number or one per view, as float64 on the batch's device; differentiable."""
    setting = torch.as_tensor(value, dtype=torch.float64, device=batch.device)
    if setting.ndim > 1 or (setting.ndim == 1 and len(setting) not in (1, views)):
        raise ValueError(f"{name} has shape {tuple(setting.shape)}; give one number, or one per view ({views})")
    if not all(0 < number < math.inf for number in setting.detach().reshape(-1).tolist()):
        raise ValueError(f"{name} is {setting.tolist()}; it must be positive and finite")
    return setting.expand(views)


def view_weights(weights: Tensor | None, batch: SeriesBatch) -> int:
    """How many views the weights `[n, views, length]` make; 1 without weights."""
    if weights is None:
        return 1
    n, length = batch.values.shape[:2]
    if weights.ndim != 3 or weights.shape[0] != n or weights.shape[2] != length:
        raise ValueError(
            f"weights have shape {tuple(weights.shape)}; expected [n, views, length] = [{n}, views, {length}]"
        )
    return weights.shape[1]
