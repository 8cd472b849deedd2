"""Fields and series that no constant of the solver was chosen on."""

import numpy as np
import pytest
import torch

from benchmarks.amplification import VIEWS, amplification, problems
from benchmarks.steps import errors_of, truth_of
from smoothcde.solve import integrate

DRAWS = (100, 101)
GENTLE = 4.0


@pytest.fixture(scope="module")
def equations():
    with torch.no_grad():
        return [(begin, amplification(begin), truth_of(begin, VIEWS)) for begin in problems(DRAWS, (4,))]


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("solver", ["dopri5", "tsit5", "dopri8"])
def test_within_ten_tolerances_where_the_flow_itself_does_not_enlarge_errors(equations, solver, tolerance):
    errors, growth = [], []
    for begin, grown, truth in equations:
        path = begin.path
        with torch.no_grad():
            solved = integrate(
                begin.term, begin.z0, path.start, path.end, views=VIEWS, solver=solver, rtol=tolerance, atol=tolerance
            )
        errors.append(errors_of(solved.state, truth, tolerance))
        growth.append(grown)
    errors, growth = np.concatenate(errors), np.concatenate(growth)
    gentle = growth < GENTLE
    assert gentle.sum() > 60
    assert errors[gentle].max() < 10
    assert (errors / np.fmax(growth, 1)).max() < 10  # the others: as much more as their flow makes of it


def test_growth_is_that_of_a_known_flow(equations):
    """Two states apart by a little in the direction that the end is most sensitive to."""
    begin, grown, truth = equations[0]
    path, rng = begin.path, torch.Generator().manual_seed(0)
    away = 1e-5 * torch.nn.functional.normalize(torch.randn(begin.z0.shape, generator=rng, dtype=torch.float64))
    with torch.no_grad():
        moved = integrate(
            begin.term, begin.z0 + away, path.start, path.end, views=VIEWS, solver="dopri8", rtol=1e-10, atol=1e-10
        )
    assert ((moved.state - truth).norm(dim=1) / 1e-5 < 1.01 * torch.as_tensor(grown)).all()
