"""Better settings of an estimator, found by trial on validation series."""

from smoothcde.tuning.search import Tuned, tune
from smoothcde.tuning.space import SearchSpace

__all__ = ["SearchSpace", "Tuned", "tune"]
