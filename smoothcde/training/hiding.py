"""Hiding observations at random: augmentation that smooth paths tolerate well."""

import numpy as np

from smoothcde.data.corrupt import ends_of_windows
from smoothcde.series import SeriesSet


def hide_stamps(series: SeriesSet, share: float, generator: np.random.Generator) -> SeriesSet:
    """The series without a random share of their stamps; the first and last inside each window stay.

    Stamps leave altogether, so that recurrent models take no step there either; windows stay as they are. Each stamp is
    drawn for itself: a series loses the share on average. `drop_stamps` makes every series lose exactly that.
    """
    if share == 0:
        return series
    drawn = generator.random(len(series.times)) >= share
    return series.keeping(drawn | ends_of_windows(series))
