"""Small models and the irregular series that the models' tests share."""

from typing import Any

import numpy as np
import torch

from smoothcde.models import SeriesModel, build_model
from smoothcde.series import SeriesSet

nan = np.nan
LONG = (
    [[0.3, nan, -1.1, 0.4, nan, 2.0, 0.7], [nan, 1.5, nan, nan, 0.2, -0.6, nan]],
    [10, 10.4, 11.1, 11.3, 12.9, 13, 15.2],
)
SHORT = ([[1.0, -0.5, 0.25, nan], [0.8, nan, nan, -1.4]], [-1.0, 0.5, 0.9, 4.0])
MIDDLE = ([[nan, 0.6, nan, -0.9, 1.2], [0.1, 0.2, -0.4, 1.1, 0.3]], [0.0, 0.3, 2.2, 2.5, 4.8])
ONE_OBSERVATION = ([[nan, nan, nan], [nan, -0.7, nan]], [0.0, 1.0, 2.5])
ONE_STAMP = ([[0.5], [nan]], [3.0])
CHANNEL_NEVER_OBSERVED = ([[0.5, 0.1, -0.3], [nan, nan, nan]], [0.0, 1.2, 2.0])
STAMPS_WITHOUT_VALUES = ([[nan, nan], [nan, nan]], [0.0, 1.0])
NOTHING = (np.zeros((2, 0)), [])

TIME_SCALE = 5.5  # a little more than any window below

WITHOUT_FIELD = ("gru-d", "gru", "mamba")  # nothing to integrate
WITHOUT_PATH = ("ode-rnn", *WITHOUT_FIELD)  # they read stamps, one after another


def series_of(*pairs: Any, **settings: Any) -> SeriesSet:
    """A set of two-channel series from (values, times) pairs."""
    return SeriesSet.from_arrays([values for values, _ in pairs], [times for _, times in pairs], **settings)


def several_views(name: str) -> bool:
    """Whether the model of that name has several views."""
    return name.startswith("mv")


def small_model(
    name: str, dtype: torch.dtype = torch.float64, seed: int = 0, stirred: bool = True, **settings: Any
) -> SeriesModel:
    """A model by name with a few hundred parameters: two views where it can have several.

    Layers that start at zero would hide what they do, so they are stirred unless a test trains them.
    """
    torch.manual_seed(seed)
    defaults: dict[str, Any] = {"channels": 2, "outputs": 3, "time_scale": TIME_SCALE, "hidden": 5}
    defaults |= {"noise": 0.1, "bandwidths": (0.2, 0.6) if several_views(name) else (0.2,)}
    if name in WITHOUT_FIELD:
        settings.pop("width", None)
    else:
        defaults["width"] = 6
    if several_views(name):
        defaults["encoder_width"] = 4
    model = build_model(name, **(defaults | settings))
    if stirred:
        with torch.no_grad():
            for parameter in model.parameters():
                if not parameter.any():
                    parameter.uniform_(0.2, 0.6)
    return model.double() if dtype == torch.float64 else model
