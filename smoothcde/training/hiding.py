"""Hiding observations at random: augmentation that smooth paths tolerate well."""

from dataclasses import replace

import numpy as np

from smoothcde.series import SeriesSet


def hide_stamps(series: SeriesSet, share: float, generator: np.random.Generator) -> SeriesSet:
    """The series without a random share of their stamps; the first and last inside each window stay.

    Stamps leave altogether, so that recurrent models take no step there either; windows stay as they are.
    """
    if share == 0:
        return series
    owner = np.repeat(np.arange(len(series)), series.lengths)
    inside = np.flatnonzero((series.times >= series.start[owner]) & (series.times <= series.end[owner]))
    keep = generator.random(len(series.times)) >= share
    edge = np.diff(owner[inside], prepend=-1, append=-1) != 0
    keep[inside[edge[:-1] | edge[1:]]] = True
    lengths = np.bincount(owner[keep], minlength=len(series))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return replace(series, values=series.values[keep], times=series.times[keep], offsets=offsets)
