"""Decimal commas, and the points that then stand between thousands."""

import pandas as pd

_PLAIN = r"(\d+,?\d*|,\d+)([eE][-+]?\d+)?"
_THOUSANDS = r"[1-9]\d{0,2}(\.\d{3})+"
_NUMBER = rf"[-+]?({_PLAIN}|{_THOUSANDS}(,\d*)?)"
_SURE = r",|\..*\."
"""A comma, or two points: what no number with a decimal point has."""


def with_decimal_commas(told: pd.Series) -> pd.Series | None:
    """A column of text as numbers, if all of them have decimal commas or none, and some show that they have; points are
    then between thousands. None for any other.
    """
    if not told.str.contains(_SURE).any() or not told.str.fullmatch(_NUMBER).all():
        return None
    return told.str.replace(".", "", regex=False).str.replace(",", ".", regex=False).astype(float)


def may_be_thousands(told: pd.Series) -> str | None:
    """A number such as 1.007 of a column in which all points may be decimal ones or between thousands; None if there is
    none, or if one of them can only be decimal.
    """
    pointed = told.loc[told.str.contains(".", regex=False)]
    ambiguous = len(pointed) and bool(pointed.str.fullmatch(rf"[-+]?{_THOUSANDS}").all())
    return str(pointed.iloc[0]) if ambiguous else None
