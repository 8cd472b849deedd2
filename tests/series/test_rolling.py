"""Rolling windows: what a history holds, what its future is, and that they never meet."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smoothcde.series import Rolling, SeriesSet


def recording(stamps, channels=2, seed=0, **window):
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(channels, len(stamps)))
    values[generator.random(values.shape) < 0.2] = np.nan
    return SeriesSet.from_arrays([values], [np.asarray(stamps, dtype=float)], **window)


def test_on_a_regular_grid_a_window_is_context_stamps_and_the_next_horizon():
    series = recording(np.arange(20) * 900.0)
    rolling = Rolling(context=5, horizon=3, step=900.0)
    owner, moments = rolling.origins(series)
    assert len(moments) == 20 - 5 - 3 + 1
    histories, futures = rolling.histories(series, owner, moments), rolling.futures(series, owner, moments)
    assert (histories.lengths == 5).all()
    for i in range(len(moments)):
        np.testing.assert_array_equal(histories[i].values, series.values[i : i + 5])
        np.testing.assert_array_equal(futures[i], series.values[i + 5 : i + 8])


def test_rounding_of_stamps_loses_nothing():
    series = recording(np.arange(60) * 0.1)  # 0.1 has no exact form
    rolling = Rolling(context=6, horizon=4, step=0.1)
    owner, moments = rolling.origins(series)
    assert len(moments) == 60 - 6 - 4 + 1
    assert (rolling.histories(series, owner, moments).lengths == 6).all()
    np.testing.assert_array_equal(rolling.futures(series, owner, moments)[-1], series.values[-4:])


def test_a_stride_leaves_origins_out():
    series, rolling = recording(np.arange(20.0)), Rolling(context=4, horizon=2, step=1.0)
    np.testing.assert_array_equal(rolling.origins(series, every=3)[1], rolling.origins(series)[1][::3])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_uneven_stamps_against_plain_loops(seed):
    generator = np.random.default_rng(seed)
    first = np.sort(generator.uniform(0, 30, size=generator.integers(5, 60)))
    second = np.sort(generator.uniform(5, 20, size=generator.integers(1, 30)))
    values = [generator.normal(size=(2, len(t))) for t in (first, second)]
    for block in values:
        block[generator.random(block.shape) < 0.3] = np.nan
    series = SeriesSet.from_arrays(values, [first, second], window=(0.0, 30.0))
    rolling = Rolling(context=6, horizon=4, step=1.5)
    owner, moments = rolling.origins(series)
    histories, futures = rolling.histories(series, owner, moments), rolling.futures(series, owner, moments)
    assert np.bincount(owner).tolist() == [12, 12]  # from 7.5 to 24 in steps of 1.5
    for i, (who, origin) in enumerate(zip(owner, moments, strict=True)):
        stamps, block = (first, second)[who], values[who]
        seen = (stamps >= origin - 7.5 - 1e-5) & (stamps <= origin)
        np.testing.assert_array_equal(histories[i].times, stamps[seen])
        np.testing.assert_array_equal(histories[i].values, block.T[seen])
        for k in range(4):
            point = origin + (k + 1) * 1.5
            near = block[:, (stamps >= point - 0.75) & (stamps < point + 0.75)]
            expected = [np.nanmean(c) if np.isfinite(c).any() else np.nan for c in near]
            np.testing.assert_allclose(futures[i, k], expected, rtol=1e-12)


def test_a_history_holds_no_stamp_after_its_origin_and_a_future_none_before():
    series = recording(np.sort(np.random.default_rng(3).uniform(0, 50, 200)))
    rolling = Rolling(context=8, horizon=5, step=1.0)
    owner, moments = rolling.origins(series)
    histories = rolling.histories(series, owner, moments)
    last = histories.times[histories.offsets[1:] - 1]
    assert (last <= moments).all()
    assert (histories.end == moments).all()
    # Everything up to an origin is erased: its future stays as it is.
    for origin, i in ((moments[0], 0), (moments[7], 7), (moments[-1], len(moments) - 1)):
        later = np.where(series.times <= origin, np.nan, series.values.T)
        blank = SeriesSet.from_arrays([later], [series.times])
        mine = slice(i, i + 1)
        np.testing.assert_array_equal(
            rolling.futures(blank, owner[mine], moments[mine]), rolling.futures(series, owner[mine], moments[mine])
        )


@pytest.mark.parametrize("length", [0, 1, 7])
def test_what_is_too_short_has_no_window(length):
    series = recording(np.arange(length))
    assert len(Rolling(context=5, horizon=3, step=1.0).origins(series)[0]) == 0


@pytest.mark.parametrize(
    ("start", "step"), [(1.7040672e9, 0.1), (1.7040672e9, 0.05), (2460310.5, 1 / 24), (0.0, 1 / 3), (1e4, 900.0)]
)
def test_origins_on_a_regular_grid_far_from_zero_are_stamps(start, step):
    series = recording(start + np.arange(400) * step)
    assert series.median_step == pytest.approx(step, rel=1e-6)
    rolling = Rolling(context=24, horizon=4, step=series.median_step)
    owner, moments = rolling.origins(series)
    assert len(moments) == 400 - 24 - 4 + 1
    np.testing.assert_array_equal(moments, series.times[23:-4])
    assert (rolling.histories(series, owner, moments).lengths == 24).all()
