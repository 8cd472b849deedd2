"""Results of an experiment's trials, averaged over seeds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from smoothcde.reproduce.trial import Trial


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over seeds.

    Attributes:
        mean: over the seeds there are.
        deviation: None for a single seed.
        seeds: how many.
    """

    mean: float
    deviation: float | None
    seeds: int

    def text(self, digits: int = 2, factor: float = 1.0) -> str:
        """As tables show it: `95.07 ± 0.49`."""
        spread = "" if self.deviation is None else f" ± {factor * self.deviation:.{digits}f}"
        return f"{factor * self.mean:.{digits}f}{spread}"


class Results:
    """What is known of some trials.

    ```python
    results = Results(store.found(trials))
    results.spread(Trial.of("UWaveGestureLibrary", "mvc-gp"), "accuracy").text(factor=100)
    ```
    """

    def __init__(self, found: Mapping[Trial, Mapping[str, Any]]):
        self._found = dict(found)
        self._groups: dict[Trial, list[Trial]] = {}
        for trial in self._found:
            self._groups.setdefault(trial.group, []).append(trial)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, trial: object) -> bool:
        return trial in self._found

    @property
    def groups(self) -> list[Trial]:
        """Trials whatever their seed, in the order they were given."""
        return list(self._groups)

    def data(self) -> list[str]:
        """Data sets that have a result."""
        return list(dict.fromkeys(trial.data for trial in self._groups))

    def of(self, group: Trial) -> list[Mapping[str, Any]]:
        """The results of a group, by seed."""
        return [self._found[trial] for trial in sorted(self._groups.get(group.group, []), key=lambda t: t.seed)]

    def values(self, group: Trial, key: str) -> list[float]:
        """One number per seed, where the seed has it."""
        return [float(found[key]) for found in self.of(group) if found.get(key) is not None]

    def spread(self, group: Trial, key: str) -> Spread | None:
        """Mean and deviation of a number over seeds; None if no seed has it."""
        return spread_of(self.values(group, key))

    def mean(self, group: Trial, key: str) -> float | None:
        """Mean over seeds; None if no seed has it."""
        found = self.spread(group, key)
        return None if found is None else found.mean


def spread_of(values: Iterable[float]) -> Spread | None:
    """Mean and deviation; None of nothing."""
    kept = np.asarray(list(values), dtype=float)
    if not len(kept):
        return None
    return Spread(float(kept.mean()), float(kept.std(ddof=1)) if len(kept) > 1 else None, len(kept))
