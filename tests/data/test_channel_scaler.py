"""Standardisation of channels, over what was observed in the training series."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from smoothcde.data import ChannelScaler
from smoothcde.series import SeriesSet

nan = np.nan
SERIES = SeriesSet.from_arrays(
    [[[1.0, nan, 4.0, 8.0], [0.1, 0.1, nan, 0.1], [nan] * 4], [[nan, -3.0], [0.1, nan], [nan, nan]], np.zeros((3, 0))]
)


def test_is_scikit_learns_over_all_observations_of_all_series():
    rng = np.random.default_rng(0)
    values = rng.normal(3.0, [[[2.0], [0.01], [50.0]]], size=(4, 3, 30))
    values[rng.random(values.shape) < 0.3] = nan
    series = SeriesSet.from_arrays(values)
    peer = StandardScaler().fit(series.values)
    scaler = ChannelScaler.fit(series)
    np.testing.assert_allclose(scaler.mean, peer.mean_, rtol=1e-12)
    np.testing.assert_allclose(scaler.scale, peer.scale_, rtol=1e-12)
    np.testing.assert_allclose(scaler.transform(series).values, peer.transform(series.values), rtol=1e-9, atol=1e-12)


def test_what_was_not_observed_stays_so():
    scaled = ChannelScaler.fit(SERIES).transform(SERIES)
    assert (np.isnan(scaled.values) == np.isnan(SERIES.values)).all()
    np.testing.assert_allclose(np.nanmean(scaled.values[:, 0]), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(scaled.values[:, 0]), 1.0)


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e8 / 3, 1e-9])
@pytest.mark.parametrize("stamps", [1, 7, 100_000])
def test_a_constant_channel_is_only_centred(constant, stamps):
    series = SeriesSet.from_arrays(np.full((1, 1, stamps), constant))
    scaler = ChannelScaler.fit(series)
    assert scaler.scale == 1.0
    np.testing.assert_allclose(scaler.transform(series).values, 0.0, atol=1e-12 * max(abs(constant), 1.0))


def test_a_small_spread_around_a_large_mean_is_a_spread():
    values = 1e6 + 1e-3 * np.random.default_rng(0).normal(size=(1, 1, 500))
    series = SeriesSet.from_arrays(values)
    np.testing.assert_allclose(ChannelScaler.fit(series).transform(series).values.std(), 1.0)


def test_a_channel_never_observed_is_left_alone():
    scaler = ChannelScaler.fit(SERIES)
    assert (scaler.mean[2], scaler.scale[2]) == (0.0, 1.0)


def test_inverse_restores_the_series():
    scaler = ChannelScaler.fit(SERIES)
    restored = scaler.inverse(scaler.transform(SERIES))
    np.testing.assert_allclose(restored.values, SERIES.values, rtol=1e-12)
    assert restored.ids == SERIES.ids
    assert (restored.times == SERIES.times).all()


def test_statistics_are_those_of_the_fitted_series_whatever_is_transformed():
    scaler = ChannelScaler.fit(SERIES)
    shifted = scaler.transform(replace(SERIES, values=SERIES.values + scaler.scale))
    np.testing.assert_allclose(shifted.values, scaler.transform(SERIES).values + 1)


def test_series_are_not_changed_in_place():
    before = SERIES.values.copy()
    ChannelScaler.fit(SERIES).transform(SERIES)
    np.testing.assert_array_equal(SERIES.values, before)


@pytest.mark.parametrize("direction", ["transform", "inverse"])
def test_other_channels_than_fitted_are_refused(direction):
    scaler = ChannelScaler.fit(SERIES)
    with pytest.raises(ValueError, match="the scaler knows 3 channels; the series have 1"):
        getattr(scaler, direction)(SeriesSet.from_arrays(np.zeros((2, 5))))


def test_numbers_too_large_to_be_squared_are_refused():
    odd = SeriesSet.from_arrays([[[1.0, 2.0], [3.0, 1e200]]], channel_names=("pulse", "sat"))
    with pytest.raises(ValueError, match=r"channel 'sat' holds 1e\+200, too large a number .* make it NaN"):
        ChannelScaler.fit(odd)
