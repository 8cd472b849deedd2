"""Models by name."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from smoothcde.checks import check_known, check_whole, choices
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
_GIVEN = ("channels", "outputs", "time_scale", "bandwidth", "bandwidths", "options", "views", "path_channels")
"""Arguments that `build_model` or the class itself gives."""
_SIZES = ("hidden", "width", "encoder_width", "rank", "layers", "state", "expand")


@dataclass(frozen=True)
class Builder:
    """A model class with what its name in `MODELS` stands for.

    Attributes:
        model: the class.
        fixed: arguments that the name decides.
        bandwidths: how many it takes: "one", "several", or "none" for models that smooth nothing.
    """

    model: type[SeriesModel]
    fixed: Mapping[str, Any]
    bandwidths: Literal["none", "one", "several"] = "none"

    def __call__(self, bandwidths: Sequence[float], **settings: Any) -> SeriesModel:
        """The model; `bandwidths` are left out where it has no use for them."""
        if self.bandwidths == "several":
            settings["bandwidths"] = bandwidths
        elif self.bandwidths == "one":
            if len(bandwidths) != 1:
                raise ValueError(
                    f"model {self.fixed['path']!r} has one path; give one bandwidth, not {len(bandwidths)}"
                )
            settings["bandwidth"] = bandwidths[0]
        return self.model(**self.fixed, **settings)

    def settings(self) -> list[str]:
        """Names of what else it takes: the keyword arguments of the class and of those it passes the rest to."""
        names: list[str] = []
        for cls in self.model.__mro__:
            own = inspect.signature(cls.__init__).parameters.values() if "__init__" in vars(cls) else ()
            names += [each.name for each in own if each.kind is each.KEYWORD_ONLY]
            if own and not any(each.kind is each.VAR_KEYWORD for each in own):
                break
        return [name for name in dict.fromkeys(names) if name not in (*self.fixed, *_GIVEN)]


def _single(path: str) -> Builder:
    return Builder(NeuralCDE, {"path": path}, "one" if path in ("kernel", "gp") else "none")


def _multi(smoother: str, encoder: str) -> Builder:
    return Builder(MultiViewCDE, {"smoother": smoother, "encoder": encoder}, "several")


MODELS: dict[str, Builder] = {
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
    "log-ncde": Builder(LogNCDE, {"form": "log-ode"}),
    "neural-rde": Builder(LogNCDE, {"form": "path"}),
    "ode-rnn": Builder(ODERNN, {}),
    "gru-d": Builder(GRUDModel, {}),
    "gru": Builder(GRUModel, {}),
    "mamba": Builder(MambaModel, {}),
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
    check_known("model", name, MODELS)
    options = {key: settings.pop(key) for key in _SOLVER_SETTINGS if key in settings}
    builder = MODELS[name]
    known = builder.settings()
    if "noise" not in known:
        settings.pop("noise", None)
    if unknown := sorted(settings.keys() - set(known)):
        raise ValueError(
            f"model {name!r} has no setting {unknown[0]!r}; it has {choices(sorted(known))}, and those of the solver: "
            f"{choices(_SOLVER_SETTINGS)}"
        )
    for size, value in {"channels": channels, "outputs": outputs, **settings}.items():
        if size in ("channels", "outputs") or (size in _SIZES and value is not None):
            check_whole(size, value, 1)
    return builder(
        channels=channels,
        outputs=outputs,
        time_scale=time_scale,
        bandwidths=tuple(bandwidths),
        options=SolverOptions(**options),
        **settings,
    )
