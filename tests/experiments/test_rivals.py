"""What a user would otherwise pick: boosted summaries and MiniRocket, as entries of a comparison."""

import numpy as np
import pytest

from smoothcde.experiments.rivals import RIVALS, InterpolatedMiniRocket, Rival, summaries
from smoothcde.series import SeriesSet

nan = np.nan


def waves(n, seed):
    """Slow and fast waves at uneven stamps, of unequal lengths, with missing values."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    values, times = [], []
    for label in labels:
        t = np.sort(rng.uniform(0, 10, rng.integers(25, 40)))
        wave = np.sin((1 + 2 * label) * t + rng.uniform(0, 6)) * (1 + label)
        both = np.stack([wave, rng.normal(size=len(t))])
        both[rng.random(both.shape) < 0.1] = nan
        values.append(both)
        times.append(t)
    return SeriesSet.from_arrays(values, times), labels


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_tell_slow_waves_from_fast_ones(name):
    (train, labels), (test, truth) = waves(60, 0), waves(40, 1)
    rival = RIVALS[name](0)
    assert isinstance(rival, Rival)
    assert (rival.fit(train, labels).predict(test) == truth).mean() > 0.9


def test_the_seed_draws_the_kernels_of_mini_rocket():
    (train, labels), (test, _) = waves(20, 0), waves(10, 1)
    one, same, other = (InterpolatedMiniRocket(seed).fit(train, labels).decision(test) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_summaries_are_of_what_was_observed():
    series = SeriesSet.from_arrays(
        [[[1.0, nan, 4.0, 3.0], [nan, nan, nan, nan]], [[2.0, 5.0], [nan, 7.0]]],
        [[0.0, 1.0, 2.0, 5.0], [10.0, 12.0]],
        static=[[0.5], [-1.0]],
    )
    table = summaries(series)
    assert table.shape == (2, 8 * 2 + 1)
    seen, t = np.array([1.0, 4.0, 3.0]), np.array([0.0, 2.0, 5.0])
    expected = [3, seen.mean(), seen.std(), 1.0, 4.0, 1.0, 3.0, np.polyfit(t, seen, 1)[0]]
    np.testing.assert_allclose(table[0, 0:16:2], expected)
    np.testing.assert_allclose(table[0, 1:16:2], [0] + [nan] * 7)
    np.testing.assert_allclose(table[1, 1:16:2], [1, 7, 0, 7, 7, 7, 7, nan])
    np.testing.assert_allclose(table[:, -1], [0.5, -1.0])
