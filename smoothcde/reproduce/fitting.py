"""A trial's model, trained: at once if it has been trained before, from where it stopped if it was stopped."""

from dataclasses import dataclass
from pathlib import Path

import torch

from smoothcde.models import SeriesModel
from smoothcde.models.cde import CDEModel
from smoothcde.reproduce.protocol import Task
from smoothcde.reproduce.settings import Setting, as_done, reference_of, setting_of
from smoothcde.reproduce.trial import Trial
from smoothcde.training import CrossEntropy, TrainingRecord, train
from smoothcde.training.checkpoint import FILE as CHECKPOINT

MOST_NUMBERS = 400e6
"""Intermediate results that a micro-batch may leave for the backward pass: 1.6 gigabytes in single precision."""
MOST_STAMPS = 40_000
"""Stamps whose solves an ODE-RNN's micro-batch may leave: about 6 gigabytes."""
SMOOTH = ("kernel", "gp", "mv-kernel", "mv-gp", "mvc-kernel", "mvc-gp")


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model with what it was trained on, how that went, and whether some of it had been done before."""

    model: SeriesModel
    task: Task
    setting: Setting
    record: TrainingRecord
    resumed: bool


def fit_trial(trial: Trial, work: Path) -> Fitted:
    """Train a trial's model, with checkpoints in a folder of its own below `work`.

    Measurements of one training share it: a finished run is read back in no time.
    """
    setting = setting_of(trial)
    task = Task.of(trial.data, setting, trial.seed)
    model = untrained(trial, task)
    folder = Path(work) / as_done(trial.measured("training")).name
    resumed = (folder / CHECKPOINT).exists()
    record = train(
        model,
        task.train.series,
        task.train.targets,
        CrossEntropy(),
        setting.recipe(trial.seed, micro_batch_of(trial.model, model, setting, task.time_scale / setting.time_factor)),
        validation=(task.validation.series, task.validation.targets),
        directory=folder,
    )
    return Fitted(model, task, setting, record, resumed)


def untrained(trial: Trial, task: Task) -> SeriesModel:
    """A trial's model with the weights its seed draws."""
    torch.manual_seed(trial.seed)
    channels = task.train.series.channels
    return setting_of(trial).build(trial.model, reference_of(trial.data), channels, task.classes, task.time_scale)


def micro_batch_of(name: str, model: SeriesModel, setting: Setting, length: float) -> int | None:
    """Series to work on at a time; None for all. Exact paths take so many steps that a batch would not fit into memory.

    `length` is the stamps of a series. In row mode nobody's result depends on the others in the batch, so this changes
    rounding and nothing else.
    """
    if name == "mamba":
        return 32  # the states of a stamp stay in the cache
    if name == "ode-rnn":
        most = int(MOST_STAMPS / length)
    elif isinstance(model, CDEModel):
        evaluations = 150 if name in SMOOTH else 8 * length
        field = model.field
        kept = field.hidden * (field.channels + 4) * len(setting.bandwidths if name.startswith("mv") else (1,))
        most = int(MOST_NUMBERS / (kept * evaluations))
    else:
        return None
    return None if most >= setting.batch_size else max(16, most)
