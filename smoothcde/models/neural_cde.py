"""A neural CDE along one path per series, of any kind and without attention."""

from typing import Any

import torch
from torch import Tensor

from smoothcde.checks import check_above_zero, check_choice
from smoothcde.models.bandwidths import Bandwidths
from smoothcde.models.base import full_precision
from smoothcde.models.cde import CDEModel, kinks_of_kernel
from smoothcde.paths import (
    GPPath,
    HermitePath,
    JoinedPath,
    KernelPath,
    LinearPath,
    NaturalCubicPath,
    Path,
    RectilinearPath,
    SmoothingSplinePath,
)
from smoothcde.series import SeriesBatch

INTERPOLANTS = {
    "linear": LinearPath,
    "hermite": HermitePath,
    "cubic": NaturalCubicPath,
    "smoothing-spline": SmoothingSplinePath,
}
SMOOTHERS = ("kernel", "gp")
PATHS = (*INTERPOLANTS, "rectilinear", *SMOOTHERS)


class NeuralCDE(CDEModel):
    """dz = f(z) dX along one path per series: the baseline on exact interpolants, and single-path smoothing.

    ```python
    model = NeuralCDE(path="cubic", channels=3, outputs=20, hidden=604)
    logits = model(series.batch())
    ```

    Args:
        path: "linear", "rectilinear", "hermite", "cubic", "smoothing-spline", "kernel" or "gp".
        channels: of the series.
        outputs: of the readout.
        bandwidth: fraction of `time_scale`, for "kernel" and "gp".
        noise: sigma of the Gaussian process.
        kernel: of the kernel path.
        smoothing: penalty per observation of the smoothing spline.
        learn_bandwidth: train the bandwidth with the model.
        count_channels: append how often each channel was observed so far.
        count_scale: unit of those counts.
        settings: `hidden`, `width`, `activation`, `rank`, `static`, `time_scale`, `time_channel`, `time_unit`,
            `integral_channels`, `integral_unit`, `options`, see `CDEModel`.
    """

    def __init__(
        self,
        *,
        path: str,
        channels: int,
        outputs: int,
        bandwidth: float = 0.1,
        noise: float = 0.01,
        kernel: str = "gaussian",
        smoothing: float = 0.5,
        learn_bandwidth: bool = False,
        count_channels: bool = False,
        count_scale: float = 0.1,
        **settings: Any,
    ):
        check_choice("path", path, PATHS)
        check_above_zero("noise", noise, "it must be positive, 0.01 is the usual choice")
        path_channels = channels * (1 + count_channels) + (path == "rectilinear")
        if path == "rectilinear":
            settings["time_channel"] = False  # it always brings its own
            if settings.get("integral_channels"):
                raise ValueError(
                    "a rectilinear path stands still in time while it moves, and has no integral over it; leave "
                    "integral_channels out, or take another path"
                )
        super().__init__(views=1, channels=channels, path_channels=path_channels, outputs=outputs, **settings)
        self.path = path
        self.kernel, self.noise, self.smoothing = kernel, noise, smoothing
        self.count_scale = count_scale if count_channels else None
        if path in SMOOTHERS:
            self.bandwidths = Bandwidths((bandwidth,), self.time_scale, learn_bandwidth)

    def why_no_plan(self) -> str | None:
        """None for smooth paths: those whose slope has no jump at every stamp."""
        if self.path in ("linear", "rectilinear"):
            return f"a {self.path} path has a kink at every stamp, and steps have to end on them"
        return kinks_of_kernel(self.kernel) if self.path == "kernel" else None

    def smooth(self, batch: SeriesBatch) -> tuple[Path, Tensor | None, Tensor]:
        """One path per series; no attention, no penalty."""
        with full_precision(batch):
            path = self.with_counts(self._fit(batch), batch)
        return path, None, torch.zeros((), dtype=batch.dtype, device=batch.device)

    def with_counts(self, path: Path, batch: SeriesBatch) -> Path:
        """The paths with channels that count observations, if the model has them."""
        if self.count_scale is None:
            return path
        return JoinedPath.of(path, self._counts(batch.counts(self.count_scale)))

    def _fit(self, batch: SeriesBatch) -> Path:
        if self.path == "gp":
            nodes = self.bandwidths.nodes(float(batch.end.max()) if len(batch) else 0.0)
            return GPPath.fit(batch, self.bandwidths.values, self.noise, nodes=nodes)
        if self.path == "kernel":
            return KernelPath.fit(batch, self.bandwidths.values, kernel=self.kernel)
        if self.path == "smoothing-spline":
            return SmoothingSplinePath.fit(batch, self.smoothing)
        if self.path == "rectilinear":
            return RectilinearPath.fit(batch, self.time_scale)
        return INTERPOLANTS[self.path].fit(batch)

    def _counts(self, counts: SeriesBatch) -> Path:
        if self.path in SMOOTHERS:
            return KernelPath.fit(counts, self.bandwidths.values)
        if self.path == "rectilinear":
            return _without_time(RectilinearPath.fit(counts, self.time_scale))
        return (NaturalCubicPath if self.path == "smoothing-spline" else INTERPOLANTS[self.path]).fit(counts)


def _without_time(path: RectilinearPath) -> RectilinearPath:
    """A rectilinear path less its own time channel, to stand beside one that has it."""
    return path.with_tensors([path.coefficients[..., :-1]])
