"""`TrainingRecord`: what happened in a training run."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class TrainingRecord:
    """What happened.

    Attributes:
        epochs: per epoch a dictionary: `epoch` (from 1), `loss`, `nfe` (mean per row), `learning_rate` of its last
            step, `seconds`, and with validation series `validation_loss` and `validation_` with the metric's name.
        best_epoch: the one whose weights the model has: that of the best validation score, else the last.
        seconds: in all, over every start of the run.
        processor_seconds: of this process and its threads, likewise; what to compare on a machine that others use.
        stopped: True if patience ended the run before its last epoch.
    """

    epochs: list[dict[str, Any]] = field(default_factory=list)
    best_epoch: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    stopped: bool = False

    @property
    def loss(self) -> list[float]:
        """Mean training loss per epoch."""
        return [row["loss"] for row in self.epochs]

    @property
    def nfe(self) -> list[float]:
        """Mean evaluations per row and epoch."""
        return [row["nfe"] for row in self.epochs]
