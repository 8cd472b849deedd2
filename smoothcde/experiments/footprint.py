"""What models of one size weigh: parameters, and the peak memory of a training step, as in the paper's table.

Run as a program it measures one model: memory can be told apart only in a process that has done nothing else.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from smoothcde.checks import check_known
from smoothcde.experiments.lineup import Lineup
from smoothcde.models import parameter_count


@dataclass(frozen=True)
class DataShape:
    """What size and memory depend on: shapes of a data set of the paper, and the views of its mvc-gp.

    Attributes:
        channels: of the series.
        classes: to tell apart.
        length: stamps per series, in the equal-length form that the paper used.
        bandwidths: of mvc-gp, as fractions of the longest span.
        published: the paper's parameter count of mvc-gp.
    """

    channels: int
    classes: int
    length: int
    bandwidths: tuple[float, ...]
    published: int

    def lineup(self) -> Lineup:
        """The models, each of mvc-gp's size."""
        return Lineup(self.channels, self.classes, float(self.length - 1), self.bandwidths)


PAPER_DATA = {
    "CharacterTrajectories": DataShape(3, 20, 119, (1.4, 1.4, 1.4, 1.4), 326_040),
    "SpokenArabicDigits": DataShape(13, 10, 65, (1.4, 1.4, 1.4), 753_933),
    "UWaveGestureLibrary": DataShape(3, 8, 315, (0.1, 0.2, 0.4), 252_683),
}


@dataclass(frozen=True)
class Footprint:
    """One line of the table: sizes, and peak resident memory above the baseline in megabytes, if measured."""

    data: str
    model: str
    hidden: int
    parameters: int
    reference: int
    peak: float | None


def footprint(data: str, name: str, batch_size: int = 64, memory: bool = True) -> Footprint:
    """Match a model to mvc-gp on a data set of the paper; measure a training step on random walks of its shape."""
    check_known("data set", data, PAPER_DATA)
    lineup = PAPER_DATA[data].lineup()
    hidden = lineup.hidden_of(name)
    parameters = parameter_count(lineup.build(name, hidden))
    peak = peak_memory(data, name, hidden, batch_size) if memory else None
    return Footprint(data, name, hidden, parameters, lineup.parameters, peak)


def peak_memory(data: str, name: str, hidden: int, batch_size: int) -> float:
    """Megabytes that a training step takes above the baseline, in a fresh process."""
    task = json.dumps({"data": data, "name": name, "hidden": hidden, "batch_size": batch_size})
    done = subprocess.run([sys.executable, "-m", __name__, task], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"measuring {name!r} on {data} failed:\n{done.stderr}")
    return float(json.loads(done.stdout)["megabytes"])


def measure_here(data: str, name: str, hidden: int, batch_size: int) -> float:
    """`peak_memory` of this very process, which must be fresh: model, gradients, optimiser and activations."""
    import torch

    from smoothcde.series import SeriesSet

    shape = PAPER_DATA[data]
    walks = np.random.default_rng(0).normal(size=(batch_size, shape.channels, shape.length)).cumsum(axis=2)
    batch = SeriesSet.from_arrays(walks / np.sqrt(shape.length)).batch()
    labels = torch.arange(batch_size) % shape.classes
    # What the first step of any model brings in (code of the optimiser, threads of autograd) is no model's own.
    _step(torch.nn.Linear(2, 2), lambda model: model(torch.zeros(1, 2)), labels[:1])
    baseline = resident("VmRSS")
    _step(shape.lineup().build(name, hidden), lambda model: model(batch), labels)
    return (resident("VmHWM") - baseline) / 1e6


def _step(model, outputs_of, labels) -> None:
    import torch

    optimiser = torch.optim.AdamW(model.parameters())
    torch.nn.functional.cross_entropy(outputs_of(model), labels).backward()
    optimiser.step()


def reset_peak() -> int | None:
    """Forget this process's highest resident size so far; gives the present one, None where the system cannot tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return resident("VmRSS")
    except OSError:
        return None


def peak_above(before: int | None) -> float | None:
    """Megabytes by which this process has grown at most since `reset_peak`, None where the system cannot tell."""
    return None if before is None else (resident("VmHWM") - before) / 1e6


def resident(what: str) -> int:
    """Bytes resident now (VmRSS) or at most so far (VmHWM), of this process."""
    status = Path("/proc/self/status")
    if not status.exists():
        raise OSError("peak memory is read from /proc, which this system does not have; leave it out with --no-memory")
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(fields[what].split()[0]) * 1024


def table_of(lines: Sequence[Footprint]) -> Table:
    """Sizes and memory as a table for the terminal."""
    table = Table(title="Matched to mvc-gp; memory of one training step above the baseline of a fresh process")
    for heading in ("data", "model", "hidden", "parameters", "off mvc-gp", "peak memory"):
        table.add_column(heading, justify="left" if heading in ("data", "model") else "right")
    for line in lines:
        table.add_row(
            line.data,
            line.model,
            f"{line.hidden}",
            f"{line.parameters:,}",
            f"{line.parameters / line.reference - 1:+.2%}",
            "-" if line.peak is None else f"{line.peak:.0f} MB",
        )
    return table


if __name__ == "__main__":
    print(json.dumps({"megabytes": measure_here(**json.loads(sys.argv[1]))}))
