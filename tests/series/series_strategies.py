"""Irregular series for hypothesis: own lengths, own stamps, NaN where unobserved, sometimes no stamp at all."""

import numpy as np
from hypothesis import strategies as st

numbers = st.floats(-1e6, 1e6, width=32)
stamps = st.integers(-4000, 4000).map(lambda quarters: quarters / 4)


@st.composite
def ragged_series(draw, unobserved_stamps: bool = True):
    """A list of `(channels, time_i)` arrays and the list of their stamps."""
    channels = draw(st.integers(1, 3))
    times = draw(st.lists(st.lists(stamps, max_size=5, unique=True).map(sorted), min_size=1, max_size=4))
    column = st.lists(st.one_of(numbers, st.just(np.nan)), min_size=channels, max_size=channels)
    if not unobserved_stamps:
        column = column.filter(lambda values: not np.isnan(values).all())
    arrays = [np.array([draw(column) for _ in t], dtype=float).reshape(-1, channels).T for t in times]
    return arrays, [np.array(t, dtype=float) for t in times]
