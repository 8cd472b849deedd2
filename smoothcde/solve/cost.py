"""What a solve will cost, from the path alone: the paper's theorem 1 as a tool."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from smoothcde.checks import check_above_zero, check_choice
from smoothcde.paths import Path
from smoothcde.solve.tableaus import TABLEAUS

MOMENTS = 64
"""Where the path's derivatives are looked at: midpoints of equal parts of the window."""


class _Calibration(NamedTuple):
    """Steps = always + rate * tolerance^(-1/(p+1)) * roughness.

    Fitted by `benchmarks/predicted_cost.py` to generated series of many bandwidths and fields as models begin with.
    """

    always: float
    rate: float


CALIBRATIONS = {
    "bosh3": _Calibration(0.17, 0.2664),
    "dopri5": _Calibration(1.68, 0.1289),
    "tsit5": _Calibration(1.30, 0.1606),
    "dopri8": _Calibration(0.88, 0.2075),
}


def roughness(path: Path) -> np.ndarray:
    """How often each row's state turns over its window.

    A method of order p errs by the (p+1)-th derivative of the state, which along z' = f(z) X' is a sum of products of
    the path's derivatives whose orders add up to p + 1, and a step's length goes with its (p+1)-th root. Theorem 1 of
    the paper keeps the highest derivative alone, which very smooth paths hardly have. On recordings the third-order
    products, whatever the method's order, rank rows as well as those of order p + 1, and any path can tell them.
    """
    share = (torch.arange(MOMENTS, dtype=torch.float64, device=path.device) + 0.5) / MOMENTS
    window = path.end - path.start
    t = path.start[:, None] + window[:, None] * share
    with torch.no_grad():
        first, second, third = (path.derivative(t, order).double().norm(dim=2) for order in (1, 2, 3))
        turns = (first**3 + first * second + third) ** (1 / 3)
        return (turns.mean(dim=1) * window).cpu().numpy()


def predict_cost(path: Path, tolerance: float, solver: str = "dopri5") -> np.ndarray:
    """Evaluations of the field that each row of a smooth path will take with its own steps; nothing is solved.

    ```python
    predict_cost(GPPath.fit(batch, bandwidth=2.0, noise=0.01), tolerance=1e-3).mean()
    ```

    Right in rank and about right in size for fields as models begin with; training makes a field steeper, and all rows
    dearer alike. Kinks are not smooth: a path that has some costs at least a step for each piece, on top.
    """
    check_choice("solver", solver, CALIBRATIONS)
    check_above_zero("tolerance", tolerance, "it must be positive, 1e-3 is a usual choice")
    tableau, (always, rate) = TABLEAUS[solver], CALIBRATIONS[solver]
    order = tableau.order
    steps = always + rate * tolerance ** (-1 / (order + 1)) * roughness(path)
    if (longest := path.longest_step) is not None:
        steps = np.maximum(steps, ((path.end - path.start) / longest).cpu().numpy())
    kinks = path.knots.isfinite().sum(dim=1).cpu().numpy() if path.knots.shape[1] else 0
    return 2 + (tableau.slopes - 1) * (np.maximum(steps, 1.0) + kinks)


def bandwidth_for(
    nfe_budget: float,
    fit: Callable[[float], Path],
    smallest: float,
    largest: float,
    tolerance: float,
    solver: str = "dopri5",
) -> float:
    """The smallest bandwidth whose paths cost no more than a budget on average, by bisection of `predict_cost`.

    ```python
    h = bandwidth_for(50, lambda h: GPPath.fit(batch, h, 0.01), smallest=0.01 * span, largest=span, tolerance=1e-3)
    ```

    Args:
        nfe_budget: evaluations per row, on average over the rows.
        fit: makes the path of a bandwidth.
        smallest: bandwidth to consider.
        largest: likewise.
        tolerance: rtol and atol of the solves to come.
        solver: method of the solves to come.
    """
    if not 0 < smallest < largest:
        raise ValueError(f"smallest is {smallest} and largest {largest}; give 0 < smallest < largest")

    def cost(bandwidth: float) -> float:
        return float(predict_cost(fit(bandwidth), tolerance, solver).mean())

    least = cost(largest)
    if least > nfe_budget:
        raise ValueError(
            f"even bandwidth {largest:g} would cost {least:.0f} evaluations per row, more than {nfe_budget:g}; "
            "allow a larger bandwidth, a looser tolerance or a larger budget"
        )
    if cost(smallest) <= nfe_budget:
        return smallest
    low, high = math.log(smallest), math.log(largest)
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if cost(math.exp(middle)) <= nfe_budget else (middle, high)
    return math.exp(high)
