"""Series that are held out for validation."""

import numpy as np


def held_out(count: int, fraction: float, seed: int, classes: np.ndarray | None = None) -> np.ndarray:
    """A mask of the series to hold out, at random.

    With `classes`, every class gives its share, as near as whole series can, and keeps at least one for training. So
    very few series may give nothing at all to validate on.
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"validation_fraction is {fraction}; give a share from 0 (no validation) to below 1")
    generator = np.random.default_rng(seed)
    mask = np.zeros(count, dtype=bool)
    for group in np.unique(classes) if classes is not None else [None]:
        members = np.arange(count) if group is None else np.flatnonzero(classes == group)
        members = generator.permutation(members)
        # The part of a share that is less than a series is drawn, so that many small classes do not all give none.
        share = int(np.floor(fraction * len(members) + generator.random()))
        mask[members[: min(share, len(members) - 1)]] = True
    return mask
