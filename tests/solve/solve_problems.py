"""Small problems that the solver's tests share, and SciPy's answers to them."""

from itertools import pairwise

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor, nn

from smoothcde.paths import Path
from smoothcde.series import SeriesBatch, SeriesSet


class TinyField(nn.Module):
    """tanh(B tanh(A z)), a hidden x channels matrix, times dX/dt; counts how often it was asked."""

    def __init__(self, hidden: int = 4, channels: int = 2, width: int = 8, seed: int = 0, dtype=torch.float64):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> nn.Parameter:
            draw = torch.randn(shape, generator=generator, dtype=torch.float64) / shape[-1] ** 0.5
            return nn.Parameter(draw.to(dtype))

        self.inner, self.inner_bias = normal(width, hidden), normal(width)
        self.outer, self.outer_bias = normal(hidden * channels, width), normal(hidden * channels)
        self.calls = 0

    def product(self, z: Tensor, dx: Tensor, rows) -> Tensor:
        self.calls += 1
        layer = torch.tanh(nn.functional.linear(z, self.inner, self.inner_bias))
        matrix = torch.tanh(nn.functional.linear(layer, self.outer, self.outer_bias))
        return (matrix.view(len(z), -1, dx.shape[1]) * dx[:, None]).sum(dim=2)


def states(rows: int, hidden: int = 4, seed: int = 0, dtype=torch.float64) -> Tensor:
    return torch.randn(rows, hidden, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def waves(times: np.ndarray, channels: int = 2, seed: int = 0, fastest: int = 3) -> np.ndarray:
    """`(channels, time)`: a few sines per channel over the span of the times, of unit size."""
    rng = np.random.default_rng(seed)
    share = (times - times[0]) / (times[-1] - times[0])
    frequency = np.arange(1, fastest + 1)[:, None]
    phase = rng.uniform(0, 2 * np.pi, (channels, fastest, 1))
    amplitude = rng.normal(size=(channels, fastest, 1))
    return (amplitude * np.sin(2 * np.pi * frequency * share + phase)).sum(axis=1) / fastest**0.5


def smooth_series(n: int = 3, stamps: int = 40, span: float = 10.0, channels: int = 2, seed: int = 0) -> SeriesSet:
    """Smooth signals at irregular stamps of their own, all over `[0, span]`."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, span, stamps)
    jitter = 0.3 * span / stamps * rng.uniform(-1, 1, (n, stamps))
    jitter[:, [0, -1]] = 0
    times = grid + jitter
    return SeriesSet.from_arrays([waves(t, channels, seed + i) for i, t in enumerate(times)], list(times))


def ragged_series(lengths=(12, 7, 9, 5), channels: int = 2, seed: int = 0) -> SeriesSet:
    """Smooth signals with unit spacing and unequal lengths, hence unequal windows."""
    return SeriesSet.from_arrays([waves(np.arange(float(n)), channels, seed + i) for i, n in enumerate(lengths)])


def double(series: SeriesSet) -> SeriesBatch:
    return series.batch(dtype=torch.float64)


def scipy_state(field: TinyField, path: Path, z0: Tensor, *, pieces=None, **options) -> Tensor:
    """The final state of a path of one row by SciPy, solved piece by piece between the given times (start and end)."""
    assert path.rows == 1
    pieces = [path.start.item(), path.end.item()] if pieces is None else pieces
    hair = 1e-13 * max(abs(pieces[0]), abs(pieces[-1]))

    def slope(t: float, z: np.ndarray) -> np.ndarray:
        # Asked just inside the piece, a path with a kink at its end shows the side the piece is on.
        inside = min(max(t, begin + hair), end - hair)
        with torch.no_grad():
            return field.product(torch.as_tensor(z)[None], path.derivative(inside), None)[0].numpy()

    options = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-12} | options
    z = z0[0].detach().numpy()
    for begin, end in pairwise(pieces):
        z = solve_ivp(slope, (begin, end), z, **options).y[:, -1]
    return torch.as_tensor(z)[None]


def scipy_states(field: TinyField, path: Path, z0: Tensor, **options) -> Tensor:
    """The final states of all rows by SciPy, each over its own window."""
    solved = [scipy_state(field, path.select([row]), z0[[row]], **options) for row in range(path.rows)]
    return torch.cat(solved)


def error_in_tolerances(found: Tensor, expected: Tensor, tolerance: float) -> float:
    """The largest error, in units of atol + rtol |z|."""
    allowed = tolerance * (1 + expected.abs())
    return float(((found.double() - expected) / allowed).abs().max())
