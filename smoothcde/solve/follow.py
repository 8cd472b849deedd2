"""Steps that are known beforehand: no controller, no rejection, no word with the device until the end."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from smoothcde.solve.rows import ViewRows
from smoothcde.solve.step import advance
from smoothcde.solve.tableaus import Tableau
from smoothcde.solve.terms import ControlTerm


class Followed(NamedTuple):
    """What came of fixed steps.

    Attributes:
        state: at the end of each row's window.
        ratios: the method's own error estimate over tolerance of every step; zero where a view has fewer steps than
            others.
    """

    state: Float[Tensor, "rows hidden"]
    ratios: Float[Tensor, "rows steps"]


class Stretch(NamedTuple):
    """Steps that the same neighbouring views take.

    Attributes:
        views: of the model, all of them.
        first: view that takes part.
        last: behind the views that take part.
        z: states at the beginning.
        slope: there.
        controls: the path's slopes at all stages but the first.
        h: step sizes.
    """

    views: int
    first: int
    last: int
    z: Float[Tensor, "views n hidden"]
    slope: Float[Tensor, "views n hidden"]
    controls: Float[Tensor, "views n steps stages channels"]
    h: Float[Tensor, "views n steps"]


class Taken(NamedTuple):
    """What came of a stretch: state and slope behind it, and each step's mean square of error over tolerance."""

    z: Float[Tensor, "views n hidden"]
    slope: Float[Tensor, "views n hidden"]
    squared_ratios: Float[Tensor, "views n steps"]


class Schedule:
    """Steps that are known beforehand, and where in its window they ask for a path's slopes.

    Args:
        ends: for each view, where its steps end, as shares of a row's window, the last of them 1.
        tableau: the method.
    """

    def __init__(self, ends: Sequence[Sequence[float]], tableau: Tableau):
        most = max(map(len, ends))
        corners = np.array([[0.0, *view, *[1.0] * (most - len(view))] for view in ends])
        self.views, self.tableau = len(ends), tableau
        self.sizes = np.diff(corners, axis=1)  # a view with fewer steps ends with empty ones
        stages = corners[:, :-1, None] + tableau.nodes[1:] * self.sizes[:, :, None]
        every = np.concatenate([corners[:, :1], stages.reshape(self.views, -1)], axis=1)
        self.shares = tuple(map(tuple, np.minimum(every, 1.0).tolist()))
        self.stretches = list(_stretches(self.sizes))


def follow(
    schedule: Schedule, term: ControlTerm, z0: Float[Tensor, "rows hidden"], tolerances: tuple[float, float]
) -> Followed:
    """Integrate every row in the same steps as all others of its view.

    All stage positions are known, so the path's slopes are one call; the rest is a fixed sequence of operations that a
    graph can hold. Views that have ended leave, as far as those that stay are neighbours.

    Args:
        schedule: the steps.
        term: a field along a path.
        z0: states at the start.
        tolerances: rtol and atol that errors are measured in; they change no step.
    """
    views, tableau, path, term = schedule.views, schedule.tableau, term.path, term.prepared()
    samples = z0.shape[0] // views
    controls = path.slopes_at(schedule.shares).unflatten(0, (views, samples))
    begin, later = controls[:, :, :1], controls[:, :, 1:].unflatten(2, (-1, tableau.slopes - 1))
    window = (path.end - path.start).unflatten(0, (views, samples))
    h = (window[:, :, None] * torch.as_tensor(schedule.sizes, device=z0.device)[:, None]).to(z0.dtype)
    z = z0.unflatten(0, (views, samples))
    if torch.compiler.is_exporting():
        take, slope = _loop, _first_in_graph(term, z, begin)
    else:
        everyone = ViewRows(samples, views, first=0, last=views)
        take, first = _one_by_one, term.slope(z0, begin.flatten(0, 1), 0, everyone)
        whole = term.steps(tableau, z0, first, later.flatten(0, 1), h.flatten(0, 1), tolerances, everyone)
        if whole is not None:
            return Followed(whole.state, whole.squared_ratio.sqrt())
        slope = first.unflatten(0, (views, samples))
    ratios = []
    for low, high, now in schedule.stretches:
        here = slice(low, high)
        stretch = Stretch(views, low, high, z[here], slope[here], later[here, :, now], h[here, :, now])
        taken = take(tableau, term, stretch, tolerances)
        z = torch.cat([z[:low], taken.z, z[high:]])
        slope = torch.nn.functional.pad(taken.slope, (0, 0, 0, 0, low, views - high))
        ratios.append(torch.nn.functional.pad(taken.squared_ratios.sqrt(), (0, 0, 0, 0, low, views - high)))
    return Followed(z.flatten(0, 1), torch.cat(ratios, dim=2).flatten(0, 1))


