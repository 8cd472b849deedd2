"""Models of equal size, for comparisons that compare ideas and not parameter counts."""

from collections.abc import Callable
from functools import cache

from torch import nn


def parameter_count(model: nn.Module) -> int:
    """Trainable numbers in a model."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def matching_hidden(build: Callable[[int], nn.Module], parameters: int, most: int = 8192) -> int:
    """The hidden size whose model has the parameter count nearest to the given one.

    Args:
        build: makes a model of a given hidden size; its count must grow with it.
        parameters: the count to meet.
        most: the largest hidden size to consider.
    """
    count = cache(lambda hidden: parameter_count(build(hidden)))
    # Doubling first: a bisection of the whole range would build models of a hundred million parameters on its way.
    high = 1
    while high < most and count(high) < parameters:
        high = min(2 * high, most)
    low = (high + 1) // 2
    while low < high:
        middle = (low + high) // 2
        if count(middle) < parameters:
            low = middle + 1
        else:
            high = middle
    candidates = [h for h in (low - 1, low) if h >= 1]
    return min(candidates, key=lambda h: abs(count(h) - parameters))
