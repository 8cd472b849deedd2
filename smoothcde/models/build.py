"""Models by name."""

from collections.abc import Callable, Sequence
from typing import Any

from smoothcde.models.base import SeriesModel
from smoothcde.models.gru import GRUModel
from smoothcde.models.gru_d import GRUDModel
from smoothcde.models.log_ncde import LogNCDE
from smoothcde.models.mamba import MambaModel
from smoothcde.models.multiview import MultiViewCDE
from smoothcde.models.neural_cde import NeuralCDE
from smoothcde.models.ode_rnn import ODERNN
from smoothcde.solve import SolverOptions

_SOLVER_SETTINGS = tuple(SolverOptions.__dataclass_fields__)


def _single(path: str) -> Callable[..., SeriesModel]:
    def build(bandwidths: Sequence[float], **settings: Any) -> NeuralCDE:
        if path in ("kernel", "gp"):
            if len(bandwidths) != 1:
                raise ValueError(f"model {path!r} has one path; give one bandwidth, not {len(bandwidths)}")
            settings["bandwidth"] = bandwidths[0]
        return NeuralCDE(path=path, **settings)

    return build


def _multi(smoother: str, encoder: str) -> Callable[..., SeriesModel]:
    def build(**settings: Any) -> MultiViewCDE:
        return MultiViewCDE(smoother=smoother, encoder=encoder, **settings)  # type: ignore[arg-type]

    return build


def _without_smoothing(model: type[SeriesModel], **fixed: Any) -> Callable[..., SeriesModel]:
    def build(bandwidths: Sequence[float], noise: float = 0.01, **settings: Any) -> SeriesModel:
        return model(**fixed, **settings)

    return build


MODELS: dict[str, Callable[..., SeriesModel]] = {
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
    "log-ncde": _without_smoothing(LogNCDE, form="log-ode"),
    "neural-rde": _without_smoothing(LogNCDE, form="path"),
    "ode-rnn": _without_smoothing(ODERNN),
    "gru-d": _without_smoothing(GRUDModel),
    "gru": _without_smoothing(GRUModel),
    "mamba": _without_smoothing(MambaModel),
}


def build_model(
    name: str,
    *,
    channels: int,
    outputs: int,
    time_scale: float,
    bandwidths: Sequence[float] = (0.1,),
    **settings: Any,
) -> SeriesModel:
    """A model of the comparison, by name.

    ```python
    model = build_model("mvc-gp", channels=3, outputs=8, time_scale=series.longest_span, bandwidths=(0.1, 0.2, 0.4))
    ```

    Args:
        name: one of `MODELS`.
        channels: of the series.
        outputs: classes, or targets of a regression.
        time_scale: the longest span of the training series, or the declared window.
        bandwidths: fractions of it, one per view; models without smoothing ignore them, and `noise` too.
        settings: what the model takes (`noise`, `hidden`, `width`, `activation`, `time_channel`, ...), and solver
            options (`solver`, `rtol`, `atol`, `step_control`, `knots`, `gradient`, `max_steps`), which models without
            an equation to solve ignore.
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
