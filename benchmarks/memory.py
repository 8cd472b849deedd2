"""Peak memory of a training step: a fresh process per entry, resident peak above its baseline.

Run as a program it measures one entry: memory can be told apart only in a process that has done nothing else.
"""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.entries import ENTRIES, DiffraxEntry
from benchmarks.settings import SETTINGS, Work
from smoothcde.experiments.footprint import resident


def peak_memory(data: str, entry: str, series: int) -> float:
    """Megabytes."""
    task = json.dumps({"data": data, "entry": entry, "series": series})
    done = subprocess.run([sys.executable, "-m", "benchmarks.memory", task], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"measuring {entry!r} on {data} failed:\n{done.stderr}")
    return float(json.loads(done.stdout.splitlines()[-1])["megabytes"])


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


def estimated_gigabytes(rows: int, length: int, per_evaluation: int, evaluations: float) -> float:
    """What backpropagation through an exact Gaussian process and so many evaluations keeps, roughly, in float32.

    Four matrices of the stamps per row, and per evaluation the field's matrix and eight vectors.
    """
    return 4e-9 * rows * (4 * length**2 + evaluations * per_evaluation)


if __name__ == "__main__":
    print(json.dumps({"megabytes": measure_here(**json.loads(sys.argv[1]))}))
