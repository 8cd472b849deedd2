"""Which columns of the series at hand are those that a model was trained on."""

from dataclasses import replace

import numpy as np

from smoothcde.series import SeriesSet
from smoothcde.series.problems import counted


def channels_by_name(series: SeriesSet, names: tuple[str, ...]) -> SeriesSet:
    """The series with the channels of these names, in this order; by position where no side names any."""
    if series.channel_names == names:
        return series
    told = _named(names, "channel") or _named(series.channel_names, "channel")
    if told and set(names) <= set(series.channel_names):
        columns = [series.channel_names.index(name) for name in names]
        return replace(series, values=series.values[:, columns], channel_names=names)
    if _named(names, "channel") and _named(series.channel_names, "channel"):
        absent = ", ".join(name for name in names if name not in series.channel_names)
        found = ", ".join(series.channel_names)
        raise ValueError(f"this model needs the channels {absent}, which the series lack; they have {found}")
    if series.channels != len(names):
        raise ValueError(
            f"this model was trained on {counted(len(names), 'channel')}; the series have {series.channels}"
        )
    return series


def static_by_name(series: SeriesSet, names: tuple[str, ...]) -> np.ndarray:
    """The static features of these names, likewise."""
    if series.static is None:
        raise ValueError(f"this model needs the static features {', '.join(names)}; give them with the series")
    told = _named(names, "static") or _named(series.static_names, "static")
    if told and set(names) <= set(series.static_names):
        return series.static[:, [series.static_names.index(name) for name in names]]
    if _named(names, "static") and _named(series.static_names, "static"):
        absent = ", ".join(name for name in names if name not in series.static_names)
        found = ", ".join(series.static_names)
        raise ValueError(f"this model needs the static features {absent}, which the series lack; they have {found}")
    if series.static.shape[1] != len(names):
        raise ValueError(
            f"this model was trained on {counted(len(names), 'static feature')}; found {series.static.shape[1]}"
        )
    return series.static


def _named(names: tuple[str, ...], kind: str) -> bool:
    """Whether a user named these columns; `SeriesSet` numbers them otherwise."""
    return names != tuple(f"{kind} {i}" for i in range(len(names)))
