"""Train with several processes, on one machine or many. Each takes its share of every batch.

On this machine, two processes:

    torchrun --standalone --nproc-per-node 2 examples/two_processes.py

On two machines with four GPUs each, the same on both, `--node-rank 0` on the first and 1 on the second:

    torchrun --nnodes 2 --node-rank 0 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint first:29500 \
        --rdzv-id vowels examples/two_processes.py --device cuda --out shared/run

Or with fabric: `fabric run --accelerator cpu --strategy ddp --devices 2 examples/two_processes.py`.
Plain `python examples/two_processes.py` runs it in one process, with the same result to rounding.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from smoothcde import ChannelScaler, build_model, load_uea
from smoothcde.training import RECIPES, CrossEntropy, make_fabric, train

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--device", default="cpu", help="cpu or cuda")
parser.add_argument(
    "--out", type=Path, default=Path("two-processes"), help="checkpoint and metrics; resumes from there"
)
arguments = parser.parse_args()

fabric = make_fabric(arguments.device)  # knows who started this script, and how many

# Every process reads all of the data; who trains on which series is settled step by step.
(series, labels), (others, truth) = load_uea("JapaneseVowels", "train"), load_uea("JapaneseVowels", "test")
classes, targets = np.unique(labels, return_inverse=True)
scaler = ChannelScaler.fit(series)
series, others = scaler.transform(series), scaler.transform(others)

recipe = replace(RECIPES["tuned"], epochs=arguments.epochs)
torch.manual_seed(recipe.seed)
model = build_model(
    "mvc-gp",
    channels=series.channels,
    outputs=len(classes),
    time_scale=series.longest_span,
    bandwidths=(0.2, 0.4, 1.4),
    hidden=32,
    width=32,
    encoder_width=32,
    **recipe.model,
)
record = train(
    model,
    series,
    targets,
    CrossEntropy(),
    recipe,
    validation=(others, np.searchsorted(classes, truth)),
    directory=arguments.out,
    fabric=fabric,
    progress=True,
)
if fabric.is_global_zero:
    best = record.epochs[record.best_epoch - 1]
    print(
        f"{fabric.world_size} processes, {record.seconds:.0f} s: validation accuracy "
        f"{best['validation_accuracy']:.1%} in epoch {record.best_epoch} of {len(record.epochs)}"
    )
