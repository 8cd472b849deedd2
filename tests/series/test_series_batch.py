"""`SeriesBatch`: what models eat."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.testing import assert_array_equal
from series_strategies import ragged_series

from smoothcde.series import SeriesBatch, SeriesSet


@pytest.fixture
def batch() -> SeriesBatch:
    first = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, 6.0]])
    second = np.array([[7.0], [8.0]])
    return SeriesSet.from_arrays([first, second], [[10.0, 11.0, 14.0], [5.0]], static=[[0.5], [1.5]]).batch()


def test_values_are_zero_and_unmasked_where_nothing_was_observed(batch):
    assert_array_equal(batch.mask[0], [[True, False], [False, False], [True, True]])
    assert_array_equal(batch.values[0], [[1, 0], [0, 0], [3, 6]])


def test_padding_repeats_the_last_stamp_and_is_never_observed(batch):
    assert_array_equal(batch.times, [[0, 1, 4], [0, 0, 0]])
    assert_array_equal(batch.lengths, [3, 1])
    assert not batch.mask[1, 1:].any()
    assert not batch.values[1, 1:].any()


def test_times_count_from_the_rows_start_and_origin_leads_back(batch):
    assert_array_equal(batch.start, [0, 0])
    assert_array_equal(batch.end, [4, 0])
    assert_array_equal(batch.times + batch.origin[:, None], [[10, 11, 14], [5, 5, 5]])


def test_stamped_and_observed_tell_padding_from_missing(batch):
    assert_array_equal(batch.stamped, [[True, True, True], [True, False, False]])
    assert_array_equal(batch.observed, [[True, False, True], [True, False, False]])


def test_a_batch_knows_its_sizes(batch):
    assert (len(batch), batch.channels, batch.dtype, batch.device) == (2, 2, torch.float32, torch.device("cpu"))


@pytest.mark.parametrize("rows", [[1, 0, 1], torch.tensor([1, 0, 1])], ids=["list", "tensor"])
def test_select_takes_rows_in_order_and_keeps_the_length(batch, rows):
    selected = batch.select(rows)
    assert len(selected) == 3
    assert_array_equal(selected.values, batch.values[[1, 0, 1]])
    assert_array_equal(selected.origin, [5, 10, 5])
    assert_array_equal(selected.static[:, 0], [1.5, 0.5, 1.5])
    assert selected.values.shape[1] == batch.values.shape[1]


def test_select_takes_a_mask_a_slice_and_nothing(batch):
    assert_array_equal(batch.select(torch.tensor([False, True])).lengths, [1])
    assert_array_equal(batch.select(slice(1)).lengths, [3])
    assert len(batch.select([])) == 0


def test_to_changes_values_and_static_but_never_times(batch):
    half = batch.to(dtype=torch.float16)
    assert half.values.dtype == half.static.dtype == torch.float16
    assert half.times.dtype == half.start.dtype == half.end.dtype == half.origin.dtype == torch.float64
    assert half.mask.dtype == torch.bool
    assert batch.dtype == torch.float32


def test_to_moves_every_tensor(batch):
    moved = batch.to("meta")
    tensors = [moved.values, moved.times, moved.mask, moved.lengths, moved.start, moved.end, moved.origin, moved.static]
    assert {t.device.type for t in tensors} == {"meta"}


def test_to_without_static_features_has_none():
    assert SeriesSet.from_arrays([[1.0]]).batch().to("cpu", torch.float64).static is None


def test_counts_are_how_often_a_channel_was_observed_so_far(batch):
    counts = batch.counts()
    assert_array_equal(counts.values[0], [[1, 0], [1, 0], [2, 1]])
    assert_array_equal(counts.values[1], [[1, 1], [0, 0], [0, 0]])
    assert_array_equal(counts.mask.any(dim=2), batch.stamped)
    assert_array_equal(counts.times, batch.times)


def test_counts_can_be_scaled(batch):
    assert_array_equal(batch.counts(0.25).values, batch.counts().values * 0.25)


def test_a_batch_is_frozen(batch):
    with pytest.raises(AttributeError):
        batch.values = batch.values


@given(ragged_series())
@settings(deadline=None, max_examples=50)
def test_a_batch_holds_what_the_arrays_held(data):
    arrays, times = data
    batch = SeriesSet.from_arrays(arrays, times).batch(dtype=torch.float64)
    longest = max(len(stamps) for stamps in times)
    assert batch.values.shape == (len(arrays), max(longest, 1), len(arrays[0]))
    for i, (array, stamps) in enumerate(zip(arrays, times, strict=True)):
        n = len(stamps)
        values, mask = batch.values[i].numpy(), batch.mask[i].numpy()
        assert_array_equal(np.where(mask, values, np.nan)[:n], array.T)
        assert_array_equal(batch.times[i, :n].numpy() + batch.origin[i].item(), stamps)
        assert not mask[n:].any()
    assert (batch.times.diff(dim=1) >= 0).all()
    assert torch.isfinite(batch.values).all()
    assert (batch.times <= batch.end[:, None]).all()
