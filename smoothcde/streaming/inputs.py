"""What users hand to a stream, as arrays that fit together."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from smoothcde.estimators.base import CDEEstimator
from smoothcde.estimators.predictor import Predictor
from smoothcde.series.arrays import in_seconds
from smoothcde.series.problems import Problems, listed


def predictor_of(model: Any) -> Predictor:
    """The predictor of a fitted estimator, or the one given."""
    if isinstance(model, Predictor):
        return model
    if isinstance(model, CDEEstimator):
        if not hasattr(model, "predictor_"):
            raise ValueError(f"this {type(model).__name__} is not fitted yet; call `fit` first")
        return model.predictor_
    raise TypeError(
        f"model is a {type(model).__name__}; give a Predictor (Predictor.load), or a fitted CDEClassifier or "
        "CDERegressor"
    )


def rows_named(series: Any, row_of: Mapping[Hashable, int], names: Sequence[Hashable]) -> np.ndarray:
    """Rows of the series named, all for None; one row for a single name."""
    if series is None:
        return np.arange(len(names))
    single = isinstance(series, str) or (isinstance(series, Hashable) and series in row_of)
    asked = [series] if single or not np.iterable(series) else list(series)
    asked = [name.item() if isinstance(name, np.generic) else name for name in asked]
    if unknown := [name for name in asked if name not in row_of]:
        raise ValueError(
            f"unknown series {listed(map(repr, unknown))}; this stream follows {len(names)}: {listed(map(repr, names))}"
        )
    return np.array([row_of[name] for name in asked], dtype=np.int64)


def observations_of(
    time: Any, values: Any, rows: np.ndarray, channels: Sequence[str], names: Sequence[Hashable]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, stamps and values `[stamps, channels]` of an update, checked."""
    numbers = _of_mapping(values, channels) if isinstance(values, Mapping) else _numbers(values, "values")
    numbers = numbers[None] if numbers.ndim == 1 else numbers
    if numbers.ndim != 2 or numbers.shape[1] != len(channels):
        raise ValueError(
            f"values have shape {numbers.shape}; this model needs the {len(channels)} channels {listed(channels)} at "
            "each stamp, (channels,) or (stamps, channels); NaN for what was not observed"
        )
    times = _numbers(in_seconds(time), "time")
    stamps = max(len(numbers), times.size, len(rows))
    if times.ndim > 1 or any(size not in (1, stamps) for size in (len(numbers), times.size, len(rows))):
        raise ValueError(
            f"there are {times.size} times, {len(numbers)} rows of values and {len(rows)} series; give one of each per "
            "stamp, or a single time or series for all"
        )
    if len(numbers) != stamps:
        raise ValueError(f"there is one row of values for {stamps} stamps; give a row to each")
    rows, times = np.broadcast_to(rows, stamps), np.broadcast_to(times.reshape(-1), stamps)
    problems = Problems()
    for row in np.unique(rows[~np.isfinite(times)]):
        problems.add(f"series {names[row]}: a time stamp is NaN or infinite; give every observation a finite stamp")
    stamp, channel = np.nonzero(np.isinf(numbers))
    for row, c in sorted(set(zip(rows[stamp].tolist(), channel.tolist(), strict=True))):
        problems.add(f"series {names[row]}, {channels[c]}: infinite values; use NaN for what was not observed")
    problems.raise_if_any()
    return rows, times, numbers


def static_of(model: Predictor, static: Any, names: Sequence[Hashable]) -> np.ndarray | None:
    """Static features `[series, features]`, checked; None for a model without."""
    wanted = model.static_names
    if not wanted:
        if static is not None:
            raise ValueError("this model was trained without static features; leave `static` out")
        return None
    if static is None:
        raise ValueError(f"this model needs the static features {', '.join(wanted)}; give `static`, a row per series")
    features = _numbers(static, "static")
    if features.shape != (len(names), len(wanted)) or not np.isfinite(features).all():
        raise ValueError(
            f"static has shape {features.shape}; give finite numbers, ({len(names)} series, {len(wanted)} features): "
            f"{', '.join(wanted)}"
        )
    return features


def _of_mapping(values: Mapping[str, Any], channels: Sequence[str]) -> np.ndarray:
    if unknown := [name for name in values if name not in channels]:
        raise ValueError(f"this model has no channel {listed(unknown)}; its channels are {listed(channels)}")
    columns = {name: np.atleast_1d(_numbers(column, name)) for name, column in values.items()}
    stamps = max((column.size for column in columns.values()), default=1)
    numbers = np.full((stamps, len(channels)), np.nan)
    for name, column in columns.items():
        if column.shape not in ((1,), (stamps,)):
            raise ValueError(f"channel {name} has shape {column.shape}; give one value per stamp ({stamps})")
        numbers[:, channels.index(name)] = column
    return numbers


def _numbers(item: Any, what: str) -> np.ndarray:
    try:
        array = np.asarray(item.detach().cpu().numpy() if hasattr(item, "detach") else item)
        if array.dtype.kind in "cmM":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: not numbers, or rows of unequal length; NaN for what was not observed") from None
