"""`explain`: from a trained model and some series to an `Explanation`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from smoothcde.estimators import Predictor
from smoothcde.explain.answer import Answer, SeriesExplanation
from smoothcde.explain.explanation import Explanation
from smoothcde.explain.times import look_like_dates
from smoothcde.plots import portray
from smoothcde.series import SeriesSet
from smoothcde.series.problems import listed
from smoothcde.solve import SolveError

BATCH_SIZE = 64
"""Series that are solved at a time."""


def explain(
    predictor: Any,
    series: Any,
    ids: Any = None,
    *,
    truth: Any = None,
    dates: bool | None = None,
    title: str | None = None,
) -> Explanation:
    """Why a model says what it says: what it was shown, the paths it made of that, attention, solver steps, answers.

    ```python
    explain(classifier, series, ids=[132539]).save("stay.html")
    ```

    Args:
        predictor: a fitted `CDEClassifier` or `CDERegressor`, or a `Predictor`.
        series: a `SeriesSet`, or arrays as `SeriesSet.from_arrays` takes them, in the user's own units.
        ids: which series, by their ids and in this order; all without. An id may be given as text.
        truth: the true label or target of every series in `series`, to be shown beside the answer; None or NaN where
            it is not known.
        dates: whether times are seconds since 1970, to be shown as dates; without, they are if all look like it.
        title: of the page.
    """
    predictor = _predictor(predictor)
    series = series if isinstance(series, SeriesSet) else SeriesSet.from_arrays(series)
    if truth is not None:
        truth = truth.to_numpy() if hasattr(truth, "to_numpy") else list(truth)  # by place, whatever a table's index
    if truth is not None and len(truth) != len(series):
        raise ValueError(f"there are {len(truth)} true values for {len(series)} series; give one per series")
    places = range(len(series)) if ids is None else _places(series, ids)
    if not places:
        raise ValueError("there is no series to explain; give at least one")
    chosen = series[np.asarray(places)]
    told: list[SeriesExplanation] = []
    for begin in range(0, len(chosen), BATCH_SIZE):
        told += _explained(predictor, chosen[begin : begin + BATCH_SIZE])
    if truth is not None:
        told = [
            replace(entry, answer=replace(entry.answer, truth=_known(truth[place])))
            for entry, place in zip(told, places, strict=True)
        ]
    name = str(predictor.architecture.get("name", type(predictor.model).__name__))
    count = "one series" if len(told) == 1 else f"{len(told)} series"
    return Explanation(
        title=title or f"What {name} made of {count}",
        model=name,
        series=tuple(told),
        channel_names=tuple(map(str, _shown_channels(predictor, series))),
        static_names=tuple(str(series.static_names[column]) for column in _static_columns(predictor, series)),
        dates=look_like_dates(chosen.start, chosen.end) if dates is None else dates,
    )


def _predictor(given: Any) -> Predictor:
    if isinstance(given, Predictor):
        return given
    found = getattr(given, "predictor_", None)
    if isinstance(found, Predictor):
        return found
    if hasattr(given, "fit") and found is None:
        raise ValueError(f"this {type(given).__name__} has not learnt anything yet; call `fit` before `explain`")
    raise TypeError(
        f"explain takes a fitted CDEClassifier or CDERegressor, or a Predictor, not a {type(given).__name__}"
    )


def _places(series: SeriesSet, ids: Any) -> list[int]:
    wanted = list(ids) if isinstance(ids, Sequence | np.ndarray) and not isinstance(ids, str) else [ids]
    by_id = {name: place for place, name in enumerate(series.ids)}
    by_text = {str(name): place for place, name in enumerate(series.ids)}  # a command line knows text only
    places = [by_id.get(name, by_text.get(str(name))) for name in wanted]
    if unknown := [name for name, place in zip(wanted, places, strict=True) if place is None]:
        raise ValueError(f"there is no series {listed(unknown)}; the ids begin with {listed(series.ids[:5])}")
    found = [place for place in places if place is not None]
    if len(set(found)) < len(found):
        twice = [name for i, name in enumerate(wanted) if places[i] in places[:i]]
        raise ValueError(f"series {listed(twice)} is asked for more than once; name each series once")
    return found


def _shown_channels(predictor: Predictor, series: SeriesSet) -> tuple[str, ...]:
    """The user's names: those of the series, unless the predictor picks or reorders its channels by name."""
    return (
        predictor.channel_names if set(predictor.channel_names) <= set(series.channel_names) else series.channel_names
    )


def _static_columns(predictor: Predictor, series: SeriesSet) -> list[int]:
    """The static features that the model sees, which may be some of those that the series bring."""
    if set(predictor.static_names) <= set(series.static_names):
        return [series.static_names.index(name) for name in predictor.static_names]
    return list(range(len(series.static_names)))


def _explained(predictor: Predictor, series: SeriesSet) -> list[SeriesExplanation]:
    try:
        batch, outcome = predictor.solve(series)
    except SolveError as error:
        # Its rows are (view, series) pairs; the user knows ids.
        ids = listed(dict.fromkeys(series.ids[row % len(series)] for row in np.flatnonzero(error.solution.codes)))
        raise SolveError(f"there is no answer to explain for series {ids}. {error}", error.solution) from error
    outputs = outcome.outputs.detach().double().cpu().numpy()
    if predictor.labels is not None:
        names, numbers = tuple(_text(label) for label in predictor.labels), predictor.probabilities_of(outputs)
    else:
        assert predictor.targets is not None
        names, numbers = predictor.target_names, predictor.targets.inverse(outputs)
    names = names or tuple(f"target {i}" for i in range(numbers.shape[1]))
    scaler, static = predictor.scaler, _static_columns(predictor, series)
    return [
        SeriesExplanation(
            id=name,
            portrait=portray(predictor.model, batch, outcome, place, scaler.mean, scaler.scale),
            answer=Answer(names, numbers[place], predictor.labels is not None),
            static=None if series.static is None else series.static[place, static],
        )
        for place, name in enumerate(series.ids)
    ]


def _known(value: Any) -> str | None:
    return None if value is None or (isinstance(value, float | np.floating) and np.isnan(value)) else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray | list | tuple):
        return ", ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
