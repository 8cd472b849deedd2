"""How large the error of a step is, from what the step itself shows."""

from typing import NamedTuple

import numpy as np

from smoothcde.solve.tableaus import Tableau

DOUBT, DOUBT_OF_LONG = 1.0, 5.0
"""What few components of a state add to an estimate, over the root of their number: all of them may be small by chance,
and of a long step more so."""
STEEPNESS = 1.5
"""Powers of a step's length by which the error of a long step grows faster than that of a short one."""


class Estimate(NamedTuple):
    """Error over tolerance of each unit's step, and the power of the step's length it goes with."""

    ratio: np.ndarray
    order: np.ndarray


def embedded(tableau: Tableau, squares: np.ndarray) -> Estimate:
    """What the method's own estimate says, from mean squares of it over tolerance."""
    return Estimate(np.sqrt(squares), np.full(len(squares), float(tableau.order)))


def corrected(
    tableau: Tableau, tolerance: float, components: int, squares: np.ndarray, departures: np.ndarray | None = None
) -> Estimate:
    """The embedded estimate, corrected for few components and long steps.

    A pair of orders 5 and 4 tells the error of the lower order and keeps the result of the higher one, which is better
    as long as steps are short. Those along a smoothed path at 1e-2 to 1e-4 are not: there the result that is kept is
    up to a hundred times worse than the estimate. How long a step is shows in another difference, free as well: how far
    the state of the stage before the last, which ends where the step does, is from the result. In units of the state,
    error = constant * estimate * sqrt(departure), with one constant for a method (`Tableau.trust`): over steps of
    random and trained fields on four data sets, short and long, that is right within a factor of 1.3 to 2.2 (root mean
    square of the logarithm; the estimate alone 2 to 4). Where it is below the estimate, the estimate stands.

    Args:
        tableau: the method.
        tolerance: the larger of rtol and atol: what departures were divided by, of states of size one or less.
        components: numbers behind each mean.
        squares: mean squares of estimate over tolerance.
        departures: mean squares of departure over tolerance; None if the method shows none.
    """
    ratio, order = embedded(tableau, squares)
    chance = components**-0.5
    ratio = ratio * (1 + DOUBT * chance)
    if departures is None:
        return Estimate(ratio, order)
    trust = tableau.trust * (1 + DOUBT_OF_LONG * chance)
    longer = np.fmax(trust * np.sqrt(tolerance * np.sqrt(departures)), 1.0)
    ratio = ratio * longer
    # Little by little, so that the next step does not hang on a last digit. A step that failed may have met something
    # less smooth than that, and shrinks by the method's own order.
    return Estimate(ratio, np.where(ratio <= 1, order + STEEPNESS * np.fmin(longer - 1, 1.0), order))
