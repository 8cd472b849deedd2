"""The paper's settings, data set by data set and model by model (its appendix B and table 2)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from smoothcde.checks import check_known
from smoothcde.models import SeriesModel, build_model, matching_hidden, parameter_count
from smoothcde.reproduce.trial import Trial
from smoothcde.training import Recipe

MULTI_SCALE = (0.03, 0.1, 0.4, 1.4)


@dataclass(frozen=True)
class Setting:
    """Everything that decides the outcome of a trial.

    Attributes:
        length: stamps per series after linear resampling, as in the archive's equal-length copies; None for raw stamps.
        split: "random" (60/20/20 of the merged set, as in the paper) or "archive" (its own test part; a fifth of its
            training part validates).
        drop: share of stamps dropped from every series, training and test alike; the first and last stay.
        time_factor: what stamps are multiplied with.
        series: how many series of the merged set take part; None for all.
        bandwidths: fractions of `length`, one per view.
        noise: of Gaussian processes.
        hidden: state per view; None for as many parameters as the paper's mvc-gp has.
        width: of the field's hidden layer and of the encoder.
        solver: by name.
        tolerance: relative and absolute.
        knots: "step_over" as the paper ran linear paths.
        epochs: of training.
        batch_size: series per step.
        learning_rate: constant.
        weight_decay: added to the gradient.
        diversity: weight of the penalty on views that attend alike.
        extra: what only this model takes, such as the windows of log-signatures.
    """

    length: int | None
    split: str = "random"
    drop: float = 0.0
    time_factor: float = 1.0
    series: int | None = None
    bandwidths: tuple[float, ...] = (0.1,)
    noise: float = 0.01
    hidden: int | None = None
    width: int = 128
    solver: str = "dopri5"
    tolerance: float = 1e-3
    knots: str = "land"
    epochs: int = 25
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    diversity: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def recipe(self, seed: int, micro_batch: int | None = None) -> Recipe:
        """Adam at a constant rate, no clipping, the best validation accuracy kept."""
        return Recipe(
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.weight_decay,
            optimizer="adam",
            schedule="constant",
            clip=None,
            micro_batch=micro_batch,
            seed=seed,
        )

    def document(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return {**asdict(self), "bandwidths": list(self.bandwidths), "extra": dict(self.extra)}

    def build(self, name: str, reference: "Setting", channels: int, classes: int, time_scale: float) -> SeriesModel:
        """The model: of its own hidden size, or as large as the reference mvc-gp."""
        hidden = self.hidden_of(name, reference, channels, classes, time_scale)
        return self._sized(name, hidden, channels, classes, time_scale)

    def hidden_of(self, name: str, reference: "Setting", channels: int, classes: int, time_scale: float) -> int:
        """The hidden size of the model that `build` makes."""
        if self.hidden is not None:
            return self.hidden
        target = parameter_count(reference._sized("mvc-gp", 128, channels, classes, time_scale))
        return matching_hidden(lambda h: self._sized(name, h, channels, classes, time_scale), target)

    def _sized(self, name: str, hidden: int, channels: int, classes: int, time_scale: float) -> SeriesModel:
        settings: dict[str, Any] = {} if name in ("gru", "gru-d", "mamba") else {"width": self.width}
        if name.startswith("mv"):
            settings["diversity"] = self.diversity
            settings["encoder_width"] = self.width
        return build_model(
            name,
            channels=channels,
            outputs=classes,
            time_scale=time_scale,
            bandwidths=self.bandwidths,
            hidden=hidden,
            noise=self.noise,
            solver=self.solver,
            rtol=self.tolerance,
            atol=self.tolerance,
            knots=self.knots,
            max_steps=100_000,
            **settings,
            **self.extra,
        )


def _baselines(
    ode_rnn: dict, gru_d: float, log_ncde: float, mamba: float, length: int, window: int, hidden: int | None
) -> dict[str, Any]:
    """What the paper tuned for baselines: learning rates, windows of log-signatures, ODE-RNN's tolerance.

    `hidden` is the state of models with one path, as the paper's parameter counts tell it.
    """
    signature = {"learning_rate": log_ncde, "extra": {"depth": 1, "step": window / length}}
    return {
        "linear": {"knots": "step_over", "hidden": hidden},
        "cubic": {"hidden": hidden},
        "smoothing-spline": {"hidden": hidden},
        "ode-rnn": ode_rnn,
        "gru-d": {"learning_rate": gru_d},
        "gru": {"learning_rate": gru_d},
        "log-ncde": signature,
        "neural-rde": signature,
        "mamba": {"learning_rate": mamba},
    }


def _smoothers(hidden: int | None, **bandwidths: tuple[float, ...]) -> dict[str, Any]:
    """Bandwidths of each; several views have 128 units each, a single path as many as a spline's."""
    return {
        name.replace("_", "-"): {"bandwidths": chosen, "hidden": 128 if name.startswith("mv") else hidden}
        for name, chosen in bandwidths.items()
    }


def _speech() -> tuple[Setting, dict[str, Any]]:
    """Speech Commands, and digits in its place; the paper names no bandwidths, so those of its other speech data."""
    common = Setting(161, time_factor=10.0, epochs=20, batch_size=512, weight_decay=0.0, tolerance=1e-2)
    views = _smoothers(None, gp=(0.1,), mv_gp=(0.05, 0.2, 0.6), mvc_gp=(0.05, 0.2, 0.6))
    return common, _baselines({}, 5e-3, 5e-3, 5e-3, 161, 20, None) | views


