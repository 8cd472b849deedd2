"""What users hand to an estimator, as a `SeriesSet`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from smoothcde.series import SeriesSet


def series_of(estimator: BaseEstimator, X: Any, static: Any = None, times: Any = None, *, fitting: bool) -> SeriesSet:
    """The series of any input that estimators take.

    A table `(n, time)` goes through scikit-learn's own checks, which ask for the same columns at every call; everything
    else goes to `SeriesSet.from_arrays`. When fitting, the estimator is told what it was fitted on.
    """
    if _is_table(X):
        if fitting or getattr(estimator, "fitted_on_table_", False):
            table = validate_data(
                estimator, X, reset=fitting, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_features=1
            )
        else:
            table = check_array(X, dtype="float64", ensure_all_finite="allow-nan")  # type: ignore[arg-type]
        series = SeriesSet.from_arrays(table, times, static=static)
    elif isinstance(X, SeriesSet) or _is_list_of_sets(X):
        if static is not None or times is not None:
            raise ValueError("a SeriesSet brings its own times and static features; give them when you make it")
        series = X if isinstance(X, SeriesSet) else joined(X)
    else:
        series = SeriesSet.from_arrays(X, times, static=static)
    if fitting:
        estimator.fitted_on_table_ = _is_table(X)  # type: ignore[attr-defined]
        if not _is_table(X):
            estimator.n_features_in_ = series.channels  # type: ignore[attr-defined]
            if hasattr(estimator, "feature_names_in_"):
                del estimator.feature_names_in_  # type: ignore[attr-defined]
    return series


def joined(sets: Sequence[SeriesSet]) -> SeriesSet:
    """One set of several sets' series: scikit-learn's splitters turn a `SeriesSet` into a list of sets of one."""
    first = sets[0]
    if any(s.channel_names != first.channel_names or s.static_names != first.static_names for s in sets):
        raise ValueError("sets of series can only be joined if they have the same channels and static features")
    return replace(
        first,
        values=np.concatenate([s.values for s in sets]),
        times=np.concatenate([s.times for s in sets]),
        offsets=np.concatenate([[0], np.cumsum(np.concatenate([s.lengths for s in sets]))]),
        start=np.concatenate([s.start for s in sets]),
        end=np.concatenate([s.end for s in sets]),
        ids=tuple(name for s in sets for name in s.ids),
        static=None if first.static is None else np.concatenate([s.static for s in sets if s.static is not None]),
    )


def _is_list_of_sets(X: Any) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(item, SeriesSet) for item in X)


def _is_table(X: Any) -> bool:
    """Whether X is `(n, time)`, or something that only scikit-learn has words for."""
    if isinstance(X, SeriesSet):
        return False
    if isinstance(X, list | tuple):
        if len(X) == 0:
            return True
        if any(isinstance(item, SeriesSet) or np.ndim(item) > 1 for item in X):
            return False
        # Rows of unequal length are series of one channel.
        return all(np.ndim(item) == 0 for item in X) or len({np.shape(item) for item in X}) == 1
    if isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 1 and len(X):
        return _is_table(list(X))
    return (X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim) != 3