def _stretches(sizes: np.ndarray) -> Iterator[tuple[int, int, slice]]:
    """The first and behind the last view that still steps, and which steps that is so for; views between them that have
    ended take empty steps.
    """
    moving = sizes > 0
    first, last = moving.argmax(axis=0), len(sizes) - moving[::-1].argmax(axis=0)
    changes = np.flatnonzero((np.diff(first) != 0) | (np.diff(last) != 0)) + 1
    for begin, end in pairwise([0, *changes.tolist(), sizes.shape[1]]):
        yield int(first[begin]), int(last[begin]), slice(begin, end)


def _first_in_graph(term: ControlTerm, z: Tensor, controls: Tensor) -> Tensor:
    field: Any = term.field
    return field.product_in_graph(field.graph_weights(), z, controls.permute(0, 3, 1, 2))


def _one_by_one(tableau: Tableau, term: ControlTerm, stretch: Stretch, tolerances: tuple[float, float]) -> Taken:
    shape, squares = stretch.z.shape[:2], []
    rows = ViewRows(shape[1], stretch.views, first=stretch.first, last=stretch.last)
    z, slope, controls, h = (x.flatten(0, 1) for x in (stretch.z, stretch.slope, stretch.controls, stretch.h))
    for step in range(h.shape[1]):
        done = advance(tableau, term, rows, z, slope, controls[:, step], h[:, step, None], tolerances)
        z, slope = done.state, done.slope
        squares.append(done.squared_ratio)
    return Taken(*(x.unflatten(0, shape) for x in (z, slope, torch.stack(squares, dim=1))))


def _loop(tableau: Tableau, term: ControlTerm, stretch: Stretch, tolerances: tuple[float, float]) -> Taken:
    """The same as a loop, for graphs: thousands of nodes less, and minutes less to trace.

    For a single series an operation costs what it takes to start it, so few operations on larger tensors: the states of
    all stages, and the error, are sums that every slope is added to as soon as it is known. What differs from step to
    step is handed in piece by piece, since the loop itself takes pieces for nothing.
    """
    # The one loop that both of torch's exporters know; not public yet, and slow to import.
    from torch._higher_order_ops.scan import scan_op

    _, first, last, z, slope, controls, h = stretch
    stages, (rtol, atol) = len(tableau.stages), tolerances
    # Column by column, what a slope adds to the state of each stage and, last, to the error.
    shares = np.zeros((stages + 1, stages + 1))
    for stage, row in enumerate(tableau.stages):
        shares[: len(row), stage] = row
    shares[:, stages] = tableau.error
    begins = torch.as_tensor(np.append(np.ones(stages), 0.0), dtype=z.dtype, device=z.device)[:, None, None, None]
    field: Any = term.field  # with `graph_weights` and `product_in_graph`, as `TanhField` has them

    def step(z, slope, *given):
        controls, scaled, (begins, *weights) = given[:stages], given[stages : 2 * stages + 1], given[2 * stages + 1 :]
        sums = z * begins + scaled[0] * slope
        for stage in range(stages):
            state = sums[stage]
            slope = field.product_in_graph(weights, state, controls[stage])
            sums = sums + scaled[stage + 1] * slope
        return [state, slope, sums[stages], state.clone()]

    # Each stage's controls [steps, views, channels, n, 1], each slope's shares [steps, stages and error, views, n, 1].
    pieces = controls.permute(3, 2, 0, 4, 1)[..., None].unbind()
    known = torch.as_tensor(shares, dtype=z.dtype, device=z.device)[:, None, :, None, None, None]
    pieces += (known * h.permute(2, 0, 1)[None, :, None, :, :, None]).unbind()
    weights = [weight[first:last].contiguous() for weight in field.graph_weights()]
    begin = [z.contiguous(), slope.contiguous()]
    state, slope, errors, ends = scan_op(step, begin, [piece.contiguous() for piece in pieces], (begins, *weights))
    sizes = torch.cat([z[None], ends]).abs()
    squares = (errors / (torch.maximum(sizes[:-1], sizes[1:]) * rtol + atol)).square().mean(dim=3)
    return Taken(state, slope, squares.permute(1, 2, 0))
