"""Long series: what fitting paths costs against their number of stamps, how much memory it takes, how exact they are.

OMP_NUM_THREADS=1 python -m benchmarks.long_series

Times are processor time. Memory is the largest resident size of a fresh process less that after its imports, for a fit
of 100,000 stamps, 3 channels and 4 views, and for X' along the window as a solver asks for it, forwards and backwards.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from smoothcde.paths import ExactGPPath, GPPath, KernelPath, chebyshev
from smoothcde.series import SeriesBatch, SeriesSet

RATIOS = (0.1, 0.01, 0.001)
CHANNELS, VIEWS, LONGEST = 3, 4, 100_000
NOISE = 0.01
STAGES = 6
RESULT = Path(__file__).parent / "results" / "long_series.json"


def recording(stamps: int, missing: float, dtype: torch.dtype, seed: int = 0) -> tuple[SeriesBatch, torch.Tensor]:
    """One series over a window of length 1 at random times, and attention of four views to it."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 1, stamps))
    values = rng.standard_normal((CHANNELS, stamps)).cumsum(axis=1) / np.sqrt(stamps)
    values += 0.1 * rng.standard_normal(values.shape)
    values[rng.random(values.shape) < missing] = np.nan
    batch = SeriesSet.from_arrays([values], [times], window=(0.0, 1.0)).batch(dtype=dtype)
    weights = torch.softmax(torch.as_tensor(rng.standard_normal((1, VIEWS, stamps))), dim=2)
    return batch, weights.to(dtype)


def fit_seconds(ratio: float, stamps: int) -> float:
    batch, weights = recording(stamps, 0.0, torch.float32)
    best = float("inf")
    for _ in range(4):
        begin = time.process_time()
        GPPath.fit(batch, (ratio,) * VIEWS, NOISE, weights)
        best = min(best, time.process_time() - begin)
    return best


def slope(ratio: float) -> dict:
    sizes = np.geomspace(4 * chebyshev.node_count(1 / ratio), LONGEST, 7).astype(int).tolist()
    seconds = [fit_seconds(ratio, size) for size in sizes]
    return {"stamps": sizes, "seconds": seconds, "slope": float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])}


def resident(name: str) -> float:
    """A line of this process's status in MB: VmRSS now, VmHWM the largest so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def weigh(ratio: float, missing: float) -> None:
    """Prints the peaks of a fit and of a walk along its window; for a process of its own."""
    baseline = resident("VmRSS")
    batch, weights = recording(LONGEST, missing, torch.float32)
    with torch.no_grad():
        GPPath.fit(batch, (ratio,) * VIEWS, NOISE, weights)
    fitted = resident("VmHWM") - baseline
    weights.requires_grad_()
    path = GPPath.fit(batch, (ratio,) * VIEWS, NOISE, weights)
    steps = round(2 / ratio)
    shares = torch.linspace(0, 1, STAGES, dtype=torch.float64)
    begin = time.process_time()
    slopes = [path.derivative(((k + shares) / steps).expand(VIEWS, -1)).square().sum() for k in range(steps)]
    torch.stack(slopes).sum().backward()
    print(json.dumps({"fit": fitted, "all": resident("VmHWM") - baseline, "walk": time.process_time() - begin}))


def peaks(ratio: float, missing: float) -> dict:
    command = [sys.executable, "-m", "benchmarks.long_series", "--weigh", str(ratio), str(missing)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def errors(ratio: float, stamps: int = 1_500) -> dict:
    """The largest |error| / max |value| of any row and channel, against the exact Gaussian process."""
    found = {}
    for name, missing, attentive in (("plain", 0.0, False), ("weights", 0.0, True), ("weights and masks", 0.3, True)):
        batch, weights = recording(stamps, missing, torch.float64)
        weights = weights[:, :1] if attentive else None
        exact = ExactGPPath.fit(batch, ratio, NOISE, weights)
        t = torch.linspace(0, 1, 2001, dtype=torch.float64)[None]
        truth = exact.evaluate(t), exact.derivative(t)
        for dtype in (torch.float64, torch.float32):
            path = GPPath.fit(batch.to(dtype=dtype), ratio, NOISE, weights)
            pairs = zip((path.evaluate(t), path.derivative(t)), truth, strict=True)
            worst = [float(((a - e).abs().amax(1) / e.abs().amax(1)).max()) for a, e in pairs]
            found[f"{name}, {str(dtype).removeprefix('torch.')}"] = {"value": worst[0], "derivative": worst[1]}
    return found


def kernel(ratio: float) -> dict:
    """Kernel path: stamps looked at per moment, and its error against the sum over all of them."""
    batch, weights = recording(LONGEST, 0.0, torch.float64)
    path = KernelPath.fit(batch, ratio, weights[:, :1])
    everything = replace(path, near=None)
    t = torch.linspace(0, 1, 101, dtype=torch.float64)[None]
    pairs = ((path.evaluate(t), everything.evaluate(t)), (path.derivative(t), everything.derivative(t)))
    value, derivative = (float((a - e).abs().max() / e.abs().max()) for a, e in pairs)
    return {"near": path.near_count or LONGEST, "value": value, "derivative": derivative}


def main() -> None:
    report: dict = {"views": VIEWS, "channels": CHANNELS, "noise": NOISE, "threads": torch.get_num_threads()}
    for ratio in RATIOS:
        entry = {"fit": slope(ratio)}
        print(
            f"h/span {ratio}: slope {entry['fit']['slope']:.2f}, {LONGEST:,} stamps {entry['fit']['seconds'][-1]:.2f} s"
        )
        entry["peak MB"] = {f"{missing:.0%} missing": peaks(ratio, missing) for missing in (0.0, 0.3)}
        entry["error"], entry["kernel path"] = errors(ratio), kernel(ratio)
        print(json.dumps({name: entry[name] for name in ("peak MB", "error", "kernel path")}, indent=2), flush=True)
        report[f"h/span {ratio}"] = entry
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weigh", nargs=2, type=float, metavar=("RATIO", "MISSING"), help="print one process's peaks")
    chosen = parser.parse_args().weigh
    weigh(*chosen) if chosen else main()
