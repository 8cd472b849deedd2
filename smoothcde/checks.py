"""What an argument may be, and what is said in the same words everywhere if it is something else."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def check_choice(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Refuse a value of an argument that is none of those it may have."""
    allowed = tuple(allowed)
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; use any of: {choices(allowed)}")


def check_known(kind: str, name: Any, known: Iterable[Any]) -> None:
    """Refuse the name of something that there is not."""
    known = tuple(known)
    if name not in known:
        raise ValueError(f"there is no {kind} {name!r}; use any of: {choices(known)}")


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number, or one too small; numbers of NumPy are as good as Python's."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is {value!r}; give a whole number of at least {least}")


def check_above_zero(name: str, value: Any, hint: str) -> None:
    """Refuse what is no finite number above zero; the hint says what is wanted instead."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} is {value!r}; {hint}")


def choices(allowed: Iterable[Any]) -> str:
    """Choices as a message shows them."""
    return ", ".join(map(repr, allowed))
