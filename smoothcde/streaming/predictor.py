"""`StreamingPredictor`: a trained model that follows series as they happen."""

from collections.abc import Hashable, Iterator, Sequence
from datetime import timedelta
from os import PathLike
from typing import Any

import numpy as np
import torch

from smoothcde.checks import check_choice
from smoothcde.estimators.predictor import BATCH_SIZE
from smoothcde.models import MultiViewCDE
from smoothcde.series import SeriesSet
from smoothcde.series.arrays import in_seconds, span_in_seconds
from smoothcde.series.duplicates import check_policy
from smoothcde.series.problems import Problems, listed
from smoothcde.storage import read_directory, write_directory
from smoothcde.streaming.history import History
from smoothcde.streaming.incremental import LEAST_STAMPS, Incremental, has_incremental_form
from smoothcde.streaming.inputs import observations_of, predictor_of, rows_named, static_of
from smoothcde.streaming.scores import RememberedScores
from smoothcde.streaming.state import contents_of, restore

_METHODS = ("auto", "incremental", "refit")


class StreamingPredictor:
    """Predictions from the last `window` units of time of one or many series, at any moment.

    ```python
    stream = StreamingPredictor(Predictor.load("sepsis-model"), window=24.0, series=["bed 1", "bed 2"])
    stream.update(7.5, [[71.0, 0.97], [88.0, np.nan]])              # one stamp of every series; NaN: not observed
    stream.update(7.6, [72.0, 0.97], series="bed 1")                # of one
    stream.predict_proba()                                          # each at its own last stamp
    stream.predict_proba(at=8.0)                                    # all at one moment, from [8 - 24, 8]
    ```

    A prediction at a moment is that of `model` for the observations in `[at - window, at]`, with that declared window:
    the same as `model.predict(series.with_window(end=at, history=window))` offline. No later stamp is ever seen.

    Stamps may come late: one inside the window is inserted in its place, one before `newest stamp - window` is dropped
    and counted in `dropped`. Values for a stamp that is there already follow `duplicates`.

    Args:
        model: a `Predictor`, or a fitted `CDEClassifier` or `CDERegressor`; its scaling, labels and calibration apply.
        window: length of the history, in the series' unit of time; or a span such as pd.Timedelta("6h").
        series: how many series there are, or the names of them.
        static: `(series, features)`, for models with static features.
        duplicates: equal stamps in one series: "error", "mean", "last" or "first".
        late: what to do with a stamp before the newest one of its series: "insert" it, or "error".
        max_observations: stamps a window may hold; an update that would exceed it is refused.
        method: "refit" fits each window anew; "incremental" remembers attention scores and sums of Gaussian process
            paths; "auto" does what is quicker, see `docs/streaming.md`.

    Attributes:
        series: names of the series.
        dropped: `[series]`, how many stamps of each came too late for its window.
    """

    def __init__(
        self,
        model: Any,
        window: float | timedelta | np.timedelta64,
        series: int | np.integer | Sequence[Hashable] | np.ndarray = 1,
        *,
        static: Any = None,
        duplicates: str = "error",
        late: str = "insert",
        max_observations: int = 100_000,
        method: str = "auto",
    ):
        self.model = predictor_of(model)
        self.window = _positive(
            span_in_seconds(window, "window"), "window", "give the length of the history in the series' unit of time"
        )
        self.series: tuple[Hashable, ...] = _names(series)
        if not self.series or len(set(self.series)) != len(self.series):
            raise ValueError("series are not unique, or none; give the number of series or a name of its own to each")
        check_policy(duplicates)
        for name, value, allowed in (("late", late, ("insert", "error")), ("method", method, _METHODS)):
            check_choice(name, value, allowed)
        # Frozen steps are followed as they are offline, on paths fitted anew.
        incremental = has_incremental_form(self.model.model) and self.model.plan is None
        if method == "incremental" and self.model.plan is not None:
            raise ValueError('a predictor on frozen steps has no incremental form; use method="auto" or "refit"')
        if method == "incremental" and not incremental:
            raise ValueError(
                f"the model {self.model.architecture['name']!r} has no incremental form, only gp, mv-gp and mvc-gp "
                'have; use method="auto" or "refit"'
            )
        most = int(_positive(max_observations, "max_observations", "give the most stamps a window may hold"))
        self.duplicates, self.late, self.method = duplicates, late, method
        self.max_observations = most
        self.static = static_of(self.model, static, self.series)
        self.dropped = np.zeros(len(self.series), dtype=np.int64)
        self._row = {name: row for row, name in enumerate(self.series)}
        net = self.model.model
        net.eval()
        remembers = method != "refit" and incremental
        columns = RememberedScores.columns(net) if remembers and isinstance(net, MultiViewCDE) else {}
        channels = len(self.model.channel_names)
        self._history = History(len(self.series), channels, self.window, duplicates, most, columns)
        self._incremental = Incremental(net, self._history) if remembers else None  # type: ignore[arg-type]

    def __repr__(self) -> str:
        held = int(self._history.counts.sum())
        return f"StreamingPredictor({len(self.series)} series, window {self.window:g}, {held:,} stamps held)"

    def update(self, time: Any, values: Any, series: Any = None) -> None:
        """Take in observations; nothing changes if any of them is refused.

        Args:
            time: a number, or one per stamp.
            values: `(channels,)` for one stamp or `(stamps, channels)`, in the order of the model's channels, NaN for
                what was not observed; or a mapping of channel names to a value or one per stamp, channels that are not
                in it being not observed.
            series: the name of the series, or one per stamp (the same one may come several times); None for all
                series in order.
        """
        rows = rows_named(series, self._row, self.series)
        rows, times, numbers = observations_of(time, values, rows, self.model.channel_names, self.series)
        if self.late == "error":
            self._refuse_late(rows, times)
        if self._incremental is not None and len(times) and not np.isfinite(self._history.newest).any():
            self._incremental.anchor = float(times.min())  # panels count time from here
        self.dropped += self._history.add(rows, times, numbers, self.series)
        if self._incremental is not None:
            self._incremental.touch(rows, times)

    def predict(self, at: Any = None, series: Any = None) -> np.ndarray:
        """The likeliest label of each series, `[n]`; or its targets, `[n, targets]`.

        Args:
            at: the moment, one number or one per series, not before the series' newest stamp; None for that stamp.
            series: names of the series to predict, in this order; None for all.
        """
        return self.model.answers_of(self.outputs(at, series))

    def predict_proba(self, at: Any = None, series: Any = None) -> np.ndarray:
        """`[n, classes]`, calibrated if the model is; columns in the order of the model's labels.

        Args:
            at: see `predict`.
            series: likewise.
        """
        return self.model.probabilities_of(self.outputs(at, series))

    def outputs(self, at: Any = None, series: Any = None) -> np.ndarray:
        """`[n, outputs]` as the model gives them: logits, or standardised targets.

        Args:
            at: see `predict`.
            series: likewise.
        """
        rows = rows_named(series, self._row, self.series)
        moments = self._moments(at, rows)
        parts = [self._outputs(rows[i : i + BATCH_SIZE], moments[i : i + BATCH_SIZE]) for i in _blocks(len(rows))]
        return np.concatenate(parts)

    def history(self, at: Any = None, series: Any = None) -> SeriesSet:
        """What a prediction at that moment sees, in the user's own units: an ordinary set of series.

        Args:
            at: see `predict`.
            series: likewise.
        """
        rows = rows_named(series, self._row, self.series)
        return self._seen(rows, self._moments(at, rows))[0]

    def save(self, directory: str | PathLike[str]) -> None:
        """Write model and state to a directory of its own: safetensors and JSON, whole or not at all."""
        write_directory(directory, contents_of(self))

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> "StreamingPredictor":
        """The stream that was saved, with all it has seen; `ModelFileError` if it is damaged or something else."""
        return restore(cls, read_directory(directory), directory)

    def _outputs(self, rows: np.ndarray, moments: np.ndarray) -> np.ndarray:
        seen, slots, times = self._seen(rows, moments)
        if self._incremental is None or (self.method == "auto" and len(seen.times) < LEAST_STAMPS):
            return self.model.outputs(seen)
        like = next(self.model.model.parameters())
        batch = self.model.prepare(seen).batch(device=like.device, dtype=like.dtype)
        with torch.no_grad():
            outputs = self._incremental.outputs(batch, rows, slots, times)
        return outputs.double().cpu().numpy()

    def _seen(self, rows: np.ndarray, moments: np.ndarray) -> tuple[SeriesSet, np.ndarray, np.ndarray]:
        """The windows of some series, the slots of their stamps, padded as in a batch, and their times."""
        history, start = self._history, moments - self.window
        first, count = history.spans(rows, start)
        length = max(int(count.max(initial=0)), 1)
        place = np.arange(length)
        slots = first[:, None] + np.minimum(place, np.maximum(count - 1, 0)[:, None])
        slots = np.minimum(slots, history.times.shape[1] - 1)
        times = np.where(count[:, None] > 0, history.times[rows[:, None], slots], start[:, None])
        stamped = place < count[:, None]
        owner, at = np.nonzero(stamped)
        seen = SeriesSet(
            values=history.columns["values"][rows[owner], slots[owner, at]],
            times=times[stamped],
            offsets=np.concatenate([[0], np.cumsum(count)]),
            start=start,
            end=moments,
            ids=tuple(self.series[row] for row in rows),
            channel_names=self.model.channel_names,
            static=None if self.static is None else self.static[rows],
            static_names=self.model.static_names,
        )
        return seen, slots, times

    def _moments(self, at: Any, rows: np.ndarray) -> np.ndarray:
        newest = self._history.newest[rows]
        problems = Problems()
        if at is None:
            if silent := [self.series[row] for row in rows[~np.isfinite(newest)]]:
                problems.add(f"series {listed(silent)}: no stamp yet; update first, or say for which moment with `at`")
                problems.raise_if_any()
            return newest.copy()
        try:
            moments = np.broadcast_to(np.asarray(in_seconds(at), dtype=np.float64), rows.shape).copy()
        except (TypeError, ValueError):
            raise ValueError(f"at is {at!r}; give a number or a date, or one per series ({len(rows)})") from None
        for row in np.flatnonzero(~np.isfinite(moments)):
            problems.add(f"series {self.series[rows[row]]}: at is {moments[row]}; give a finite time")
        for row in np.flatnonzero(moments < newest):
            problems.add(
                f"series {self.series[rows[row]]}: at is {moments[row]:.15g}, before its newest stamp "
                f"{newest[row]:.15g}; predict at that stamp or later (for the past, use the Predictor itself)"
            )
        problems.raise_if_any()
        return moments

    def _refuse_late(self, rows: np.ndarray, times: np.ndarray) -> None:
        problems = Problems()
        order = np.argsort(rows, kind="stable")
        before = np.where(
            np.diff(rows[order], prepend=-1) == 0, np.roll(times[order], 1), self._history.newest[rows[order]]
        )
        for i in np.flatnonzero(times[order] < before):
            problems.add(
                f"series {self.series[rows[order][i]]}: time goes backwards ({before[i]:.15g} then "
                f'{times[order][i]:.15g}); sort the stamps, or make the StreamingPredictor with late="insert"'
            )
        problems.raise_if_any()


def _blocks(count: int) -> Iterator[int]:
    return iter(range(0, max(count, 1), BATCH_SIZE))


def _names(series: int | np.integer | Sequence[Hashable] | np.ndarray) -> tuple[Hashable, ...]:
    """So many numbers, the one name given, or all of them."""
    if isinstance(series, int | np.integer):
        return tuple(range(series))
    names = (series,) if isinstance(series, str) else tuple(series)
    return tuple(name.item() if isinstance(name, np.generic) else name for name in names)


def _positive(value: Any, name: str, remedy: str) -> float:
    if not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
        raise ValueError(f"{name} is {value!r}; {remedy}, a positive number")
    return float(value)
