"""Fields and series that no constant of the solver was chosen on."""

import numpy as np
import pytest
import torch

from benchmarks.amplification import SHARES_OF_THE_WAY, VIEWS, amplification, problems
from benchmarks.steps import errors_of, truth_of
from smoothcde.models.cde import Beginning
from smoothcde.paths import GPPath
from smoothcde.series import SeriesSet
from smoothcde.solve import ControlTerm, integrate

DRAWS = (100, 101)
GENTLE = 4.0


@pytest.fixture(scope="module")
def equations():
    with torch.no_grad():
        return [(begin, amplification(begin), truth_of(begin, VIEWS)) for begin in problems(DRAWS, (4,))]


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("solver", ["bs5", "dopri5", "tsit5", "dopri8"])
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


class Turning(torch.nn.Module):
    """z' = A z x'."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.matrix = torch.randn(3, 3, generator=generator, dtype=torch.float64)

    def product(self, z, dx, rows):
        return (z @ self.matrix.mT) * dx


def test_growth_is_that_of_a_known_flow():
    """From x(t) to x(end), by the exponential of A (x(end) - x(t))."""
    walks = np.random.default_rng(0).standard_normal((4, 1, 20)).cumsum(axis=2) / 4
    path = GPPath.fit(SeriesSet.from_arrays(walks).batch(dtype=torch.float64), (3.0, 6.0), 0.1)
    field, z0 = Turning(), torch.ones(path.rows, 3, dtype=torch.float64)
    with torch.no_grad():
        found = amplification(Beginning(ControlTerm(field, path), z0, path, None, torch.zeros(())))
    way = path.evaluate(path.end)[:, None] - path.evaluate(path.times_at(SHARES_OF_THE_WAY))
    flow = torch.linalg.matrix_exp(field.matrix * way[..., None])
    np.testing.assert_allclose(found, torch.linalg.matrix_norm(flow, 2).amax(dim=1), rtol=1e-3)
