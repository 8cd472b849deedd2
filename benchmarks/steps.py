"""What a tolerance buys: evaluations and errors row by row, of the same method (Dormand and Prince) in three hands.

    python -m benchmarks.steps
    python -m benchmarks.steps --series 4      # a try; writes nothing

In double precision and untimed, so that it does not matter what else the machine does.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor
from torchdiffeq import odeint

from benchmarks.machine import described
from benchmarks.record import write
from benchmarks.settings import SETTINGS, Work
from smoothcde.models.cde import Beginning
from smoothcde.solve import Rows, integrate

TOLERANCES = (1e-2, 1e-3, 1e-4)
SERIES = 32


def ours(begin: Beginning, views: int, tolerance: float) -> tuple[Tensor, np.ndarray]:
    """A step size per row."""
    path = begin.path
    solved = integrate(begin.term, begin.z0, path.start, path.end, views=views, rtol=tolerance, atol=tolerance)
    return solved.state, solved.stats.nfe


def scipys(begin: Beginning, views: int, tolerance: float) -> tuple[Tensor, np.ndarray]:
    """A step size per row: one solve after the other."""
    path, everyone = begin.path, Rows.all(begin.path.rows, views)
    states, evaluations = [], []
    for row in range(path.rows):
        term, alone = begin.term.select(torch.tensor([row])), everyone.keep(np.array([row]))

        def slope(t: float, z: np.ndarray, term=term, alone=alone) -> np.ndarray:
            controls = term.controls(torch.full((1, 1), t, dtype=torch.float64))
            return term.slope(torch.as_tensor(z)[None], controls, 0, alone)[0].numpy()

        window = (float(path.start[row]), float(path.end[row]))
        found = solve_ivp(slope, window, begin.z0[row].numpy(), "RK45", rtol=tolerance, atol=tolerance)
        states.append(torch.as_tensor(found.y[:, -1]))
        evaluations.append(found.nfev)
    return torch.stack(states), np.array(evaluations)


def torchdiffeqs(begin: Beginning, views: int, tolerance: float) -> tuple[Tensor, np.ndarray]:
    """One step size for all rows."""
    path, rows, count = begin.path, Rows.all(begin.path.rows, views), [0]

    def slope(t: Tensor, z: Tensor) -> Tensor:
        count[0] += 1
        return begin.term.slope(z, begin.term.controls(t.double().expand(path.rows, 1)), 0, rows)

    window = torch.stack([path.start[0], path.end[0]])
    # Left to itself it steps beyond the end, where a path stands still, and interpolates back: told not to.
    options = {"step_t": window[1:]}
    state = odeint(slope, begin.z0, window, method="dopri5", rtol=tolerance, atol=tolerance, options=options)[-1]
    return state, np.full(path.rows, count[0])


ENTRIES: dict[str, Callable[[Beginning, int, float], tuple[Tensor, np.ndarray]]] = {
    "smoothcde, a step size per row": ours,
    "SciPy's RK45, a step size per row": scipys,
    "torchdiffeq, one step size for all": torchdiffeqs,
}


def truth_of(begin: Beginning, views: int) -> Tensor:
    """Final states that all are held against."""
    path, exact = begin.path, {"solver": "dopri8", "rtol": 1e-11, "atol": 1e-11}
    return integrate(begin.term, begin.z0, path.start, path.end, views=views, **exact).state


def errors_of(state: Tensor, truth: Tensor, tolerance: float) -> np.ndarray:
    """Of each row, the largest component's error in units of atol + rtol |z|."""
    return ((state - truth).abs() / (tolerance * (1 + truth.abs()))).amax(dim=1).numpy()


def summary(evaluations: np.ndarray, errors: np.ndarray) -> dict[str, float]:
    """What a line tells of its rows."""
    return {
        "evaluations": float(evaluations.mean()),
        "median": float(np.median(errors)),
        "worst": float(errors.max()),
        "beyond ten": float((errors > 10).mean()),
    }


@torch.no_grad()
def measure(data: str, series: int) -> list[dict[str, Any]]:
    """A line per tolerance and entry."""
    work = Work.of(SETTINGS[data], series)
    model = work.model.double()
    begin, lines = model.begin(work.batch(torch.float64)), []
    truth = truth_of(begin, model.views)
    for tolerance in TOLERANCES:
        for name, solve in ENTRIES.items():
            state, evaluations = solve(begin, model.views, tolerance)
            errors = errors_of(state, truth, tolerance)
            line = {"tolerance": tolerance, "entry": name, **summary(evaluations, errors)}
            lines.append(line)
            print(f"{data} {tolerance:.0e} {name}: {line}", flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, help=f"of each data set; {SERIES} if the result is to be kept")
    series = parser.parse_args().series
    found = {data: measure(data, series or SERIES) for data in SETTINGS}
    if series is None:
        write("steps", {"series": SERIES, **described(), "settings": found})


if __name__ == "__main__":
    main()
