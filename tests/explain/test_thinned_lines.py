"""A thinned line is the same line to the eye, with fewer points."""

import numpy as np

from smoothcde.explain.thinning import TOLERANCE, thinned


def test_a_smooth_line_needs_few_points_and_stays_within_tolerance():
    t = np.linspace(0.0, 10.0, 1000)
    x = np.sin(t)
    few, values = thinned(t, x, 2.0)
    assert len(few) < 90
    assert np.abs(np.interp(t, few, values) - x).max() <= TOLERANCE * 2.0


def test_a_kinked_line_keeps_its_kinks():
    t = np.linspace(0.0, 4.0, 401)
    x = np.abs(t - 2.0)
    few, values = thinned(t, x, 2.0)
    assert few.tolist() == [0.0, 2.0, 4.0]
    assert values.tolist() == [2.0, 0.0, 2.0]


def test_a_flat_line_is_its_ends():
    few, values = thinned(np.arange(5.0), np.ones(5), 0.0)
    assert (few.tolist(), values.tolist()) == ([0.0, 4.0], [1.0, 1.0])


def test_what_is_not_finite_is_left_out():
    few, values = thinned(np.arange(4.0), np.array([np.nan, 1.0, 5.0, np.inf]), 4.0)
    assert (few.tolist(), values.tolist()) == ([1.0, 2.0], [1.0, 5.0])
    assert len(thinned(np.arange(2.0), np.array([np.nan, np.nan]), 1.0)[0]) == 0
