"""The Runge-Kutta pairs are those of the literature, by others' constants and by Butcher's order conditions."""

from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.integrate import RK23, RK45
from torchdiffeq._impl.bosh3 import _BOGACKI_SHAMPINE_TABLEAU
from torchdiffeq._impl.dopri5 import _DORMAND_PRINCE_SHAMPINE_TABLEAU, DPS_C_MID
from torchdiffeq._impl.dopri8 import _DOPRI8_TABLEAU, _C_mid

from smoothcde.solve import ODETerm, Rows
from smoothcde.solve.step import take_step
from smoothcde.solve.tableaus import BOSH3, BS5, DOPRI5, DOPRI8, TABLEAUS, TSIT5

every_tableau = pytest.mark.parametrize("tableau", TABLEAUS.values(), ids=TABLEAUS)
DENSE_ORDER = {"bosh3": 3, "bs5": 4, "dopri5": 4, "tsit5": 4, "dopri8": 5}


def coupling(tableau) -> np.ndarray:
    """Butcher's matrix a, one row per slope."""
    matrix = np.zeros((tableau.slopes, tableau.slopes))
    for row, stage in enumerate(tableau.stages, start=1):
        matrix[row, : len(stage)] = stage
    return matrix


@cache
def rooted_trees(order: int) -> tuple:
    """All rooted trees with `order` nodes, each the tuple of its root's branches."""
    if order == 1:
        return ((),)
    found = set()
    for sizes in partitions(order - 1):
        grown = [()]
        for size in set(sizes):
            picks = combinations_with_replacement(rooted_trees(size), sizes.count(size))
            grown = [(*tree, *pick) for pick in picks for tree in grown]
        found.update(grown)
    return tuple(found)


def partitions(total: int, largest: int | None = None):
    """All ways to write `total` as a sum of decreasing parts."""
    if total == 0:
        yield ()
    for part in range(min(total, largest or total), 0, -1):
        for rest in partitions(total - part, part):
            yield (part, *rest)


def nodes_of(tree) -> int:
    return 1 + sum(map(nodes_of, tree))


def density(tree) -> int:
    return nodes_of(tree) * int(np.prod([density(branch) for branch in tree], dtype=np.int64))


def elementary_weights(tree, matrix: np.ndarray) -> np.ndarray:
    weights = np.ones(len(matrix))
    for branch in tree:
        weights = weights * (matrix @ elementary_weights(branch, matrix))
    return weights


def defect(tableau, weights: np.ndarray, order: int, share: float = 1.0) -> float:
    """The largest violation of the conditions of exactly that order, at a share of the step."""
    matrix = coupling(tableau)
    return max(
        abs(weights @ elementary_weights(tree, matrix) - share**order / density(tree)) for tree in rooted_trees(order)
    )


def test_there_are_as_many_rooted_trees_as_cayley_counted():
    assert [len(rooted_trees(order)) for order in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]


@pytest.mark.parametrize(("tableau", "scipy"), [(BOSH3, RK23), (DOPRI5, RK45)], ids=["bosh3", "dopri5"])
def test_bosh3_and_dopri5_have_the_constants_of_scipy(tableau, scipy):
    stages = len(scipy.B)
    assert_allclose(coupling(tableau)[:stages, :stages][:, : scipy.A.shape[1]], scipy.A, atol=1e-15)
    assert_allclose(tableau.stages[-1], scipy.B, atol=1e-15)
    assert_allclose(tableau.nodes[:-1], scipy.C, atol=1e-15)
    assert_allclose(tableau.dense, scipy.P, atol=1e-14)


def test_dopri5_takes_its_error_as_torchdiffeq_does_two_thirds_of_scipys():
    assert_allclose(BOSH3.error, -RK23.E, atol=1e-15)
    assert_allclose(DOPRI5.error, -RK45.E * 2 / 3, atol=1e-15)


