"""One Runge-Kutta step of many rows."""

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from smoothcde.solve.rows import Rows
from smoothcde.solve.tableaus import Tableau
from smoothcde.solve.terms import Term


class _Combine(torch.autograd.Function):
    """z + h sum_j c_j k_j as one node of the graph; plain operations would keep one intermediate per slope."""

    @staticmethod
    def forward(ctx, z, h, coefficients, *slopes):
        ctx.save_for_backward(h)
        ctx.coefficients = coefficients
        return _combine(z, h, coefficients, slopes)

    @staticmethod
    def backward(ctx, gradient):
        (h,) = ctx.saved_tensors
        scaled = gradient * h
        return gradient, None, None, *(scaled * c if c else None for c in ctx.coefficients)


def _combine(z: Tensor, h: Tensor, coefficients: tuple[float, ...], slopes) -> Tensor:
    total = None
    for c, k in zip(coefficients, slopes, strict=True):
        if c:
            total = k * c if total is None else total.add_(k, alpha=c)
    return z.clone() if total is None else torch.addcmul(z, h, total)


def combine(z: Tensor, h: Float[Tensor, "rows 1"], coefficients: np.ndarray, slopes) -> Tensor:
    """z + h sum_j c_j k_j. Step sizes are not differentiated."""
    numbers = tuple(coefficients.tolist())
    if not torch.is_grad_enabled():
        return _combine(z, h, numbers, slopes)
    return _Combine.apply(z, h, numbers, *slopes)


class Dense(NamedTuple):
    """States wanted inside the step: which rows, and at which share of the step."""

    rows: Tensor
    shares: Float64[Tensor, "wanted"]


class Stale(NamedTuple):
    """Rows that just passed a kink: the slope they carry is that of the other side."""

    rows: Bool[Tensor, "rows"]
    times: Float64[Tensor, "rows 1"]


class Step(NamedTuple):
    """What a step produced.

    Attributes:
        first: the slope at the beginning of the step.
        state: at the end of the step.
        slope: at the end of the step, the next step's first.
        states: wanted inside the step, or None.
        squared_ratio: per row, the mean square of error over tolerance; carries no gradient.
        squared_departure: the same of `Tableau.departure`, if there is one.
    """

    first: Float[Tensor, "rows hidden"]
    state: Float[Tensor, "rows hidden"]
    slope: Float[Tensor, "rows hidden"]
    states: Float[Tensor, "wanted hidden"] | None
    squared_ratio: Float[Tensor, "rows"]
    squared_departure: Float[Tensor, "rows"] | None


def take_step(
    tableau: Tableau,
    term: Term,
    rows: Rows,
    z: Float[Tensor, "rows hidden"],
    first: Float[Tensor, "rows hidden"] | None,
    times: Float64[Tensor, "rows stages"],
    h: Float[Tensor, "rows 1"],
    tolerances: tuple[float, float],
    dense: Dense | None,
    stale: Stale | None = None,
) -> Step:
    """Try one step.

    `first` is the slope at its beginning if known, but for `stale` rows; `times` are of the stages still to evaluate.
    """
    if first is not None and stale is not None:
        fresh = term.slope(z, term.controls(stale.times), 0, rows)
        first = torch.where(stale.rows[:, None], fresh, first)
    return advance(tableau, term, rows, z, first, term.controls(times), h, tolerances, dense)


def advance(
    tableau: Tableau,
    term: Term,
    rows: Rows,
    z: Float[Tensor, "rows hidden"],
    first: Float[Tensor, "rows hidden"] | None,
    controls: Any,
    h: Float[Tensor, "rows 1"],
    tolerances: tuple[float, float],
    dense: Dense | None = None,
) -> Step:
    """Try one step whose stages' `controls` are at hand: those still to evaluate."""
    if first is not None and dense is None:
        whole = term.step(tableau, z, first, controls, h, tolerances, rows)
        if whole is not None:
            return Step(first, whole.state, whole.slope, None, whole.squared_ratio, whole.squared_departure)
    slopes = [] if first is None else [first]
    known = len(slopes)
    state = z
    for stage in range(known, tableau.slopes):
        state = combine(z, h, tableau.stages[stage - 1], slopes) if stage else z
        slopes.append(term.slope(state, controls, stage - known, rows))
    states = None if dense is None else _inside(tableau, z, h, slopes, dense)
    with torch.no_grad():
        rtol, atol = tolerances
        allowed = torch.maximum(z.abs(), state.abs()).mul_(rtol).add_(atol)
        ratio = _squared_ratio(tableau.error, h, slopes, allowed)
        departure = None if tableau.departure is None else _squared_ratio(tableau.departure, h, slopes, allowed)
    return Step(slopes[0], state, slopes[-1], states, ratio, departure)


def _squared_ratio(weights: np.ndarray, h: Tensor, slopes, allowed: Tensor) -> Tensor:
    difference = _combine(torch.zeros_like(allowed), h, tuple(weights.tolist()), slopes)
    return (difference / allowed).square_().mean(dim=1)


def _inside(tableau: Tableau, z, h, slopes, dense: Dense) -> Tensor:
    powers = dense.shares[:, None] ** torch.arange(1, tableau.dense.shape[1] + 1, device=z.device)
    weights = powers @ torch.as_tensor(tableau.dense.T, device=z.device)  # [wanted, slopes]
    weights = (weights * h[dense.rows].double()).to(z.dtype)
    moved = z[dense.rows]
    for slope, weight, used in zip(slopes, weights.unbind(1), np.abs(tableau.dense).sum(axis=1), strict=True):
        if used:
            moved = moved + weight[:, None] * slope[dense.rows]
    return moved
