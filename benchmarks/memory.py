"""Peak memory of a training step: a fresh process per entry, resident peak above its baseline.

Run as a program it measures one entry: memory can be told apart only in a process that has done nothing else.
"""

import json
import sys
from pathlib import Path

from benchmarks.entries import ENTRIES, DiffraxEntry
from benchmarks.fresh import measured_alone
from benchmarks.settings import HIDDEN, SETTINGS, Setting, Work
from smoothcde.experiments.footprint import resident


def peak_memory(data: str, entry: str, series: int) -> float:
    """Megabytes."""
    task = {"data": data, "entry": entry, "series": series}
    return float(measured_alone("benchmarks.memory", task)["megabytes"])


def measure_here(data: str, entry: str, series: int) -> float:
    """Gradients, activations and the optimiser's state; weights, data and compiled code are in the baseline."""
    setting = SETTINGS[data]
    # What the first step of anything brings in (code, threads) is no entry's own.
    small = ENTRIES[entry](Work.of(setting, 2))
    if not isinstance(small, DiffraxEntry):
        small.step()
    measured = ENTRIES[entry](Work.of(setting, series))
    if isinstance(measured, DiffraxEntry):
        measured.prepare_step()
    baseline = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far: reading data and compiling
    measured.step()
    return (resident("VmHWM") - baseline) / 1e6


def estimated_gigabytes(entry: str, setting: Setting, evaluations: float) -> float:
    """What a training step of a peer takes, roughly, in float32.

    Four matrices of the stamps per row; per evaluation that is kept the field's matrix and eight vectors; and under
    `vmap` a gradient of the field's weights for every row, three times.
    """
    rows, matrix = setting.series * setting.views, HIDDEN * setting.channels
    kept = 0.0 if "adjoint" in entry else evaluations * (matrix + 8 * HIDDEN)
    own = 3 * HIDDEN * (HIDDEN + matrix) if "vmap" in entry else 0
    return 4e-9 * rows * (4 * setting.length**2 + kept + own)


if __name__ == "__main__":
    print(json.dumps({"megabytes": measure_here(**json.loads(sys.argv[1]))}))
