"""The cost of a solve, foretold from the path."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from solve_problems import double, smooth_series

from smoothcde.models import TanhField
from smoothcde.paths import GPPath, KernelPath, LinearPath
from smoothcde.solve import ControlTerm, bandwidth_for, integrate, predict_cost
from smoothcde.solve.tableaus import TABLEAUS

BATCH = double(smooth_series(n=8, stamps=60, span=10.0))
BANDWIDTHS = (0.3, 0.6, 1.2, 2.4, 5.0)


def measured(path, tolerance: float, solver: str, views: int) -> np.ndarray:
    torch.manual_seed(0)
    field = TanhField(views, hidden=32, channels=2).double()
    z0 = 0.5 * torch.randn(path.rows, 32, dtype=torch.float64)
    options = {"views": views, "solver": solver, "rtol": tolerance, "atol": tolerance}
    with torch.no_grad():
        return integrate(ControlTerm(field, path), z0, path.start, path.end, **options).stats.nfe


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
@pytest.mark.parametrize("solver", TABLEAUS)
def test_it_ranks_rows_and_knows_their_size(solver, tolerance):
    path = GPPath.fit(BATCH, BANDWIDTHS, 0.02)
    predicted, found = predict_cost(path, tolerance, solver), measured(path, tolerance, solver, len(BANDWIDTHS))
    # Where dopri8 needs only a handful of steps, many rows tie.
    assert spearmanr(predicted, found)[0] > (0.75 if solver == "dopri8" else 0.85)
    assert np.median(np.abs(predicted / found - 1)) < 0.35


def test_it_serves_kernel_paths_too():
    path = KernelPath.fit(BATCH, (0.6, 1.2, 2.4))
    assert spearmanr(predict_cost(path, 1e-3), measured(path, 1e-3, "dopri5", 3))[0] > 0.85


def test_it_does_not_depend_on_the_unit_of_time():
    path = GPPath.fit(BATCH, 1.0, 0.02)
    hours = smooth_series(n=8, stamps=60, span=10.0)
    seconds = type(hours).from_arrays([hours[i].values.T for i in range(8)], [3600 * hours[i].times for i in range(8)])
    other = GPPath.fit(double(seconds), 3600.0, 0.02)
    np.testing.assert_allclose(predict_cost(other, 1e-3), predict_cost(path, 1e-3), rtol=1e-6)


def test_kinks_cost_a_step_each():
    path = LinearPath.fit(BATCH)
    assert (predict_cost(path, 1e-3) >= 6 * 59).all()


def test_the_bandwidth_for_a_budget_meets_it():
    def fit(bandwidth):
        return GPPath.fit(BATCH, bandwidth, 0.02)

    chosen = bandwidth_for(60.0, fit, smallest=0.1, largest=10.0, tolerance=1e-3)
    assert 0.1 < chosen < 10
    assert predict_cost(fit(chosen), 1e-3).mean() == pytest.approx(60, rel=0.01)
    assert bandwidth_for(1e6, fit, smallest=0.5, largest=10.0, tolerance=1e-3) == 0.5
    with pytest.raises(ValueError, match=r"even bandwidth 1 would cost .* allow a larger bandwidth"):
        bandwidth_for(10.0, fit, smallest=0.5, largest=1.0, tolerance=1e-3)


def test_wrong_use_is_told():
    path = GPPath.fit(BATCH, 1.0, 0.02)
    with pytest.raises(ValueError, match="solver is 'euler'; use any of"):
        predict_cost(path, 1e-3, "euler")
    with pytest.raises(ValueError, match=r"tolerance is 0.0; it must be positive"):
        predict_cost(path, 0.0)
    with pytest.raises(ValueError, match="give 0 < smallest < largest"):
        bandwidth_for(50.0, lambda h: path, smallest=2.0, largest=1.0, tolerance=1e-3)
