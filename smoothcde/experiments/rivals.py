"""What a user would otherwise pick, as entries of a comparison: boosted trees on summaries, and MiniRocket."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from smoothcde.paths import LinearPath
from smoothcde.series import SeriesSet


@runtime_checkable
class Rival(Protocol):
    """A classifier of series that is not ours."""

    def fit(self, series: SeriesSet, labels: np.ndarray) -> "Rival":
        """Learn."""
        ...

    def predict(self, series: SeriesSet) -> np.ndarray:
        """Labels."""
        ...


def summaries(series: SeriesSet) -> np.ndarray:
    """Per channel: count, mean, standard deviation, least, greatest, first, last, slope; then static features.

    NaN where a channel has no observation, which boosted trees take as it is.
    """
    batch = series.batch()
    values = np.where(batch.mask.numpy(), batch.values.double().numpy(), np.nan)
    times = np.where(batch.mask.numpy(), batch.times.numpy()[:, :, None], np.nan)
    seen = batch.mask.numpy()
    count = seen.sum(axis=1)
    with np.errstate(all="ignore"):
        mean = np.where(seen, values, 0).sum(axis=1) / count
        centred = np.where(seen, values - mean[:, None], 0)
        spread = np.sqrt((centred**2).sum(axis=1) / count)
        moment = np.where(seen, times, 0).sum(axis=1) / count
        delay = np.where(seen, times - moment[:, None], 0)
        slope = (delay * centred).sum(axis=1) / (delay**2).sum(axis=1)
        low = np.where(seen, values, np.inf).min(axis=1)
        high = np.where(seen, values, -np.inf).max(axis=1)
    first, last = seen.argmax(axis=1), seen.shape[1] - 1 - seen[:, ::-1].argmax(axis=1)
    begin = np.take_along_axis(values, first[:, None], axis=1)[:, 0]
    finish = np.take_along_axis(values, last[:, None], axis=1)[:, 0]
    columns = [count, mean, spread, low, high, begin, finish, slope]
    table = np.concatenate([np.where(np.isfinite(c), c, np.nan) for c in columns], axis=1)
    return table if series.static is None else np.concatenate([table, series.static], axis=1)


class BoostedSummaries:
    """scikit-learn's gradient boosting on `summaries`."""

    def __init__(self, seed: int = 0):
        self._model = HistGradientBoostingClassifier(random_state=seed)

    def fit(self, series: SeriesSet, labels: np.ndarray) -> "BoostedSummaries":
        """Learn."""
        self._model.fit(summaries(series), labels)
        return self

    def predict(self, series: SeriesSet) -> np.ndarray:
        """Labels."""
        return self._model.predict(summaries(series))


class InterpolatedMiniRocket:
    """aeon's MiniRocket with a ridge classifier, on series interpolated linearly onto a regular grid."""

    def __init__(self, seed: int = 0, length: int | None = None):
        self._seed, self._length = seed, length

    def fit(self, series: SeriesSet, labels: np.ndarray) -> "InterpolatedMiniRocket":
        """Learn; the grid has as many moments as the longest training series has stamps, and no fewer than 9."""
        from aeon.transformations.collection.convolution_based import MiniRocket

        self._grid = self._length or max(int(series.lengths.max()), 9)
        self._rocket = MiniRocket(random_state=self._seed)
        self._model = make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=np.logspace(-3, 3, 10)))
        self._model.fit(self._rocket.fit_transform(self._resampled(series)), labels)
        return self

    def predict(self, series: SeriesSet) -> np.ndarray:
        """Labels."""
        return self._model.predict(self._rocket.transform(self._resampled(series)))

    def decision(self, series: SeriesSet) -> np.ndarray:
        """The ridge classifier's scores."""
        return self._model.decision_function(self._rocket.transform(self._resampled(series)))

    def _resampled(self, series: SeriesSet) -> np.ndarray:
        batch = series.batch()
        share = np.linspace(0, 1, self._grid)
        values = LinearPath.fit(batch).evaluate(batch.end.numpy()[:, None] * share)
        return values.numpy().transpose(0, 2, 1).astype(np.float32)


RIVALS: dict[str, Callable[[int], Rival]] = {
    "boosted summaries": BoostedSummaries,
    "MiniRocket": InterpolatedMiniRocket,
}