def _many_channels(length: int) -> tuple[Setting, dict[str, Any]]:
    """PEMS-SF and other sets of many channels; fields of low rank, whose matrix would have 15 million entries."""
    common = Setting(length, epochs=30, batch_size=32, weight_decay=0.0, tolerance=1e-3)
    rank = {"extra": {"rank": 16}}
    own = _baselines({}, 5e-3, 5e-3, 5e-3, length, 20, None) | _smoothers(None, gp=(0.2,), mvc_gp=(0.1, 0.2, 0.4))
    return common, own | {name: {**own[name], **rank} for name in ("linear", "cubic", "gp", "mvc-gp")}


_MANY_CHANNELS = {"PEMS-SF": 144, "generated-like-PEMS-SF": 144, "NATOPS": 51, "FingerMovements": 50}

_PAPER: Mapping[str, tuple[Setting, Mapping[str, Mapping[str, Any]]]] = MappingProxyType(
    {
        "CharacterTrajectories": (
            Setting(119, epochs=25, batch_size=256, learning_rate=1e-4, weight_decay=1e-5, tolerance=1e-3),
            _baselines({"learning_rate": 5e-3}, 5e-3, 5e-3, 9e-3, 119, 10, 604)
            | _smoothers(
                604,
                kernel=(0.05,),
                gp=(0.6,),
                mv_kernel=MULTI_SCALE,
                mv_gp=MULTI_SCALE,
                mvc_kernel=MULTI_SCALE,
                mvc_gp=(1.4, 1.4, 1.4, 1.4),
            ),
        ),
        "SpokenArabicDigits": (
            Setting(65, epochs=13, batch_size=2048, learning_rate=1e-3, weight_decay=1e-4, tolerance=1e-3),
            _baselines({"learning_rate": 1e-2}, 1e-2, 1e-2, 5e-3, 65, 20, 412)
            | _smoothers(
                412,
                kernel=(0.05,),
                gp=(0.6,),
                mv_kernel=MULTI_SCALE,
                mv_gp=(0.1, 0.4, 1.4),
                mvc_kernel=MULTI_SCALE,
                mvc_gp=(1.4, 1.4, 1.4),
            ),
        ),
        "UWaveGestureLibrary": (
            Setting(315, epochs=30, batch_size=512, learning_rate=1e-3, weight_decay=1e-5, tolerance=1e-4, noise=0.05),
            _baselines({"learning_rate": 5e-3, "tolerance": 1e-2}, 1e-2, 1e-2, 5e-3, 315, 30, 480)
            | _smoothers(
                480,
                kernel=(0.05,),
                gp=(1.4,),
                mv_kernel=MULTI_SCALE,
                mv_gp=(0.05, 0.2, 0.6),
                mvc_kernel=(0.05, 0.05, 0.05, 0.05),
                mvc_gp=(0.1, 0.2, 0.4),
            ),
        ),
        **{data: _speech() for data in ("SpeechCommands", "FreeSpokenDigits")},
        **{data: _many_channels(length) for data, length in _MANY_CHANNELS.items()},
        # Not in the paper: it comes with a dependency, so that anybody can run something at once.
        "JapaneseVowels": (
            Setting(None, epochs=15, batch_size=64, learning_rate=2e-3, weight_decay=1e-4, tolerance=1e-3),
            _baselines({"learning_rate": 5e-3}, 5e-3, 5e-3, 5e-3, 29, 5, None)
            | _smoothers(
                None,
                kernel=(0.05,),
                gp=(0.2,),
                mv_kernel=MULTI_SCALE,
                mv_gp=(0.1, 0.2, 0.4),
                mvc_kernel=MULTI_SCALE,
                mvc_gp=(0.1, 0.2, 0.4),
            ),
        ),
    }
)

PAPER_DATA = ("CharacterTrajectories", "SpokenArabicDigits", "UWaveGestureLibrary")


def reference_of(data: str) -> Setting:
    """The setting of the data set's mvc-gp, whose parameter count the baselines are given."""
    common, own = _known(data)
    return replace(common, **own["mvc-gp"])


def setting_of(trial: Trial) -> Setting:
    """The paper's setting for a trial's data set and model, with the trial's changes."""
    common, own = _known(trial.data)
    setting = replace(common, **own.get(trial.model, {}))
    unknown = sorted(dict(trial.changes).keys() - {entry.name for entry in fields(Setting)})
    if unknown:
        known = ", ".join(repr(entry.name) for entry in fields(Setting))
        raise ValueError(f"a setting has no {unknown[0]!r}; use any of: {known}")
    return replace(setting, **dict(trial.changes))


def as_done(trial: Trial) -> Trial:
    """The trial without changes that change nothing, such as the solver that the paper's setting has anyway.

    Two trials that do the same are the same here, so one result serves both.
    """
    if trial.measure == "forecast":
        return trial
    usual = setting_of(Trial(trial.data, trial.model))
    kept = tuple((key, value) for key, value in trial.changes if getattr(usual, key, None) != value)
    return replace(trial, changes=kept)


def _known(data: str) -> tuple[Setting, Mapping[str, Mapping[str, Any]]]:
    check_known("setting for", data, _PAPER)
    return _PAPER[data]
