"""Control paths: one file each, all under the contract of `Path`."""

from smoothcde.paths.base import Path
from smoothcde.paths.gp import GPPath
from smoothcde.paths.gp_exact import ExactGPPath
from smoothcde.paths.gp_fourier import FourierBasis, FourierGPPath
from smoothcde.paths.hermite import HermitePath
from smoothcde.paths.integral import IntegralPath
from smoothcde.paths.joined import JoinedPath, TimePath
from smoothcde.paths.kernel import KernelPath
from smoothcde.paths.linear import LinearPath
from smoothcde.paths.log_signature import LogSignaturePath
from smoothcde.paths.missing import fill_forward, fill_linear
from smoothcde.paths.natural_cubic import NaturalCubicPath
from smoothcde.paths.rectilinear import RectilinearPath
from smoothcde.paths.smoothing_spline import SmoothingSplinePath

__all__ = [
    "ExactGPPath",
    "FourierBasis",
    "FourierGPPath",
    "GPPath",
    "HermitePath",
    "IntegralPath",
    "JoinedPath",
    "KernelPath",
    "LinearPath",
    "LogSignaturePath",
    "NaturalCubicPath",
    "Path",
    "RectilinearPath",
    "SmoothingSplinePath",
    "TimePath",
    "fill_forward",
    "fill_linear",
]
