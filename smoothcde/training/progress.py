"""The progress bar of a training run."""

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class ProgressBar:
    """Epoch, loss, validation score, NFE and time left, on a terminal; nothing anywhere else.

    ```python
    with ProgressBar(Console(stderr=True), "mvc-gp", epochs=30, steps=9) as bar:
        bar.step(epoch=1, loss=0.7, nfe=41.0)
    ```

    Attributes:
        done: steps so far, of all epochs.
    """

    def __init__(self, console: Console | None, title: str, epochs: int, steps: int, done: int = 0):
        self.done = done
        self._epochs, self._metric, self._bar = epochs, "", None
        if console is None or not console.is_terminal:
            return
        # All of it fits a terminal of 80 columns.
        columns = [TextColumn(title or "training"), BarColumn(bar_width=10), TextColumn("{task.fields[status]}")]
        self._bar = Progress(*columns, TextColumn("left"), TimeRemainingColumn(compact=True), console=console)
        self._task = self._bar.add_task(title, total=epochs * steps, completed=done, status="")

    def step(self, epoch: int, loss: float, nfe: float) -> None:
        """One step of an epoch (counted from 1) is done."""
        self.done += 1
        if self._bar is not None:
            cost = f" NFE {nfe:.0f}" if nfe else ""
            status = f"epoch {epoch}/{self._epochs} loss {loss:.3f}{self._metric}{cost}"
            self._bar.update(self._task, completed=self.done, status=status)

    def validated(self, metric: str, score: float) -> None:
        """The score of the epoch that just ended."""
        self._metric = f" {metric} {score:.2f}"

    def __enter__(self) -> "ProgressBar":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._bar is not None:
            self._bar.stop()
