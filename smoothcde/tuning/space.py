"""`SearchSpace`: which settings a search may try."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from smoothcde.models import geometric

Range = tuple[float, float]
_SMOOTHED = ("kernel", "gp")


@runtime_checkable
class Chooser(Protocol):
    """What makes choices: a trial of Optuna."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number between two others."""
        ...

    def suggest_int(self, name: str, low: int, high: int) -> int:
        """A whole number between two others."""
        ...

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of several."""
        ...


@dataclass(frozen=True)
class SearchSpace:
    """Ranges of settings, from the least to the most; None leaves a setting to the estimator.

    ```python
    tune(estimator, series, labels, space=SearchSpace(hidden=(128, 256), dropout=None))
    ```

    Attributes:
        hidden: sizes to choose from.
        learning_rate: evenly by its logarithm, as all that may differ by orders of magnitude.
        weight_decay: likewise.
        dropout: share of the stamps that training hides.
        narrowest: bandwidth of the view that smooths least, a fraction of the longest window.
        widest: bandwidth of the view that smooths most; others are spread evenly between, by their logarithm.
        views: how many there are, of models that have several.
        noise: sigma of Gaussian process paths.
    """

    hidden: tuple[int, ...] | None = (16, 32, 64, 128)
    learning_rate: Range | None = (5e-4, 1e-2)
    weight_decay: Range | None = (1e-5, 1e-1)
    dropout: Range | None = (0.0, 0.6)
    narrowest: Range | None = (0.02, 0.4)
    widest: Range = (0.2, 2.0)
    views: tuple[int, int] = (1, 4)
    noise: Range | None = (0.005, 0.5)

    def __post_init__(self):
        for name in ("learning_rate", "weight_decay", "dropout", "narrowest", "widest", "views", "noise"):
            ends = getattr(self, name)
            if ends is None:
                continue
            low, high = ends
            if not (0 < low <= high < float("inf") or (name == "dropout" and 0 <= low <= high < 1)):
                raise ValueError(f"{name} is {ends}; give the least and the most of it, both above 0")
        if self.hidden is not None and (not self.hidden or min(self.hidden) < 1):
            raise ValueError(f"hidden is {self.hidden}; give sizes of at least 1 to choose from")

    def choose(self, chooser: Chooser, model: str) -> dict[str, Any]:
        """Parameters of an estimator for one trial of a model: what it has no use for is not chosen."""
        found: dict[str, Any] = {}
        if self.hidden is not None:
            found["hidden"] = chooser.suggest_categorical("hidden", self.hidden)
        for name in ("learning_rate", "weight_decay"):
            if (ends := getattr(self, name)) is not None:
                found[name] = _short(chooser.suggest_float(name, *ends, log=True))
        if self.dropout is not None:
            found["dropout"] = _short(chooser.suggest_float("dropout", *self.dropout))
        if self.narrowest is not None and model.endswith(_SMOOTHED):
            found["bandwidths"] = self._bandwidths(chooser, self.narrowest, several=model.startswith("mv"))
        if self.noise is not None and model.endswith("gp"):
            found["noise"] = _short(chooser.suggest_float("noise", *self.noise, log=True))
        return found

    def _bandwidths(self, chooser: Chooser, narrowest: Range, several: bool) -> list[float]:
        low = chooser.suggest_float("narrowest", *narrowest, log=True)
        views = chooser.suggest_int("views", *self.views) if several else 1
        high = chooser.suggest_float("widest", *self.widest, log=True) if views > 1 else low
        return [_short(h) for h in geometric(low, max(low, high), views)]


def _short(number: float) -> float:
    """To three digits: settings are read, and typed again."""
    return float(f"{number:.3g}")
