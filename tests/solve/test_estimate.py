"""The error of a step, as the step itself shows it."""

import numpy as np
import pytest
import torch
from solve_problems import TinyField, double, smooth_series, states

from smoothcde.paths import GPPath
from smoothcde.solve import ControlTerm, Rows, integrate
from smoothcde.solve.estimate import DOUBT, corrected, embedded
from smoothcde.solve.step import advance
from smoothcde.solve.tableaus import TABLEAUS

FIFTH = ["bs5", "dopri5", "tsit5"]
TOLERANCE = 1e-3


def steps(solver: str, lengths: tuple[float, ...]):
    """Estimates of steps of given lengths at random places, the embedded ones, and the true errors, in tolerances."""
    batch = double(smooth_series(n=60, stamps=30))
    path = GPPath.fit(batch, (2.0, 5.0), 0.1)
    tableau, rng = TABLEAUS[solver], np.random.default_rng(0)
    begin = torch.as_tensor(rng.uniform(0, 8, path.rows))
    field = TinyField(hidden=32, width=64)
    term, rows = ControlTerm(field, path), Rows.all(path.rows, 2)
    found = []
    with torch.no_grad():
        z = integrate(term, states(path.rows, 32), path.start, begin, solver="dopri8", rtol=1e-9, atol=1e-9).state
        for length in lengths:
            h = torch.full((path.rows, 1), length, dtype=torch.float64)
            times = begin[:, None] + torch.as_tensor(tableau.nodes) * h
            first = term.slope(z, term.controls(times), 0, rows)
            step = advance(tableau, term, rows, z, first, term.controls(times[:, 1:]), h, (TOLERANCE, TOLERANCE))
            exact = integrate(term, z, begin, begin + length, solver="dopri8", rtol=1e-11, atol=1e-11).state
            allowed = TOLERANCE * (1 + torch.maximum(z.abs(), step.state.abs()))
            error = ((step.state - exact) / allowed).square().mean(dim=1).sqrt().numpy()
            squares, departures = step.squared_ratio.numpy(), step.squared_departure.numpy()
            estimate = corrected(tableau, TOLERANCE, 32, squares, departures)
            found.append((estimate.ratio, embedded(tableau, squares).ratio, error))
    return (np.concatenate(part) for part in zip(*found, strict=True))


@pytest.mark.parametrize("solver", FIFTH)
def test_long_steps_are_told_within_a_few_times_their_error(solver):
    better, plain, error = steps(solver, (1.0, 1.5, 2.0))
    assert np.quantile(error / better, 0.99) < 3
    assert np.quantile(error / plain, 0.99) > (4 if solver == "bs5" else 10)  # what it is there for
    spread = [np.std(np.log(error / estimate)) for estimate in (better, plain)]
    assert spread[0] < 0.9 * spread[1]


@pytest.mark.parametrize("solver", FIFTH)
def test_short_steps_keep_the_embedded_estimate(solver):
    better, plain, error = steps(solver, (0.1, 0.2))
    np.testing.assert_allclose(better, plain * (1 + DOUBT / 32**0.5))
    assert (error < plain).all()


@pytest.mark.parametrize("solver", TABLEAUS)
def test_who_shows_a_departure(solver):
    tableau = TABLEAUS[solver]
    assert (tableau.departure is not None) == (solver in FIFTH)
    if tableau.departure is not None:
        # Both states are at the end of the step: no difference where the slope is constant.
        assert tableau.nodes[-2] == 1.0
        assert abs(tableau.departure.sum()) < 1e-12


def test_few_components_are_trusted_less():
    squares, departures = np.array([0.01]), np.array([100.0**2])
    ratios = [
        corrected(TABLEAUS["dopri5"], TOLERANCE, count, squares, departures).ratio[0] for count in (2, 8, 128, 10_000)
    ]
    assert ratios == sorted(ratios, reverse=True)
