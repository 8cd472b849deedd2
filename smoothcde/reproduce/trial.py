"""A trial: one measurement of one model on one data set with one seed, the unit that is run, kept and resumed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Trial:
    """What to measure, and how it departs from the paper's setting.

    Experiments that need the same trial share its result: identity is what was done, not for which table.

    ```python
    Trial.of("UWaveGestureLibrary", "mvc-gp", seed=2, solver="bosh3").name
    # 'score/UWaveGestureLibrary/mvc-gp,solver=bosh3,seed=2'
    ```

    Attributes:
        data: the data set.
        model: by name.
        seed: of split, weights and order together.
        measure: one of `MEASURES`.
        changes: fields of `Setting` that differ from the paper's, in alphabetical order.
    """

    data: str
    model: str
    seed: int = 0
    measure: str = "score"
    changes: tuple[tuple[str, Any], ...] = field(default=())

    @classmethod
    def of(cls, data: str, model: str, seed: int = 0, measure: str = "score", **changes: Any) -> "Trial":
        """A trial with changes given by name; sequences become tuples."""
        frozen = {key: tuple(value) if isinstance(value, list) else value for key, value in changes.items()}
        return cls(data, model, seed, measure, tuple(sorted(frozen.items())))

    @property
    def name(self) -> str:
        """A readable name that is unique among trials, and a path below a folder of results."""
        changes = [f"{key}={_short(value)}" for key, value in self.changes]
        return f"{self.measure}/{self.data}/" + ",".join([self.model, *changes, f"seed={self.seed}"])

    @property
    def group(self) -> "Trial":
        """The trial whatever its seed: what is averaged over."""
        return Trial(self.data, self.model, 0, self.measure, self.changes)

    def but(self, **changes: Any) -> "Trial":
        """The same trial with other changes beside its own."""
        return Trial.of(self.data, self.model, self.seed, self.measure, **{**dict(self.changes), **changes})

    def measured(self, measure: str) -> "Trial":
        """Another measurement of the same training."""
        return Trial(self.data, self.model, self.seed, measure, self.changes)

    def document(self) -> dict[str, Any]:
        """As JSON keeps it."""
        changes: Mapping[str, Any] = dict(self.changes)
        whole = {"measure": self.measure, "data": self.data, "model": self.model, "seed": self.seed}
        return {**whole, "changes": {k: list(v) if isinstance(v, tuple) else v for k, v in changes.items()}}


def _short(value: Any) -> str:
    return (
        "_".join(map(_short, value))
        if isinstance(value, tuple)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
