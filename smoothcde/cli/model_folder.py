"""Where a trained model goes, and what lies beside it on the way."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from smoothcde.cli.telling import Teller
from smoothcde.cli.training_table import TrainingTable
from smoothcde.data.tables import TableError
from smoothcde.estimators import CDEClassifier, CDERegressor
from smoothcde.series.problems import listed
from smoothcde.storage import refuse_strangers
from smoothcde.training.checkpoint import FILE as CHECKPOINT
from smoothcde.training.logs import METRICS


@dataclass(frozen=True)
class ModelFolder:
    """A model directory to be, with its neighbours: a folder for the training, a file of its metrics."""

    out: Path

    @classmethod
    def at(cls, out: Path, overwrite: bool) -> "ModelFolder":
        """Refuse, as wrong usage, a place where something else is."""
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            if not overwrite:
                raise typer.BadParameter(f"'{out}' is there already; choose another --out, or add --overwrite")
            if not (out / "manifest.json").exists():
                raise typer.BadParameter(f"'{out}' is there already and is no model; choose another --out")
        return cls(out.resolve() if out.name in ("", "..") else out)  # "." has no name to put files beside

    def beside(self, ending: str) -> Path:
        """A neighbour of the folder."""
        return self.out.with_name(self.out.name + ending)

    @property
    def training(self) -> Path:
        """Where a training is kept until it is done."""
        return self.beside(".training")

    @property
    def metrics(self) -> Path:
        """What each epoch of it was like."""
        return self.beside(".metrics.csv")

    def refuse_what_is_in_the_way(self, overwrite: bool) -> None:
        """Before any work is done for nothing."""
        refuse_strangers(self.out)
        if self.metrics.exists() and not overwrite:
            raise TableError(f"'{self.metrics}' is there already; move it, choose another --out, or add --overwrite")
        if strange := [path.name for path in _inside(self.training) if path.name not in (CHECKPOINT, METRICS)]:
            raise TableError(
                f"'{self.training}' is where the training would be kept, and holds {listed(strange, most=3)}; "
                "move it, or choose another --out"
            )

    def fill(
        self,
        estimator: CDEClassifier | CDERegressor,
        table: TrainingTable,
        teller: Teller,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Train, save, and tell; `more` goes into the result for scripts."""
        if (self.training / CHECKPOINT).exists():
            teller.say(f"going on with the training in '{self.training}'")
        teller.note_on_speed()
        estimator.set_params(directory=self.training, verbose=int(not teller.json))
        estimator.fit(table.series, table.y, validation=table.validation)
        estimator.predictor_ = table.remembered.attached(estimator.predictor_)
        if not teller.first:
            return
        estimator.directory = None  # where this training was kept is no business of later ones
        estimator.save(self.out)
        # With its checkpoint gone a training folder belongs to a finished model; its metrics stay to be looked at.
        os.replace(self.training / METRICS, self.metrics)
        (self.training / CHECKPOINT).unlink()
        with suppress(OSError):  # someone else's files may have come meanwhile
            self.training.rmdir()
        self._report(estimator, teller, more or {})

    def _report(self, estimator: CDEClassifier | CDERegressor, teller: Teller, more: Mapping[str, Any]) -> None:
        predictor = estimator.predictor_
        record = predictor.record
        best = record["epochs"][record["best_epoch"] - 1]
        if not record["validation_series"]:
            teller.note(
                "there were too few series to hold any out, so nothing tells how good the model is on others; "
                "give more, or others with --validation"
            )
        document = {
            "model": str(self.out),
            "task": predictor.task,
            "name": predictor.architecture["name"],
            "classes": None if predictor.labels is None else predictor.labels.tolist(),
            "targets": list(record["table"]["targets"]),
            "channels": list(predictor.channel_names),
            "static": list(predictor.static_names),
            "training_series": record["training_series"],
            "validation_series": record["validation_series"],
            "epochs": len(record["epochs"]),
            "best_epoch": record["best_epoch"],
            "best": {key: float(number) if np.isfinite(number) else None for key, number in best.items()},
            "seconds": record["seconds"],
            "metrics": str(self.metrics),
            **more,
        }

        def show(console: Console) -> None:
            judged = [
                f"{key.removeprefix('validation_')} {best[key]:.4f}" for key in best if key.startswith("validation_")
            ]
            console.print(
                f"Best of {document['epochs']} epochs: {document['best_epoch']}"
                + (f", on {document['validation_series']} validation series {', '.join(judged)}" if judged else "")
            )
            console.print(f"Model saved in '{self.out}', metrics of every epoch in '{self.metrics}'", soft_wrap=True)

        teller.result(document, show)


def _inside(folder: Path) -> list[Path]:
    """What a folder holds, if it is there, but for what a killed write left."""
    return [path for path in folder.iterdir() if path.suffix != ".tmp"] if folder.is_dir() else []
