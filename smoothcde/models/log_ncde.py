"""Log-NCDE: neural CDEs on log-signatures over windows."""

from typing import Any

import torch
from torch import Tensor

from smoothcde.checks import check_choice
from smoothcde.models.base import full_precision
from smoothcde.models.cde import CDEModel
from smoothcde.paths import LogSignaturePath, Path
from smoothcde.paths.log_signature import check_windows
from smoothcde.series import SeriesBatch
from smoothcde.solve import ControlTerm, LogODETerm, Term


class LogNCDE(CDEModel):
    """A neural CDE that sees a series by the log-signatures of windows, so that steps need not follow every stamp.

    Two forms go by this name. "log-ode" is its authors': the log-ODE method, in which areas act through Lie brackets of
    the field (Walker et al., 2024). "path" is what the paper describes, a path of log-signatures that drives a wider
    field, as in neural rough differential equations (Morrill et al., 2021). At depth 1 both are the linear path over
    windows. By name they are "log-ncde" and "neural-rde".

    Args:
        channels: of the series.
        outputs: of the readout.
        depth: 1 or 2.
        step: length of a window as a fraction of `time_scale`.
        form: "log-ode" or "path".
        time_channel: append time to the series before its signature is taken.
        settings: `hidden`, `width`, `activation`, `static`, `time_scale`, `time_unit`, `options`, see `CDEModel`.
    """

    def __init__(
        self,
        *,
        channels: int,
        outputs: int,
        depth: int = 2,
        step: float = 0.1,
        form: str = "log-ode",
        time_channel: bool = False,
        **settings: Any,
    ):
        check_choice("form", form, ("log-ode", "path"))
        if form == "log-ode" and settings.get("rank") is not None:
            raise ValueError(
                "the log-ODE method needs the full matrix of its field; leave `rank` out, or use neural-rde"
            )
        if settings.get("integral_channels"):
            raise ValueError(
                "log-signatures have no integral channels; leave them out, or take a model on another path"
            )
        check_windows(depth, step)
        base = channels + time_channel
        areas = base * (base - 1) // 2 if depth == 2 else 0
        path_channels = base + areas * (form == "path")
        super().__init__(views=1, channels=channels, path_channels=path_channels, outputs=outputs, **settings)
        self.depth, self.step, self.form, self.with_time, self.base = depth, step, form, time_channel, base

    def smooth(self, batch: SeriesBatch) -> tuple[Path, Tensor | None, Tensor]:
        """One path of log-signatures per series; no attention, no penalty."""
        scale = self.time_unit * self.time_scale if self.with_time else None
        with full_precision(batch):
            path = LogSignaturePath.fit(batch, self.depth, self.step * self.time_scale, scale)
        return path, None, torch.zeros((), dtype=batch.dtype, device=batch.device)

    def start_features(self, path: Path) -> Tensor:
        """The series' first values; areas are zero there."""
        start = path.evaluate(path.start)
        return start[:, : self.base] if self.form == "log-ode" else start

    def term(self, path: Path) -> Term:
        """The log-ODE vector field, or a wider field along the path."""
        if self.form == "path" or self.depth == 1:  # without areas there are no brackets
            return ControlTerm(self.field, path)
        assert isinstance(path, LogSignaturePath)  # as `smooth` made it
        return LogODETerm(self.field, path)
