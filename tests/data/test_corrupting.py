"""Dropped stamps, noise, scaled time and equal lengths: what changes, and what must not."""

import numpy as np
import pytest
from aeon.transformations.collection.unequal_length import Resizer
from hypothesis import given, settings
from hypothesis import strategies as st

from smoothcde.data import add_noise, drop_stamps, load_uea, resample, scale_time
from smoothcde.series import SeriesSet

nan = np.nan


def series_sets(fewest=0):
    """What `made` takes: lengths, a seed, and whether a window is declared."""
    return st.tuples(st.lists(st.integers(fewest, 30), min_size=1, max_size=5), st.integers(0, 1000), st.booleans())


def made(lengths, seed, declared):
    """Series of own lengths and stamps, with missing values and static features, sometimes with a window."""
    rng = np.random.default_rng(seed)
    values = [np.where(rng.random((2, n)) < 0.2, nan, rng.normal(size=(2, n))) for n in lengths]
    times = [np.sort(rng.choice(1000, size=n, replace=False)) / 8 for n in lengths]
    static = rng.normal(size=(len(lengths), 1))
    return SeriesSet.from_arrays(values, times, static=static, window=(20.0, 90.0) if declared else None)


shares = st.floats(0, 1)
seeds = st.integers(0, 100)


@given(series_sets(), shares, seeds)
@settings(deadline=None, max_examples=50)
def test_every_series_loses_its_share_of_stamps_but_never_an_end(parts, share, seed):
    series = made(*parts)
    sparse = drop_stamps(series, share, seed)
    for i in range(len(series)):
        old, new = series[i].cropped(), sparse[i].cropped()
        count = len(old.times)
        assert len(new.times) == count - min(round(share * count), max(count - 2, 0))
        assert set(new.times[:1]) == set(old.times[:1])
        assert set(new.times[-1:]) == set(old.times[-1:])


@given(series_sets(), shares, seeds)
@settings(deadline=None, max_examples=50)
def test_stamps_that_stay_keep_their_values_and_windows_do_not_move(parts, share, seed):
    series = made(*parts)
    sparse = drop_stamps(series, share, seed)
    assert sparse.ids == series.ids
    for name in ("start", "end", "static"):
        np.testing.assert_array_equal(getattr(sparse, name), getattr(series, name))
    for i in range(len(series)):
        kept = np.isin(series[i].times, sparse[i].times)
        np.testing.assert_array_equal(sparse[i].times, series[i].times[kept])
        np.testing.assert_array_equal(sparse[i].values, series[i].values[kept])
        outside = ~series[i].inside
        assert kept[outside].all()


def test_every_stamp_between_the_ends_is_as_likely_to_leave():
    series = SeriesSet.from_arrays(np.zeros((4000, 1, 12)))
    left = drop_stamps(series, 0.5).times
    counts = np.bincount(left.astype(int), minlength=12)
    assert (counts[[0, -1]] == 4000).all()
    # 6 of 12 leave, all of the 10 between: each stays with probability 0.4, standard deviation 31.
    np.testing.assert_allclose(counts[1:-1], 1600, atol=5 * 31)


@pytest.mark.parametrize("change", [drop_stamps, add_noise])
def test_a_seed_repeats_it_and_another_does_not(change):
    series = SeriesSet.from_arrays(np.zeros((3, 1, 40)))
    once, again, other = change(series, 0.3, seed=1), change(series, 0.3, seed=1), change(series, 0.3, seed=2)
    np.testing.assert_array_equal(once.times, again.times)
    np.testing.assert_array_equal(once.values, again.values)
    assert (once.times != other.times).any() or (once.values != other.values).any()


def test_noise_is_white_of_its_level_on_what_was_observed():
    values = np.random.default_rng(0).normal(size=(50, 3, 400))
    values[:, :, ::5] = nan
    series = SeriesSet.from_arrays(values)
    added = add_noise(series, 0.7, seed=3).values - series.values
    np.testing.assert_array_equal(np.isnan(added), np.isnan(series.values))
    seen = added[~np.isnan(added).any(axis=1)]
    np.testing.assert_allclose(np.cov(seen.T), 0.49 * np.eye(3), atol=0.02)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=0.03)
    assert abs(np.corrcoef(seen[1:, 0], seen[:-1, 0])[0, 1]) < 0.04


