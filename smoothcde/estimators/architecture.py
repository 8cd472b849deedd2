"""Which model to build: the user's choices, the recipe's, and what the training series call for."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from smoothcde.checks import check_choice
from smoothcde.models import MODELS
from smoothcde.series import SeriesSet
from smoothcde.training import Recipe

VIEWS = (0.1, 0.2, 0.4, 1.4)
"""Bandwidths of models with several views: from details to little more than the trend."""
HIDDEN, PAPER_HIDDEN, LEAST_HIDDEN = 64, 128, 16
LARGEST_MATRIX = 2048
"""Entries of a field's matrix, hidden x channels, that the usual size may have: beyond, fewer units are taken."""
SPARSE_NOISE = 0.1
"""Sigma of Gaussian process paths of series with missing values."""
FORECASTING = {"time_unit": 0.03, "integral_channels": True, "integral_unit": 0.3}
"""For equations that forecast: histories are short, and where a path is counts more than what shape it had."""
_SINGLE_PATHS = ("linear", "rectilinear", "hermite", "cubic", "smoothing-spline", "kernel", "gp")
_SIGNATURES = ("log-ncde", "neural-rde")


def architecture_of(
    name: str,
    series: SeriesSet,
    outputs: int,
    recipe: Recipe,
    chosen: Mapping[str, Any],
    options: Mapping[str, Any] | None,
    *,
    plain: bool = False,
    forecasting: bool = False,
    read: int | None = None,
) -> dict[str, Any]:
    """Arguments for `build_model`, as plain numbers and text.

    What stands further down counts more: what the series call for, the recipe's settings, the user's. Many channels get
    fewer hidden units, since a field has a number for each pair of them. Series with missing values get channels that
    count observations, and paths that keep more distance from each of them; an encoder that sees what was observed and
    when is given to these and to series with uneven stamps. All of it is fixed here, from the training series, and not
    by later batches.

    Args:
        name: of the model.
        series: of the training.
        outputs: classes or targets.
        recipe: its `model` settings.
        chosen: the estimator's own arguments; None means no choice.
        options: further settings of the model.
        plain: the paper's model: 128 units and nothing that the series might call for.
        forecasting: whether the series are histories whose future is asked for.
        read: channels that the model reads; None for those of the series.
    """
    check_choice("model", name, MODELS)
    several = name.startswith("mv")
    settings: dict[str, Any] = {"bandwidths": VIEWS if several else VIEWS[1:2]}
    settings |= {} if plain else _suited_to(series, name, forecasting)
    recommended = dict(recipe.model)
    if "bandwidths" in recommended and not several:
        recommended["bandwidths"] = recommended["bandwidths"][:1]
    settings |= recommended
    settings |= {key: value for key, value in chosen.items() if value is not None}
    settings |= dict(options or {})
    if "hidden" not in settings:
        settings["hidden"] = PAPER_HIDDEN if plain else _units(settings, series.channels if read is None else read)
    _let_widths_follow(settings, name)
    settings["bandwidths"] = [float(b) for b in _several(settings["bandwidths"])]
    settings |= {"name": name, "channels": series.channels, "outputs": outputs}
    settings["time_scale"] = series.longest_span if series.longest_span > 0 else 1.0
    settings["static"] = 0 if series.static is None else series.static.shape[1]
    return settings


def _suited_to(series: SeriesSet, name: str, forecasting: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if name in (*_SINGLE_PATHS, *_SIGNATURES) or name.startswith("mv"):
        # Without it an equation driven by a path cannot know how fast things went.
        settings["time_channel"] = True
    along_path = name in _SINGLE_PATHS or name.startswith("mv")
    if forecasting and along_path and name != "rectilinear":
        settings |= FORECASTING
    missing = series.has_missing
    if missing and along_path:
        # In units of a usual series' number of stamps: counts then grow to about 1, like the standardised values.
        stamps = float(np.median(series.lengths)) if len(series) else 1.0
        settings |= {"count_channels": True, "count_scale": 1.0 / max(stamps, 1.0)}
    if missing and name.endswith("gp"):
        # Where channels are observed now and then, single values should not bend a path: at 0.01, the paper's choice
        # for clean recordings, intensive care stays were learnt by heart.
        settings["noise"] = SPARSE_NOISE
    if name.startswith("mv") and (missing or not series.even):
        settings["encoder_inputs"] = "values+mask+gap"
    return settings


def _units(settings: Mapping[str, Any], channels: int) -> int:
    """The usual size of a state; smaller where a field has a matrix of it and of many channels."""
    if not settings.get("time_channel") or settings.get("rank") is not None:
        return HIDDEN
    channels = channels * (1 + settings.get("count_channels", False))
    channels = channels * (1 + settings.get("integral_channels", False)) + 1
    return min(HIDDEN, max(LEAST_HIDDEN, LARGEST_MATRIX // channels // 8 * 8))


def _let_widths_follow(settings: dict[str, Any], name: str) -> None:
    """Hidden layers as wide as the state, unless said otherwise."""
    if name.startswith("mv"):
        settings.setdefault("encoder_width", settings["hidden"])
    if name in (*_SINGLE_PATHS, *_SIGNATURES, "ode-rnn") or name.startswith("mv"):
        settings.setdefault("width", settings["hidden"])


def _several(bandwidths: Any) -> Iterable[float]:
    if isinstance(bandwidths, str):
        raise ValueError(
            f"bandwidths is {bandwidths!r}; give fractions of the longest series such as (0.1, 0.4), "
            "or let smoothcde.silverman, homogeneous or geometric make them"
        )
    return bandwidths if isinstance(bandwidths, Sequence | np.ndarray) else (bandwidths,)
