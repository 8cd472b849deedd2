"""Fewer points for the same line."""

import numpy as np

TOLERANCE = 1e-3
"""How far, as a share of the plot's height, a thinned line may be from the full one: a seventh of a pixel."""


def thinned(t: np.ndarray, x: np.ndarray, height: float) -> tuple[np.ndarray, np.ndarray]:
    """The points of a line that a reader would miss (Douglas and Peucker, with vertical distance).

    Args:
        t: increasing.
        x: as long; parts that are not finite are dropped.
        height: of the plot, in units of x.
    """
    finite = np.isfinite(x)
    t, x = t[finite], x[finite]
    if len(t) < 3 or not height > 0:
        return t[[0, -1]] if len(t) > 1 else t, x[[0, -1]] if len(x) > 1 else x
    keep = np.zeros(len(t), dtype=bool)
    keep[[0, -1]] = True
    open_parts = [(0, len(t) - 1)]
    while open_parts:
        first, last = open_parts.pop()
        if last - first < 2:
            continue
        chord = np.interp(t[first + 1 : last], t[[first, last]], x[[first, last]])
        distance = np.abs(x[first + 1 : last] - chord)
        worst = int(distance.argmax())
        if distance[worst] > TOLERANCE * height:
            middle = first + 1 + worst
            keep[middle] = True
            open_parts += [(first, middle), (middle, last)]
    return t[keep], x[keep]