def test_no_noise_changes_nothing():
    series = SeriesSet.from_arrays([[[1.0, nan, 3.0]]])
    np.testing.assert_array_equal(add_noise(series, 0.0).values, series.values)


@given(series_sets(), st.floats(0.01, 100))
@settings(deadline=None, max_examples=50)
def test_scaled_time_scales_stamps_and_windows_alike(parts, factor):
    series = made(*parts)
    scaled = scale_time(series, factor)
    for name in ("times", "start", "end"):
        np.testing.assert_allclose(getattr(scaled, name), factor * getattr(series, name))
    np.testing.assert_array_equal(scaled.values, series.values)
    np.testing.assert_array_equal(scaled.cropped().lengths, series.cropped().lengths)
    assert scaled.longest_span == pytest.approx(factor * series.longest_span)


def test_resampling_is_aeons_on_regular_series():
    series, _ = load_uea("JapaneseVowels")
    blocks = [series[i].values.T for i in range(40)]
    peer = Resizer(resized_length=17).fit_transform(blocks)
    ours = resample(series[:40], 17)
    np.testing.assert_allclose(ours.values.reshape(40, 17, 12).transpose(0, 2, 1), peer, atol=1e-12)


@given(series_sets(fewest=1), st.integers(2, 40))
@settings(deadline=None, max_examples=50)
def test_resampled_series_have_equal_lengths_and_stay_within_their_range(parts, length):
    series = made(*parts).with_window(0, 200)
    even = resample(series, length)
    assert (even.lengths == length).all()
    np.testing.assert_array_equal(even.times.reshape(-1, length), np.tile(np.arange(length), (len(series), 1)))
    assert (even.start == 0).all()
    assert (even.end == length - 1).all()
    np.testing.assert_array_equal(even.static, series.static)
    for i in range(len(series)):
        np.testing.assert_array_equal(even[i].values[[0, -1]], series[i].values[[0, -1]])
        for new, old in zip(even[i].values.T, series[i].values.T, strict=True):
            if (seen := new[~np.isnan(new)]).size:
                assert np.nanmin(old) - 1e-9 <= seen.min() <= seen.max() <= np.nanmax(old) + 1e-9


def test_resampling_goes_by_time_and_bridges_missing_values_only_between_observations():
    series = SeriesSet.from_arrays([[[0.0, 1.0, nan, 8.0], [nan, 4.0, nan, nan]]], times=[0.0, 1.0, 2.0, 8.0])
    expected = [[0, 1, 2, 3, 4, 5, 6, 7, 8], [nan, 4, nan, nan, nan, nan, nan, nan, nan]]
    np.testing.assert_allclose(resample(series, 9).values.T, expected)


def test_a_window_decides_what_is_resampled():
    series = SeriesSet.from_arrays([[[0.0, 10.0, 20.0, 90.0]]], window=(1.0, 2.0))
    np.testing.assert_allclose(resample(series, 3).values[:, 0], [10, 15, 20])


@pytest.mark.parametrize(
    ("change", "value", "message"),
    [
        (drop_stamps, -0.1, "share is -0.1; give the share of stamps that leave, from 0 to 1"),
        (drop_stamps, 1.1, "share is 1.1"),
        (add_noise, -1.0, "level is -1.0; give the standard deviation"),
        (add_noise, nan, "level is nan"),
        (scale_time, 0.0, "factor is 0.0; time can be scaled by a positive finite number only"),
        (scale_time, nan, "factor is nan"),
        (resample, 1, "length is 1; series can be resampled to two stamps or more"),
    ],
)
def test_settings_that_mean_nothing_are_refused(change, value, message):
    with pytest.raises(ValueError, match=message):
        change(SeriesSet.from_arrays(np.zeros((1, 1, 4))), value)


def test_series_without_stamps_cannot_be_resampled():
    series = SeriesSet.from_arrays([np.zeros((1, 3)), np.zeros((1, 0))], ids=["ann", "bob"])
    with pytest.raises(ValueError, match="series bob have no stamps to resample; leave them out"):
        resample(series, 5)
