"""Peak memory of a training step: a fresh process per entry, resident peak above its baseline.

Run as a program it measures one entry: memory can be told apart only in a process that has done nothing else.
"""

import json
import sys
from pathlib import Path

from benchmarks.entries import ENTRIES, DiffraxEntry
from benchmarks.fresh import measured_alone
from benchmarks.settings import SETTINGS, Work
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


if __name__ == "__main__":
    print(json.dumps({"megabytes": measure_here(**json.loads(sys.argv[1]))}))
