"""The user's own time in words and on an axis: plain numbers, or dates."""

from datetime import UTC, datetime, timedelta

import numpy as np
from matplotlib.dates import AutoDateLocator, num2date
from matplotlib.ticker import MaxNLocator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = 3.0e8, 4.2e9  # 1979 and 2103: what people record, and far from what they count by hand
_UNITS = ((86400.0 * 7, "weeks"), (86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def look_like_dates(starts: np.ndarray, ends: np.ndarray) -> bool:
    """Whether windows look like seconds since 1970: all of them within our lifetimes."""
    return len(starts) > 0 and bool((starts > _EARLIEST).all() and (ends < _LATEST).all())


def moment_text(origin: float, time: float, dates: bool) -> str:
    """A moment `time` after `origin`."""
    if not dates:
        return f"{origin + time:.10g}"
    moment = _EPOCH + timedelta(seconds=origin + time)
    return moment.strftime("%Y-%m-%d %H:%M") + (moment.strftime(":%S") if moment.second else "") + " UTC"


def duration_text(duration: float, dates: bool) -> str:
    """A length of time, in a unit that suits it where times are dates."""
    if not dates:
        return f"{duration:.3g}"
    size, unit = next((entry for entry in _UNITS if duration >= 2 * entry[0]), _UNITS[-1])
    return f"{duration / size:.3g} {unit}"


def ticks(origin: float, span: float, dates: bool) -> list[tuple[float, str]]:
    """Round moments within the window, as times since its start, with their labels."""
    if not span > 0:
        return [(0.0, moment_text(origin, 0.0, dates).removesuffix(" UTC"))]
    return _date_ticks(origin, span) if dates else _number_ticks(origin, span)


def _number_ticks(origin: float, span: float) -> list[tuple[float, str]]:
    places = MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]).tick_values(origin, origin + span)
    step = float(places[1] - places[0])
    inside = [float(p) for p in places if origin - 1e-9 * span <= p <= origin + span * (1 + 1e-9)]
    # As many decimals as the step has: 2.5 needs one, 0.25 two.
    decimals = next((d for d in range(12) if abs(step * 10**d - round(step * 10**d)) < 1e-6 * 10**d * step), 12)
    return [(p - origin, f"{p + 0.0:.{decimals}f}") for p in inside]


def _date_ticks(origin: float, span: float) -> list[tuple[float, str]]:
    first, last = (_EPOCH + timedelta(seconds=s) for s in (origin, origin + span))
    places = AutoDateLocator(minticks=4, maxticks=8, tz=UTC).tick_values(first, last)  # type: ignore[arg-type]
    moments = [moment for moment in num2date(places, tz=UTC) if first <= moment <= last] or [first]
    step = (moments[1] - moments[0]).total_seconds() if len(moments) > 1 else span
    labels, day = [], None
    for moment in moments:
        labels.append(_date_label(moment, step, moment.date() != day))
        day = moment.date()
    return [((moment - _EPOCH).total_seconds() - origin, text) for moment, text in zip(moments, labels, strict=True)]


def _date_label(moment: datetime, step: float, new_day: bool) -> str:
    """The date alone where steps are days or more, the clock otherwise, after the date when it changes."""
    if step >= 360 * 86400:
        return moment.strftime("%Y")
    if step >= 27 * 86400:
        return moment.strftime("%Y-%m")
    if step >= 86400:
        return moment.strftime("%m-%d")
    clock = moment.strftime("%H:%M" if step >= 60 else "%H:%M:%S")
    return moment.strftime("%m-%d ") + clock if new_day else clock
