"""The first step size."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

USUAL_MOVE = 0.15
"""What a turn of the path moves a state by, of its size: 0.1 for models as they begin, up to 0.2 for trained ones."""


def first_step(
    z: Tensor,
    slope: Tensor,
    tolerances: tuple[float, float],
    order: int,
    room: np.ndarray,
    in_windows: bool,
    driven: bool,
    to_units: Callable[[np.ndarray], np.ndarray],
    to_rows: Callable[[np.ndarray], np.ndarray],
    slope_after: Callable[[np.ndarray, Tensor], Tensor],
) -> np.ndarray:
    """After Hairer, Norsett and Wanner, "Solving ordinary differential equations I", II.4.

    A step size per unit from the sizes of state, slope and the slope's change over a tiny step; one evaluation.

    The classical rule takes the fifth root (say) of a rate, so that its answer depends on the unit of time: a series
    stamped in seconds would start with other steps than the same one in hours. With `in_windows` the unit is half the
    window, which then runs from -1 to 1 whatever the stamps are. The rule is too timid for short windows, as between
    two stamps: a step that even Euler's method would take within the tolerance is safe, unless something from outside
    may yet move the state.

    Args:
        z: states at the start.
        slope: there.
        tolerances: rtol, atol.
        order: of the method.
        room: how far each unit has to go.
        in_windows: measure time in half windows, not as it comes (which is what torchdiffeq does).
        driven: see `Term.driven`.
        to_units: mean squares per row to mean squares per unit.
        to_rows: a number per unit to one per row.
        slope_after: the slope a small step (per unit) later, at the given states.
    """
    rtol, atol = tolerances
    clock = np.where(room > 0, room / 2, 1.0) if in_windows else np.ones_like(room)
    with torch.no_grad():
        allowed = atol + rtol * z.abs()

        def size(of: Tensor) -> np.ndarray:
            return np.sqrt(to_units((of / allowed).square().mean(dim=1).double().cpu().numpy()))

        d0, d1 = size(z), size(slope) * clock
        with np.errstate(divide="ignore", invalid="ignore"):
            tiny = np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
        tiny = np.minimum(tiny, room / clock)
        moved = z + torch.as_tensor(to_rows(tiny * clock), dtype=z.dtype, device=z.device)[:, None] * slope
        after = slope_after(tiny * clock, moved)
        with np.errstate(divide="ignore", invalid="ignore"):
            d2 = size(after - slope) * clock / tiny
            steepest = np.maximum(d1, d2)
            wanted = np.where(steepest <= 1e-15, np.maximum(1e-6, tiny * 1e-3), (0.01 / steepest) ** (1 / order))
            if in_windows and not driven:
                wanted = np.fmax(wanted, np.sqrt(2 / d2))
    return np.where(room > 0, np.minimum(np.minimum(100 * tiny, wanted) * clock, room), 0.0)


def first_turns(
    z: Tensor,
    slope: Tensor,
    tolerances: tuple[float, float],
    usual: float,
    rate: np.ndarray,
    to_units: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """A step size per unit in turns of its path: the usual one, less where a field moves a state further in a turn than
    those of models do. No evaluation but the first slope, which every solve needs.

    Args:
        z: states at the start.
        slope: there.
        tolerances: rtol, atol.
        usual: turns in a step of the method.
        rate: turns per time at the start of each unit's window.
        to_units: mean squares per row to mean squares per unit.
    """
    rtol, atol = tolerances
    with torch.no_grad():
        moved = (slope / (atol + rtol * z.abs())).square().mean(dim=1).double().cpu().numpy()
    turn = np.sqrt(to_units(moved)) * max(tolerances) / rate / USUAL_MOVE
    # None for slopes that are no numbers, or whose squares are not.
    return np.where(np.isfinite(turn), usual / np.maximum(turn, 1.0), np.nan)
