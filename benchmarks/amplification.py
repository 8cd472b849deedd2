"""What a tolerance cannot buy: errors of rows whose own flow makes them larger on the way.

    python -m benchmarks.amplification
    python -m benchmarks.amplification --draws 1      # a try; writes nothing

Steps are chosen by the error each of them makes; what becomes of it until the window's end is the equation's doing.
Random fields and random walks, none of which any constant of the solver was chosen on. In double precision, untimed.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.machine import described
from benchmarks.record import write
from benchmarks.steps import ENTRIES, TOLERANCES, errors_of, summary, truth_of
from smoothcde.models.cde import Beginning
from smoothcde.models.fields import TanhField
from smoothcde.paths import GPPath
from smoothcde.series import SeriesSet
from smoothcde.solve import ControlTerm, Term, integrate

DRAWS, SERIES, STAMPS, VIEWS = 3, 12, 30, 2
HIDDEN = (4, 16, 64)
STEEPNESS = (1.0, 2.0, 4.0)
SHARES_OF_THE_WAY = (0.0, 0.25, 0.5, 0.75)
UP_TO = (2.0, 4.0, 8.0, 16.0, np.inf)
NUDGE = 1e-4


def problems(draws: Iterable[int], hidden_sizes: Sequence[int] = HIDDEN) -> Iterator[Beginning]:
    """Random equations along smoothed random walks, of each size and steepness."""
    for draw in draws:
        rng = np.random.default_rng(draw)
        torch.manual_seed(draw)
        channels = int(rng.integers(2, 6))
        walks = rng.standard_normal((SERIES, channels, STAMPS)).cumsum(axis=2) / STAMPS**0.5
        batch = SeriesSet.from_arrays(walks).batch(dtype=torch.float64)
        path = GPPath.fit(batch, tuple(STAMPS * rng.uniform(0.06, 0.5, VIEWS)), 0.1)
        for hidden in hidden_sizes:
            for steepness in STEEPNESS:
                field = TanhField(VIEWS, hidden, channels, width=2 * hidden).double()
                for weights in field.parameters():
                    weights.mul_(steepness)
                z0 = torch.randn(path.rows, hidden, dtype=torch.float64)
                yield Beginning(ControlTerm(field, path), z0, path, None, torch.zeros(()))


def amplification(begin: Beginning) -> np.ndarray:
    """By how much a difference grows to the end of the window at most: of each row, over directions and beginnings."""
    path, hidden = begin.path, begin.z0.shape[1]
    each = torch.arange(path.rows).repeat_interleave(hidden)
    nudges, of_each = NUDGE * torch.eye(hidden, dtype=torch.float64), begin.term.select(each)
    largest = np.zeros(path.rows)
    for share in SHARES_OF_THE_WAY:
        at = path.start + share * (path.end - path.start)
        z = _exact(begin.term, begin.z0, path.start, at) if share else begin.z0
        nudged = (z[:, None] + nudges).flatten(0, 1)
        ends = _exact(of_each, nudged, at[each], path.end[each]).view(path.rows, hidden, hidden)
        growth = (ends - _exact(begin.term, z, at, path.end)[:, None]) / NUDGE
        largest = np.fmax(largest, torch.linalg.matrix_norm(growth, 2).numpy())
    return largest


def _exact(term: Term, z: Tensor, start: Tensor, end: Tensor) -> Tensor:
    return integrate(term, z, start, end, views=VIEWS, solver="dopri8", rtol=1e-8, atol=1e-8).state


@torch.no_grad()
def measure(draws: int) -> list[dict[str, Any]]:
    """A line per class of rows and entry, all tolerances together."""
    grown, errors, evaluations = [], defaultdict(list), defaultdict(list)
    for number, begin in enumerate(problems(range(draws)), start=1):
        grown.append(amplification(begin))
        truth = truth_of(begin, VIEWS)
        for name, solve in ENTRIES.items():
            solved = [solve(begin, VIEWS, tolerance) for tolerance in TOLERANCES]
            pairs = zip(solved, TOLERANCES, strict=True)
            errors[name].append(np.stack([errors_of(state, truth, tolerance) for (state, _), tolerance in pairs]))
            evaluations[name].append(np.stack([counts for _, counts in solved]))
        print(f"{number} of {draws * len(HIDDEN) * len(STEEPNESS)} equations", flush=True)
    growth, lines, least = np.concatenate(grown), [], 0.0
    for most in UP_TO:
        here = (growth >= least) & (growth < most)
        for name in ENTRIES:
            counts, found = (np.concatenate(each[name], axis=1)[:, here] for each in (evaluations, errors))
            line = {"from": least, "up to": most if np.isfinite(most) else None, "rows": int(here.sum()), "entry": name}
            line |= summary(counts, found)
            lines.append(line)
            print(line, flush=True)
        least = most
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, help=f"of series and fields; {DRAWS} if the result is to be kept")
    draws = parser.parse_args().draws
    found = measure(draws or DRAWS)
    if draws is None:
        write("amplification", {"draws": DRAWS, **described(), "lines": found})


if __name__ == "__main__":
    main()
