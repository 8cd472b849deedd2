"""What a solve will cost, from the path alone: the paper's theorem 1 as a tool."""

import math
from collections.abc import Callable

import numpy as np

from smoothcde.checks import check_above_zero, check_choice
from smoothcde.paths import Path
from smoothcde.solve.pace import TURNS, TURNS_BY_TIME, turning, turning_at_hand, turns_of_a_step
from smoothcde.solve.tableaus import TABLEAUS


def predict_cost(path: Path, tolerance: float, solver: str = "dopri5") -> np.ndarray:
    """Evaluations of the field that each row of a smooth path will take with its own steps; nothing is solved.

    ```python
    predict_cost(GPPath.fit(batch, bandwidth=2.0, noise=0.01), tolerance=1e-3).mean()
    ```

    Right in rank and about right in size for fields as models begin with; training makes a field steeper, and all rows
    dearer alike. Kinks are not smooth: a path that has some costs at least a step for each piece, on top.
    """
    check_choice("solver", solver, TURNS)
    check_above_zero("tolerance", tolerance, "it must be positive, 1e-3 is a usual choice")
    tableau = TABLEAUS[solver]
    known = turning_at_hand(path)
    by_turns, turns = known is not None, turning(path) if known is None else known
    always, rate = (TURNS if by_turns else TURNS_BY_TIME)[solver]
    steps = always + turns.mean(axis=1) / turns_of_a_step(rate, tableau.order, tolerance)
    if (longest := path.longest_step) is not None:
        steps = np.maximum(steps, ((path.end - path.start) / longest).cpu().numpy())
    kinks = path.knots.isfinite().sum(dim=1).cpu().numpy() if path.knots.shape[1] else 0
    return 2 - by_turns + (tableau.slopes - 1) * (np.maximum(steps, 1.0) + kinks)


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
