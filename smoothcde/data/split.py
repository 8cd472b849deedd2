"""Random splits into training, validation and test."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def split_three(
    count: int,
    labels: Any = None,
    seed: int = 0,
    shares: Sequence[float] = (0.6, 0.2, 0.2),
    stratified: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices of training, validation and test, each in increasing order: disjoint, and together all of `count`.

    The paper splits the merged set of an archive 60/20/20 at random, and does not say that classes were balanced.

    ```python
    from smoothcde.data import load_uea, split_three

    series, labels = load_uea("JapaneseVowels", "all")
    train, validation, test = split_three(len(series), seed=1)
    fitted_on = series[train], labels[train]
    ```

    Args:
        count: how many series there are.
        labels: the class of each; used by a stratified split only.
        seed: another gives another split.
        shares: of the three parts, of sum 1; sizes are rounded where they are no whole numbers.
        stratified: give every part its share of every class, less than two series off. The sizes of the parts stay the
            same.
    """
    if len(shares) != 3 or min(shares) < 0 or not np.isclose(sum(shares), 1):
        raise ValueError(f"shares are {tuple(shares)}; give three of sum 1, such as (0.6, 0.2, 0.2)")
    if labels is not None and len(labels) != count:
        raise ValueError(f"there are {len(labels)} labels for {count} series; give one label per series")
    generator = np.random.default_rng(seed)
    order = generator.permutation(count)
    ends = np.rint(np.cumsum(shares) * count).astype(int)
    sizes = np.diff(ends, prepend=0)
    part = np.repeat(np.arange(3), sizes)
    if stratified:
        if labels is None:
            raise ValueError("a stratified split needs the labels; give them as `labels`")
        order = order[np.argsort(_shuffled_classes(labels, generator)[order], kind="stable")]
        # Each part spread evenly along the classes: any stretch of them has the share of every part.
        part = part[np.argsort(np.concatenate([(np.arange(size) + 0.5) / size for size in sizes]), kind="stable")]
    train, validation, test = (np.sort(order[part == i]) for i in range(3))
    return train, validation, test


def _shuffled_classes(labels: Any, generator: np.random.Generator) -> np.ndarray:
    """Labels as numbers, in an order of classes that favours none."""
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    return generator.permutation(len(classes))[codes]
