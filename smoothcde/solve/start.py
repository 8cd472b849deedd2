"""The first step size: Hairer, Norsett and Wanner, "Solving ordinary differential equations I", II.4."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor


def first_step(
    z: Tensor,
    slope: Tensor,
    tolerances: tuple[float, float],
    order: int,
    room: np.ndarray,
    to_units: Callable[[np.ndarray], np.ndarray],
    to_rows: Callable[[np.ndarray], np.ndarray],
    slope_after: Callable[[np.ndarray, Tensor], Tensor],
) -> np.ndarray:
    """A step size per unit from the sizes of state, slope and the slope's change over a tiny step; one evaluation.

    Args:
        z: states at the start.
        slope: there.
        tolerances: rtol, atol.
        order: of the method.
        room: how far each unit has to go.
        to_units: mean squares per row to mean squares per unit.
        to_rows: a number per unit to one per row.
        slope_after: the slope a small step (per unit) later, at the given states.
    """
    rtol, atol = tolerances
    with torch.no_grad():
        allowed = atol + rtol * z.abs()

        def size(of: Tensor) -> np.ndarray:
            return np.sqrt(to_units((of / allowed).square().mean(dim=1).double().cpu().numpy()))

        d0, d1 = size(z), size(slope)
        with np.errstate(divide="ignore", invalid="ignore"):
            tiny = np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
        tiny = np.minimum(tiny, room)
        moved = z + torch.as_tensor(to_rows(tiny), dtype=z.dtype, device=z.device)[:, None] * slope
        after = slope_after(tiny, moved)
        with np.errstate(divide="ignore", invalid="ignore"):
            d2 = size(after - slope) / tiny
            steepest = np.maximum(d1, d2)
            wanted = np.where(steepest <= 1e-15, np.maximum(1e-6, tiny * 1e-3), (0.01 / steepest) ** (1 / order))
    return np.where(room > 0, np.minimum(np.minimum(100 * tiny, wanted), room), 0.0)
