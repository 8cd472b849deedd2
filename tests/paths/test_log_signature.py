"""Log-signatures against pysiglib."""

import itertools

import numpy as np
import pytest
import torch

from smoothcde import LogSignaturePath, SeriesSet

pysiglib = pytest.importorskip("pysiglib", reason="the oracle for log-signatures; pip install pysiglib")


def test_a_window_holds_the_log_signature_of_its_piece():
    values = np.random.default_rng(0).normal(size=(4, 3, 21)).cumsum(axis=2)
    path = LogSignaturePath.fit(SeriesSet.from_arrays(values).batch(dtype=torch.float64), depth=2, step=5.0)
    pysiglib.prepare_log_sig(3, 2, 2)
    for window in range(4):
        piece = np.ascontiguousarray(values[:, :, 5 * window : 5 * window + 6].transpose(0, 2, 1))
        expected = pysiglib.log_sig(piece, 2, method=2)
        ours = 5.0 * path.derivative(5.0 * window + 2.5).numpy()
        np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_windows_may_end_between_stamps():
    generator = np.random.default_rng(1)
    values, times = generator.normal(size=(1, 2, 8)), np.sort(generator.uniform(0, 10, 8))
    batch = SeriesSet.from_arrays(values, times[None]).batch(dtype=torch.float64)
    path = LogSignaturePath.fit(batch, depth=2, step=3.3)
    t = batch.times[0].numpy()
    edges = path.grid[0].numpy()
    pysiglib.prepare_log_sig(2, 2, 2)
    for begin, end in itertools.pairwise(edges):
        points = np.concatenate([[begin], t[(t > begin) & (t < end)], [end]])
        piece = np.stack([np.interp(points, t, values[0, c]) for c in range(2)], axis=1)
        ours = path.derivative((begin + end) / 2)[0].numpy() * (end - begin)
        np.testing.assert_allclose(ours, pysiglib.log_sig(piece, 2, method=2), atol=1e-12)


def test_depth_one_needs_no_area_and_time_can_join():
    batch = SeriesSet.from_arrays(np.random.default_rng(2).normal(size=(2, 3, 9))).batch()
    assert LogSignaturePath.fit(batch, 1, 2.0).channels == 3
    assert LogSignaturePath.fit(batch, 2, 2.0).channels == 3 + 3
    with_time = LogSignaturePath.fit(batch, 2, 2.0, time_scale=8.0)
    assert with_time.channels == 4 + 6
    torch.testing.assert_close(with_time.derivative(1.0)[:, 3], torch.full((2,), 1 / 8.0))
