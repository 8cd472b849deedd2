"""Steps that are known beforehand: no controller, no rejection, no word with the device until the end."""

from itertools import groupby
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
        ratios: error estimate over tolerance of every step, as the adaptive solver asks for at most 1; zero where a
            view has fewer steps than others.
    """

    state: Float[Tensor, "rows hidden"]
    ratios: Float[Tensor, "rows steps"]


def follow(
    corners: np.ndarray,
    tableau: Tableau,
    term: ControlTerm,
    z0: Float[Tensor, "rows hidden"],
    tolerances: tuple[float, float],
) -> Followed:
    """Integrate every row in the same steps as all others of its view.

    All stage positions are known, so the path's slopes are one call; the rest is a fixed sequence of operations that a
    graph can hold. Views that have ended leave, as far as those that stay are neighbours.

    Args:
        corners: `[views, steps + 1]`, where steps begin and end, as shares of a row's window, from 0 to 1; views with
            fewer steps repeat the 1.
        tableau: the method.
        term: a field along a path.
        z0: states at the start.
        tolerances: rtol and atol that errors are measured in; they change no step.
    """
    views, path = corners.shape[0], term.path
    sizes = np.diff(corners, axis=1)
    positions = corners[:, :-1, None] + tableau.nodes[1:] * sizes[:, :, None]
    positions = np.minimum(np.concatenate([corners[:, :1], positions.reshape(views, -1)], axis=1), 1.0)
    samples = z0.shape[0] // views
    slopes = path.slopes_at(torch.as_tensor(positions, device=z0.device)).unflatten(0, (views, samples))
    window = (path.end - path.start).unflatten(0, (views, samples))
    z = z0.unflatten(0, (views, samples))
    if torch.compiler.is_exporting():
        h = window[:, :, None] * torch.as_tensor(sizes, device=z0.device)[:, None, :]
        return _looped(tableau, term.field, z, slopes, h.to(z0.dtype), tolerances)
    everyone = ViewRows(samples, views, first=0, last=views)
    first = term.slope(z0, slopes[:, :, :1].flatten(0, 1), 0, everyone).unflatten(0, (views, samples))
    stages = tableau.slopes - 1
    ratios = []
    for (low, high), group in groupby(range(sizes.shape[1]), lambda step: _present(sizes[:, step])):
        rows = ViewRows(samples, views, first=low, last=high)
        state, slope = z[low:high].flatten(0, 1), first[low:high].flatten(0, 1)
        squares = []
        for step in group:
            controls = slopes[low:high, :, 1 + step * stages : 1 + (step + 1) * stages].flatten(0, 1)
            share = torch.as_tensor(sizes[low:high, step, None], device=z0.device)
            h = (share * window[low:high]).to(z0.dtype).flatten()[:, None]
            done = advance(tableau, term, rows, state, slope, controls, h, tolerances)
            state, slope = done.state, done.slope
            squares.append(done.squared_ratio)
        ended = torch.stack(squares, dim=1).sqrt().unflatten(0, (high - low, samples))
        ratios.append(torch.nn.functional.pad(ended, (0, 0, 0, 0, low, views - high)))
        z = torch.cat([z[:low], state.unflatten(0, (high - low, samples)), z[high:]])
        first = torch.nn.functional.pad(slope.unflatten(0, (high - low, samples)), (0, 0, 0, 0, low, views - high))
    return Followed(z.flatten(0, 1), torch.cat(ratios, dim=2).flatten(0, 1))


def _present(sizes: np.ndarray) -> tuple[int, int]:
    """The first and behind the last view that still steps; views between them that have ended take empty steps."""
    moving = np.flatnonzero(sizes)
    return int(moving[0]), int(moving[-1]) + 1


def _looped(tableau: Tableau, field: Any, z0: Tensor, slopes: Tensor, h: Tensor, tolerances) -> Followed:
    """The same as a loop, for graphs: thousands of nodes less, and minutes less to trace.

    All views take part in all steps; those that have ended take empty ones. For a single series an operation costs what
    it takes to start it, so few operations on larger tensors: the states of all stages, and the error, are sums that
    every slope is added to as soon as it is known.

    Args:
        tableau: the method.
        field: with `graph_weights` and `product_in_graph`, as `TanhField` has them.
        z0: `[views, n, hidden]`.
        slopes: of the path, at the start and at all stages of all steps, `[views, n, 1 + steps * stages, channels]`.
        h: step sizes `[views, n, steps]`.
        tolerances: rtol and atol.
    """
    # The one loop that both of torch's exporters know; not public yet, and slow to import.
    from torch._higher_order_ops.scan import scan_op

    stages, (rtol, atol) = len(tableau.stages), tolerances
    # Column by column, what a slope adds to the state of each stage and, last, to the error.
    shares = np.zeros((stages + 1, stages + 1))
    for stage, row in enumerate(tableau.stages):
        shares[: len(row), stage] = row
    shares[:, stages] = tableau.error
    begins = torch.as_tensor(np.append(np.ones(stages), 0.0), dtype=z0.dtype, device=z0.device)[:, None, None, None]

    def step(z, slope, controls, scaled, begins, *weights):
        sums = z * begins + scaled[0] * slope
        for stage in range(stages):
            state = sums[stage]
            slope = field.product_in_graph(weights, state, controls[stage])
            sums = sums + scaled[stage + 1] * slope
        ratio = sums[stages] / (torch.maximum(z.abs(), state.abs()) * rtol + atol)
        return [state, slope, ratio.square().mean(dim=2).sqrt()]

    weights = tuple(field.graph_weights())
    first = field.product_in_graph(weights, z0, slopes[:, :, 0].transpose(1, 2)[..., None])
    # [steps, stages, views, channels, n, 1] and [steps, slopes, stages and error, views, n, 1]
    controls = slopes[:, :, 1:].unflatten(2, (h.shape[2], stages)).permute(2, 3, 0, 4, 1)[..., None].contiguous()
    known = torch.as_tensor(shares, dtype=z0.dtype, device=z0.device)[:, :, None, None, None]
    scaled = (known * h.permute(2, 0, 1)[:, None, None, :, :, None]).contiguous()
    state, _, ratios = scan_op(step, [z0.contiguous(), first.contiguous()], [controls, scaled], (begins, *weights))
    return Followed(state.flatten(0, 1), ratios.flatten(1, 2).T)
