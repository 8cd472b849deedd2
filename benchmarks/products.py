"""How many operations the matrix products of a training step need, counted from its evaluations."""

import numpy as np

from benchmarks.settings import HIDDEN, Setting
from smoothcde.solve import Stats


def step_operations(setting: Setting, stats: Stats, filtered: bool) -> dict[str, float]:
    """Floating point operations of field and encoder, forwards and backwards; a multiplication and an addition are two.

    Every evaluation is multiplied out once; backwards, which costs two products for one, only those of accepted steps:
    six each, and the first slope. Fitting the paths, tanh, the product with dX/dt and the optimiser are left out.

    Args:
        setting: what was trained on.
        stats: of the solve.
        filtered: count the encoder's second layer by minimal filtering, as compiled code does it: eight products for
            six outputs instead of eighteen.
    """
    rows = setting.series * setting.views
    per_row = 2 * HIDDEN * HIDDEN * (1 + setting.channels)
    forward = float(np.sum(stats.nfe)) * per_row
    backward = 2 * float(np.sum(1 + 6 * stats.accepted)) * per_row
    stamps = setting.series * setting.length
    first, second = 2 * stamps * 3 * setting.channels * HIDDEN, 2 * stamps * 3 * HIDDEN * HIDDEN
    if filtered:
        second *= 8 / 18
    scores = 2 * stamps * setting.views * HIDDEN
    ends = 2 * rows * HIDDEN * (setting.channels + setting.classes)
    # The first layer's inputs are data and want no gradient.
    return {
        "field": forward + backward,
        "encoder": 2 * first + 3 * second + 3 * scores,
        "initial and readout": 3 * ends,
    }
