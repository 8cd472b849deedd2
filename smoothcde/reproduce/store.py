"""Results on disk: a file per trial, so that many can be made at once and each is there as soon as it is known."""

import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from smoothcde.experiments.forecasting import Plan
from smoothcde.reproduce.forecast import forecast_document
from smoothcde.reproduce.settings import Setting, as_done, setting_of
from smoothcde.reproduce.trial import Trial
from smoothcde.storage import replace_file


class Store:
    """A folder of results.

    ```python
    store = Store(Path("results"))
    store.find(Trial.of("UWaveGestureLibrary", "mvc-gp"))  # {'accuracy': ..., 'joint_nfe': ..., ...} or None
    ```

    A result counts only as long as the setting it was made with is still the one its trial has.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder)

    def file_of(self, trial: Trial) -> Path:
        """Where its result is, or would be."""
        return self.folder / f"{as_done(trial).name}.json"

    def find(self, trial: Trial) -> dict[str, Any] | None:
        """The result of a trial, None if there is none of its present setting."""
        file = self.file_of(trial)
        if not file.exists():
            return None
        try:
            kept = json.loads(file.read_text())
            found, made_with = kept["result"], kept["setting"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{file} holds no result of a trial; remove it to have the trial run again") from error
        return found if {**usual_document(trial), **made_with} == setting_document(trial) else None

    def add(self, trial: Trial, result: Mapping[str, Any], made_with: Mapping[str, str]) -> None:
        """Keep a result; on return it is on disk."""
        kept = {
            "trial": trial.document(),
            "setting": setting_document(trial),
            "result": dict(result),
            "made_with": dict(made_with),
        }
        file = self.file_of(trial)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, (json.dumps(kept, indent=1) + "\n").encode())

    def found(self, trials: Iterable[Trial]) -> dict[Trial, dict[str, Any]]:
        """Those that have a result, with it."""
        return {trial: result for trial in trials if (result := self.find(trial)) is not None}


def setting_document(trial: Trial) -> dict[str, Any]:
    """A trial's setting as JSON gives it back."""
    document = forecast_document(trial) if trial.measure == "forecast" else setting_of(trial).document()
    return json.loads(json.dumps(document))


def usual_document(trial: Trial) -> dict[str, Any]:
    """Settings that a result was made with where its file does not say: those that came later than the file."""
    document = asdict(Plan()) if trial.measure == "forecast" else Setting(None).document()
    return json.loads(json.dumps(document))


def versions() -> dict[str, str]:
    """What results of this process are made with."""
    from smoothcde import __version__

    return {
        "smoothcde": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "threads": str(torch.get_num_threads()),
    }
