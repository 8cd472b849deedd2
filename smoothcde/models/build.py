"""Models by name."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from smoothcde.models.multiview import MultiViewCDE
from smoothcde.models.neural_cde import NeuralCDE
from smoothcde.solve import SolverOptions

_SOLVER_SETTINGS = tuple(SolverOptions.__dataclass_fields__)


def _single(path: str) -> Callable[..., nn.Module]:
    def build(bandwidths: Sequence[float], **settings: Any) -> NeuralCDE:
        if path in ("kernel", "gp"):
            if len(bandwidths) != 1:
                raise ValueError(f"model {path!r} has one path; give one bandwidth, not {len(bandwidths)}")
            settings["bandwidth"] = bandwidths[0]
        return NeuralCDE(path=path, **settings)

    return build


def _multi(smoother: str, encoder: str) -> Callable[..., nn.Module]:
    def build(**settings: Any) -> MultiViewCDE:
        return MultiViewCDE(smoother=smoother, encoder=encoder, **settings)  # type: ignore[arg-type]

    return build


MODELS: dict[str, Callable[..., nn.Module]] = {
    "linear": _single("linear"),
    "rectilinear": _single("rectilinear"),
    "hermite": _single("hermite"),
    "cubic": _single("cubic"),
    "smoothing-spline": _single("smoothing-spline"),
    "kernel": _single("kernel"),
    "gp": _single("gp"),
    "mv-kernel": _multi("kernel", "identity"),
    "mv-gp": _multi("gp", "identity"),
    "mvc-kernel": _multi("kernel", "conv"),
    "mvc-gp": _multi("gp", "conv"),
}


def build_model(
    name: str,
    *,
    channels: int,
    outputs: int,
    time_scale: float,
    bandwidths: Sequence[float] = (0.1,),
    **settings: Any,
) -> nn.Module:
    """A model of the comparison, by name.

    ```python
    model = build_model("mvc-gp", channels=3, outputs=8, time_scale=series.longest_span, bandwidths=(0.1, 0.2, 0.4))
    ```

    Args:
        name: one of `MODELS`.
        channels: of the series.
        outputs: classes, or targets of a regression.
        time_scale: the longest span of the training series, or the declared window.
        bandwidths: fractions of it, one per view; models without smoothing ignore them.
        settings: what the model takes (`noise`, `hidden`, `width`, `activation`, `time_channel`, ...), and solver
            options (`solver`, `rtol`, `atol`, `step_control`, `knots`, `gradient`, `max_steps`).
    """
    if name not in MODELS:
        raise ValueError(f"there is no model {name!r}; use any of: {', '.join(map(repr, MODELS))}")
    options = {key: settings.pop(key) for key in _SOLVER_SETTINGS if key in settings}
    return MODELS[name](
        channels=channels,
        outputs=outputs,
        time_scale=time_scale,
        bandwidths=tuple(bandwidths),
        options=SolverOptions(**options),
        **settings,
    )