@pytest.mark.parametrize(
    ("tableau", "theirs"),
    [(BOSH3, _BOGACKI_SHAMPINE_TABLEAU), (DOPRI5, _DORMAND_PRINCE_SHAMPINE_TABLEAU), (DOPRI8, _DOPRI8_TABLEAU)],
    ids=["bosh3", "dopri5", "dopri8"],
)
def test_the_pairs_the_paper_ran_have_the_constants_of_torchdiffeq(tableau, theirs):
    assert_allclose(tableau.nodes[1:], theirs.alpha, atol=1e-15)
    for ours, other in zip(tableau.stages, theirs.beta, strict=True):
        assert_allclose(ours, other, atol=1e-15)
    assert_allclose(tableau.weights, theirs.c_sol, atol=1e-15)
    assert_allclose(tableau.error, theirs.c_error, atol=1e-15)


@pytest.mark.parametrize(("tableau", "middle"), [(DOPRI5, DPS_C_MID), (DOPRI8, _C_mid)], ids=["dopri5", "dopri8"])
def test_half_way_through_a_step_dense_output_is_that_of_torchdiffeq(tableau, middle):
    powers = 0.5 ** np.arange(1, tableau.dense.shape[1] + 1)
    assert_allclose(tableau.dense @ powers, middle, atol=1e-14)


@every_tableau
def test_a_solution_has_the_order_it_claims_and_no_more(tableau):
    for order in range(1, tableau.order + 1):
        assert defect(tableau, tableau.weights, order) < 1e-12
    assert defect(tableau, tableau.weights, tableau.order + 1) > 1e-7


@every_tableau
def test_the_embedded_solution_is_one_order_lower(tableau):
    lower = tableau.weights - tableau.error
    for order in range(1, tableau.order):
        assert defect(tableau, lower, order) < 1e-12
    assert defect(tableau, lower, tableau.order) > 1e-7


@every_tableau
def test_dense_output_has_an_order_of_its_own_throughout_the_step(tableau):
    for share in (0.1, 0.37, 0.5, 0.82):
        weights = tableau.dense @ share ** np.arange(1, tableau.dense.shape[1] + 1)
        for order in range(1, DENSE_ORDER[tableau.name] + 1):
            assert defect(tableau, weights, order, share) < 1e-12


@every_tableau
def test_dense_output_ends_on_the_solution(tableau):
    assert_allclose(tableau.dense.sum(axis=1), tableau.weights, atol=1e-12)


@every_tableau
def test_stages_are_consistent_with_their_nodes_and_the_last_is_the_next_first(tableau):
    assert_allclose(coupling(tableau).sum(axis=1), tableau.nodes, atol=1e-14)
    assert_allclose(coupling(tableau)[-1], tableau.weights, atol=0)
    assert tableau.nodes[-1] == 1.0


def errors_of_fixed_steps(tableau, counts) -> list[float]:
    """Errors of z' = cos(t) z, z(0) = 1, at t = 2 with fixed steps; z = exp(sin t)."""
    term = ODETerm(lambda t, z: torch.cos(t)[:, None] * z)
    errors = []
    for count in counts:
        z, h = torch.ones(1, 1, dtype=torch.float64), 2.0 / count
        for step in range(count):
            times = torch.as_tensor((step + tableau.nodes) * h)[None]
            z = take_step(tableau, term, Rows.all(1), z, None, times, torch.full_like(z, h), (1.0, 1.0), None).state
        errors.append(abs(z.item() - np.exp(np.sin(2.0))))
    return errors


@pytest.mark.parametrize(
    ("tableau", "counts"),
    [(BOSH3, (20, 40, 80)), (BS5, (8, 16, 32)), (DOPRI5, (8, 16, 32)), (TSIT5, (8, 16, 32)), (DOPRI8, (4, 6, 9))],
    ids=["bosh3", "bs5", "dopri5", "tsit5", "dopri8"],
)
def test_fixed_steps_converge_at_the_order_of_the_method(tableau, counts):
    slope = np.polyfit(np.log(counts), np.log(errors_of_fixed_steps(tableau, counts)), 1)[0]
    assert -slope > tableau.order - 0.3
