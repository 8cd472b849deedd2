"""The estimators as aeon's classifiers and regressors, for its pipelines and benchmarks.

aeon's collections know no time stamps: series are taken to be sampled at 0, 1, 2, ... Where stamps matter, use
`CDEClassifier` and `CDERegressor` with a `SeriesSet`.
"""

from typing import Any, cast

import numpy as np
from aeon.classification.base import BaseClassifier
from aeon.regression.base import BaseRegressor
from sklearn.base import clone

from smoothcde.estimators.classifier import CDEClassifier
from smoothcde.estimators.regressor import CDERegressor

_TAGS = {
    "X_inner_type": ["np-list", "numpy3D"],
    "capability:multivariate": True,
    "capability:unequal_length": True,
    "capability:missing_values": True,
    "algorithm_type": "deeplearning",
}
_QUICK: dict[str, Any] = {"hidden": 4, "epochs": 2, "bandwidths": (0.5,), "rtol": 0.1, "atol": 0.1}


class AeonCDEClassifier(BaseClassifier):
    """`CDEClassifier` as an aeon classifier.

    ```python
    AeonCDEClassifier(CDEClassifier(hidden=32, random_state=0)).fit(X, y)
    ```

    Args:
        estimator: what to fit; None for `CDEClassifier()`.
    """

    _tags = _TAGS

    def __init__(self, estimator: CDEClassifier | None = None):
        self.estimator = estimator
        super().__init__()

    def _fit(self, X: Any, y: Any) -> "AeonCDEClassifier":
        self.estimator_ = cast(CDEClassifier, clone(self.estimator or CDEClassifier())).fit(X, y)
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.estimator_.predict(X)

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.estimator_.predict_proba(X)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"estimator": CDEClassifier(**_QUICK)}


class AeonCDERegressor(BaseRegressor):
    """`CDERegressor` as an aeon regressor.

    Args:
        estimator: what to fit; None for `CDERegressor()`.
    """

    _tags = _TAGS

    def __init__(self, estimator: CDERegressor | None = None):
        self.estimator = estimator
        super().__init__()

    def _fit(self, X: Any, y: Any) -> "AeonCDERegressor":
        self.estimator_ = cast(CDERegressor, clone(self.estimator or CDERegressor())).fit(X, y)
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.estimator_.predict(X)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"estimator": CDERegressor(**_QUICK)}
