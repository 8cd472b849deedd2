"""A small task to train on, and processes that train on it."""

import os
import time
from pathlib import Path

import numpy as np
import torch

from smoothcde.models import build_model
from smoothcde.series import SeriesSet
from smoothcde.training import CrossEntropy, Recipe, train

LABELS = np.arange(24) % 3
RECIPE = Recipe(epochs=6, batch_size=5, learning_rate=0.02, dropout=0.3, seed=3)


def trends(seed=0):
    """Series that fall, stay or rise, from anywhere, at twelve stamps."""
    start = np.random.default_rng(seed).normal(size=24)
    values = [[x + 3 * (k - 1) * np.linspace(0, 1, 12)] for k, x in zip(LABELS, start, strict=True)]
    return SeriesSet.from_arrays(values, ids=[f"s{i}" for i in range(24)])


def model_of(name="mvc-gp", **settings):
    torch.manual_seed(0)
    several = {"encoder_width": 6} if name.startswith("mv") else {}
    sizes = {"channels": 1, "outputs": 3, "time_scale": 11.0, "bandwidths": (0.2,), "hidden": 6}
    if name not in ("gru", "gru-d"):
        sizes["width"] = 6
    return build_model(name, **(sizes | several | settings))


def run(recipe, model=None, name="gru", objective=None, **arguments):
    """Train on `trends`; gives the record and the model."""
    model = model or model_of(name)
    return train(model, trends(), LABELS, objective or CrossEntropy(), recipe, **arguments), model


def weights_of(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def train_and_report(directory: Path, checkpoint_seconds: float, steps_done, answers):
    """In a process of its own: count the steps, answer with the final weights."""
    torch.set_num_threads(1)

    def on_step(*told):
        steps_done.value += 1
        time.sleep(0.004)  # room for a kill to fall between and within steps

    record, model = run(
        RECIPE,
        name="mvc-gp",
        directory=directory,
        validation=(trends(seed=1), LABELS),
        checkpoint_seconds=checkpoint_seconds,
        on_step=on_step,
    )
    answers.put(([row["loss"] for row in record.epochs], record.best_epoch, numbers_of(model)))


def numbers_of(model):
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def in_process(rank: int, world: int, port: int, answers, task, *arguments):
    """As torchrun starts a process: one of several, told apart by environment variables."""
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "test"}
    os.environ |= {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    answers.put((rank, task(*arguments)))
