"""Smoothing splines from SciPy, the classical alternative to kernel and Gaussian process paths."""

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from scipy.interpolate import UnivariateSpline

from smoothcde.paths.missing import fill_linear
from smoothcde.paths.natural_cubic import NaturalCubicPath
from smoothcde.series import SeriesBatch


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothingSplinePath(NaturalCubicPath):
    """The natural cubic spline through values smoothed by SciPy's `UnivariateSpline`, channel by channel.

    The penalty is s = smoothing x (valid observations of that channel), 0.5 in the paper's appendix: the sum of squared
    residuals may reach s, so values are taken to have unit variance. This is preprocessing on the CPU with a Python
    loop, and **not differentiable**: no gradient reaches the values.
    """

    @classmethod
    def fit(cls, batch: SeriesBatch, smoothing: float = 0.5) -> "SmoothingSplinePath":
        """Smooth, then interpolate a batch of series."""
        if not smoothing >= 0:
            raise ValueError(f"smoothing is {smoothing}; it must be zero or positive")
        values = fill_linear(batch).detach().cpu().numpy().copy()
        times, mask = batch.times.cpu().numpy(), batch.mask.cpu().numpy()
        for row, channel in np.argwhere(mask.any(axis=1)):
            seen = mask[row, :, channel]
            values[row, :, channel] = _smooth(times[row], values[row, :, channel], seen, smoothing)
        return cls.through(batch, torch.as_tensor(values, device=batch.device))


def _smooth(times: np.ndarray, values: np.ndarray, seen: np.ndarray, smoothing: float) -> np.ndarray:
    """Smoothed values at the stamps between the first and last observation, constant beyond."""
    count = int(seen.sum())
    if count < 2:
        return values
    t = times[seen]
    with warnings.catch_warnings():
        # FITPACK warns when it stops a hair short of s; the fit is used as it is, as the paper's baseline does.
        warnings.simplefilter("ignore", UserWarning)
        spline = UnivariateSpline(t, values[seen], k=min(3, count - 1), s=smoothing * count)
    return np.asarray(spline(np.clip(times, t[0], t[-1])))
