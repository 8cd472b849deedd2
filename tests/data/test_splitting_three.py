"""Training, validation and test: disjoint, complete, of the right sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smoothcde.data import split_three


@given(st.integers(0, 300), st.integers(0, 50), st.integers(1, 6), st.booleans())
@settings(deadline=None)
def test_parts_are_disjoint_and_complete(count, seed, classes, stratified):
    labels = np.random.default_rng(seed).integers(classes, size=count)
    parts = split_three(count, labels, seed, stratified=stratified)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(count))
    assert all((np.diff(part) > 0).all() for part in parts)
    for part, share in zip(parts, (0.6, 0.2, 0.2), strict=True):
        assert abs(len(part) - share * count) < 1


@pytest.mark.parametrize("stratified", [False, True])
def test_the_papers_uwave_has_264_88_and_88(stratified):
    labels = np.repeat(np.arange(8), 55)
    parts = split_three(440, labels, stratified=stratified)
    assert [len(part) for part in parts] == [264, 88, 88]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 50))
@settings(deadline=None)
def test_a_stratified_split_gives_each_part_its_share_of_each_class(sizes, seed):
    labels = np.random.default_rng(seed).permutation(np.repeat([f"class {i}" for i in range(len(sizes))], sizes))
    count = len(labels)
    for part in split_three(count, labels, seed, stratified=True):
        for name in np.unique(labels):
            share = len(part) / count * (labels == name).sum()
            assert abs((labels[part] == name).sum() - share) < 2


def test_labels_alone_change_nothing():
    labels = np.repeat([0, 1], 50)
    for plain, labelled in zip(split_three(100), split_three(100, labels), strict=True):
        np.testing.assert_array_equal(plain, labelled)


@pytest.mark.parametrize("stratified", [False, True])
def test_a_seed_repeats_it_and_every_series_may_come_anywhere(stratified):
    labels = np.repeat([0, 1], 10)
    held = np.zeros((3, 20))
    for seed in range(300):
        parts = split_three(20, labels, seed, stratified=stratified)
        again = split_three(20, labels, seed, stratified=stratified)
        for row, part, same in zip(held, parts, again, strict=True):
            np.testing.assert_array_equal(part, same)
            row[part] += 1
    # 300 draws of probability 0.6, 0.2, 0.2: standard deviations 8.5, 6.9, 6.9.
    np.testing.assert_allclose(held, np.array([[180.0], [60.0], [60.0]]) * np.ones(20), atol=5 * 8.5)


def test_other_shares_and_empty_parts():
    assert [len(part) for part in split_three(10, shares=(0.8, 0.0, 0.2))] == [8, 0, 2]
    assert [len(part) for part in split_three(10, [0] * 10, shares=(0.5, 0.5, 0.0), stratified=True)] == [5, 5, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": (0.6, 0.2)}, r"shares are \(0.6, 0.2\); give three of sum 1"),
        ({"shares": (0.6, 0.3, 0.2)}, "give three of sum 1"),
        ({"shares": (1.2, -0.4, 0.2)}, "give three of sum 1"),
        ({"labels": [1, 2]}, "there are 2 labels for 10 series; give one label per series"),
        ({"stratified": True}, "a stratified split needs the labels"),
    ],
)
def test_what_cannot_be_split_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        split_three(10, **options)
