"""Where metrics go: a CSV file always, TensorBoard and MLflow when asked."""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from smoothcde.checks import check_known
from smoothcde.storage import replace_file

METRICS = "metrics.csv"


class Log(Protocol):
    """A place for the metrics of epochs."""

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Note one epoch of a `TrainingRecord`."""
        ...

    def close(self, finished: bool) -> None:
        """No more epochs will come, because the run is finished or because it failed."""
        ...


def write_metrics(directory: Path, epochs: Sequence[Mapping[str, Any]]) -> None:
    """All epochs so far as `metrics.csv`, replaced whole: a resumed run has each epoch once."""
    text = io.StringIO(newline="")
    names = list(dict.fromkeys(name for row in epochs for name in row))
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows(epochs)
    replace_file(directory / METRICS, text.getvalue().encode())


class TensorBoardLog:
    """Event files in `directory/tensorboard`; epochs after `done` that an interrupted run wrote are dropped."""

    def __init__(self, directory: Path, settings: Mapping[str, Any], resumed: bool, done: int):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise _missing("tensorboard") from error
        self._writer = SummaryWriter(str(directory / "tensorboard"), purge_step=done + 1 if done else None)
        if not resumed:
            self._writer.add_text("recipe", "\n".join(f"    {name}: {value}" for name, value in settings.items()))

    def epoch(self, row: Mapping[str, Any]) -> None:
        """One curve per metric."""
        for name, value in row.items():
            if name != "epoch":
                self._writer.add_scalar(name.replace("validation_", "validation/"), value, row["epoch"])

    def close(self, finished: bool) -> None:
        """Flush."""
        self._writer.close()


class MLflowLog:
    """A run of MLflow, at the tracking server its environment variables name; a resumed run goes on with its own.

    The run's id is kept in `directory/mlflow.txt`.
    """

    def __init__(self, directory: Path, settings: Mapping[str, Any], resumed: bool, done: int):
        try:
            from mlflow import MlflowClient
        except ImportError as error:
            raise _missing("mlflow") from error
        self._client = MlflowClient()
        note = directory / "mlflow.txt"
        if resumed and note.exists():
            self._run = note.read_text().strip()
            self._client.update_run(self._run, status="RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "smoothcde")
        found = self._client.get_experiment_by_name(name)
        experiment = found.experiment_id if found else self._client.create_experiment(name)
        self._run = self._client.create_run(experiment, run_name=directory.name).info.run_id
        for key, value in settings.items():
            self._client.log_param(self._run, key, value)
        replace_file(note, self._run.encode())

    def epoch(self, row: Mapping[str, Any]) -> None:
        """One metric each, the epoch as its step."""
        for name, value in row.items():
            if name != "epoch":
                self._client.log_metric(self._run, name, value, step=row["epoch"])

    def close(self, finished: bool) -> None:
        """The run is over."""
        self._client.set_terminated(self._run, "FINISHED" if finished else "FAILED")


LOGGERS: dict[str, Any] = {"tensorboard": TensorBoardLog, "mlflow": MLflowLog}


def check_loggers(names: Sequence[str], directory: Path | None) -> None:
    """Refuse unknown names, and logs that have no place to go."""
    for name in names:
        check_known("logger", name, LOGGERS)
        if directory is None:
            raise ValueError(f"the logger {name!r} needs a directory; give one")


def _missing(package: str) -> ImportError:
    return ImportError(
        f"logging to {package} needs a package that is not installed; run: pip install 'smoothcde[{package}]'"
    )
