"""Processes and devices: one, or as many as torchrun or `fabric run` started."""

import atexit
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from lightning_fabric import Fabric
else:
    Fabric = Any  # importing it takes seconds, and most commands never train


def make_fabric(device: str | torch.device = "auto", precision: str = "32-true") -> Fabric:
    """The fabric that a run stands on.

    In a script started by `torchrun` or `fabric run` it joins the processes (DDP); otherwise it is one process.

    Args:
        device: "cpu", "cuda", "cuda:1", ... or "auto": a GPU if there is one. `fabric run` decides itself.
        precision: as in `Recipe`.
    """
    from lightning_fabric import Fabric
    from lightning_fabric.strategies.ddp import DDPStrategy

    kind, _, index = str(device).partition(":")
    settings: dict[str, Any] = {"accelerator": kind, "devices": [int(index)] if index else 1, "precision": precision}
    started = os.environ.get("LT_CLI_USED") == "1"
    if started:
        settings = {} if "LT_PRECISION" in os.environ else {"precision": precision}
    elif torch.distributed.is_torchelastic_launched():
        world, here = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
        settings |= {"strategy": DDPStrategy(), "devices": here, "num_nodes": world // here}
    fabric = Fabric(**settings)
    if not started:  # `fabric run` has joined the processes already, and refuses to do it twice
        fabric.launch()
    atexit.register(_leave)
    return fabric


def _leave() -> None:
    """Part from the other processes before the interpreter is torn down: threads of a group that is still joined then
    end some runs with an abort, after all work was done.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def share_of(indices: np.ndarray, fabric: Fabric) -> tuple[np.ndarray, bool]:
    """The part of a batch that is this process's, and whether it is a stand-in.

    Processes meet after every batch, so each needs something to work on: where there are fewer series than processes,
    some take one that is not theirs, and what they find must not count.
    """
    own = np.array_split(indices, fabric.world_size)[fabric.global_rank]
    return (own, False) if len(own) else (indices[:1], True)
