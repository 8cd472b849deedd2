"""What a model says about one series, and what there is to show for it."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from smoothcde.plots import Portrait


@dataclass(frozen=True, eq=False)
class Answer:
    """What the model says about one series.

    Attributes:
        names: classes, or targets of a regression.
        numbers: the probability of each class, or each target's value in its own units.
        classification: whether they are probabilities.
        truth: what the user says it should have been, if they did.
    """

    names: tuple[str, ...]
    numbers: np.ndarray
    classification: bool
    truth: str | None = None

    @property
    def text(self) -> str:
        """The answer in a line."""
        if not np.isfinite(self.numbers).all():
            return "no answer: the outputs are not finite"
        if self.classification:
            best = int(self.numbers.argmax())
            return f"{self.names[best]} (probability {self.numbers[best]:.3f})"
        return ", ".join(f"{name} = {value:.5g}" for name, value in zip(self.names, self.numbers, strict=True))


@dataclass(frozen=True, eq=False)
class SeriesExplanation:
    """One series: what was observed, how each view saw it, and the answer.

    Attributes:
        id: the user's name of the series.
        portrait: observations, paths, attention, steps and costs, in the user's units.
        answer: probabilities or values.
        static: features that do not change with time.
    """

    id: Hashable
    portrait: Portrait
    answer: Answer
    static: np.ndarray | None = None
