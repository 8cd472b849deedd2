"""Predictions look at a window and nothing else, wherever it lies."""

from dataclasses import replace

import numpy as np
import pytest
from toy_series import irregular, quick_classifier

from smoothcde.models import MultiViewCDE
from smoothcde.series import SeriesSet

MODELS = ("mvc-gp", "mvc-kernel", "linear", "gru", "ode-rnn", "log-ncde")


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    series, slope = irregular(18)
    # In double precision, so that nothing but what is asked below can make a difference.
    return quick_classifier(request.param, epochs=1, precision="64-true").fit(series, slope)


def changed_outside(series: SeriesSet) -> SeriesSet:
    """The same stamps with other values wherever the window does not reach."""
    owner = np.repeat(np.arange(len(series)), series.lengths)
    outside = (series.times > series.end[owner]) | (series.times < series.start[owner])
    assert outside.any()
    return replace(series, values=np.where(outside[:, None], 1e3, series.values))


def test_what_comes_after_the_prediction_moment_changes_nothing(fitted):
    series, _ = irregular(9, seed=1)
    seen = series.with_window(start=0.0, end=5.0)
    np.testing.assert_array_equal(fitted.predict_proba(changed_outside(seen)), fitted.predict_proba(seen))


def test_what_came_before_the_history_changes_nothing(fitted):
    series, _ = irregular(9, seed=1)
    seen = series.with_window(end=8.0, history=4.0)
    np.testing.assert_array_equal(fitted.predict_proba(changed_outside(seen)), fitted.predict_proba(seen))


def test_a_window_is_the_same_as_a_series_that_ends_there(fitted):
    series, _ = irregular(9, seed=1)
    seen = series.with_window(start=0.0, end=5.0)
    np.testing.assert_array_equal(fitted.predict_proba(seen.cropped()), fitted.predict_proba(seen))


def test_another_moment_is_another_prediction(fitted):
    series, _ = irregular(9, seed=1)
    early, late = series.with_window(start=0.0, end=5.0), series.with_window(start=0.0, end=10.0)
    assert not np.allclose(fitted.predict_proba(early), fitted.predict_proba(late), atol=1e-6)


def test_later_series_are_treated_as_earlier_ones(fitted):
    series, _ = irregular(9, seed=1)
    shift = 2.0**31  # as if in seconds since 1970; exact in floating point
    times = np.round(series.times * 1024) / 1024
    first, last = times[series.offsets[:-1]], times[series.offsets[1:] - 1]
    early = replace(series, times=times, start=first, end=last)
    late = replace(series, times=times + shift, start=first + shift, end=last + shift)
    np.testing.assert_allclose(fitted.predict_proba(late), fitted.predict_proba(early), atol=1e-9)


def test_series_longer_than_any_in_training_are_predicted(fitted):
    series, _ = irregular(5, seed=1)
    long = replace(series, times=series.times * 4, start=series.start * 4, end=series.end * 4)
    alone = np.concatenate([fitted.predict_proba(long[i]) for i in range(5)])
    np.testing.assert_allclose(fitted.predict_proba(long), alone, atol=1e-6)
    assert np.isfinite(alone).all()


def test_a_window_without_observations_has_an_answer(fitted):
    series, _ = irregular(4, seed=1)
    nothing = fitted.predict_proba(series.with_window(start=100.0, end=105.0))
    assert np.isfinite(nothing).all()
    np.testing.assert_allclose(nothing, nothing[:1].repeat(4, axis=0), atol=1e-9)


def test_bandwidths_keep_their_length_in_time(tmp_path):
    series, slope = irregular(18)
    classifier = quick_classifier("mvc-gp", epochs=1, bandwidths=(0.5,)).fit(
        series, slope, validation=irregular(3, seed=2)
    )
    classifier.save(tmp_path / "model")
    model = type(classifier).load(tmp_path / "model").predictor_.model
    assert isinstance(model, MultiViewCDE)
    assert model.time_scale == series.longest_span
    np.testing.assert_allclose(model.bandwidths.values.numpy(), [0.5 * series.longest_span])


def test_training_sees_its_windows_only():
    series, slope = irregular(18)
    seen = series.with_window(start=0.0, end=6.0)
    first = quick_classifier().fit(seen, slope).predict_proba(seen)
    second = quick_classifier().fit(changed_outside(seen), slope).predict_proba(seen)
    np.testing.assert_array_equal(first, second)
