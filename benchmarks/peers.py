"""One training step and one inference pass of mvc-gp, here and in every peer, on a setting of the paper.

    python -m benchmarks.peers UWaveGestureLibrary
    python -m benchmarks.peers UWaveGestureLibrary --share      # the share of product speed alone, anew
    python -m benchmarks.peers CharacterTrajectories --series 16 --rounds 1      # a try; writes nothing

Same weights and data everywhere. Outputs and gradients are compared with a solve at 1e-8 in float64 before anything is
timed. Real series where `SMOOTHCDE_DATA` holds them, otherwise generated ones of the same shape.

One step size for all series, chosen by the mean square error of all, lets single series stray; a step size per row does
not. So the same tolerance buys different errors, and two more entries run smoothcde, by either method, at the loosest
tolerance that leaves its outputs no further from the reference than those of the paper's stack, in the mean square and
at worst.
"""

import argparse
import gc
from collections.abc import Sequence
from typing import Any

from benchmarks.entries import ENTRIES, OURS, PAPER, Entry, OurEntry
from benchmarks.machine import described, product_speed
from benchmarks.memory import peak_memory
from benchmarks.products import step_operations
from benchmarks.record import read, write
from benchmarks.reference import Reference, check_reference, compare
from benchmarks.settings import SETTINGS, Work
from benchmarks.timing import interleaved, median
from smoothcde.native import conv_scores, why_not

EQUAL_ERROR = {"smoothcde at equal error": "dopri5", "smoothcde, bs5, at equal error": "bs5"}
"""Entries, and the methods they use."""
LOOSER = (100.0, 50.0, 30.0, 20.0, 10.0, 7.0, 5.0, 3.0, 2.0, 1.0)
ROUNDS = {"CharacterTrajectories": 7, "SpokenArabicDigits": 3, "UWaveGestureLibrary": 7}


def measure(data: str, names: Sequence[str], series: int | None, rounds: int) -> dict[str, Any]:
    """All of one setting."""
    work = Work.of(SETTINGS[data], series)
    setting = work.setting
    report: dict[str, Any] = {"data": work.source, "series": setting.series, "rounds": rounds, **described()}
    report["reference check"] = check_reference(work)
    reference = Reference.of(work)
    entries: dict[str, Entry] = {}
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        entry = ENTRIES[name](work)
        found[name] = compare(entry, reference)
        entries[name] = entry
        errors, evaluations = found[name]["errors"], found[name]["evaluations"]
        print(
            f"{name:>40}: error {errors['largest']:.1e} at worst, {errors['rms']:.1e} rms, "
            f"gradient {errors['gradient']:.1e}; {evaluations['needed']:.0f} evaluations needed, "
            f"{evaluations['computed']:.0f} computed",
            flush=True,
        )
    if PAPER in found and OURS in found:
        for name, solver in EQUAL_ERROR.items():
            entries[name], found[name] = _at_equal_error(work, reference, found[PAPER]["errors"], solver)
            print(f"{name}: tolerance {entries[name].tolerance:g}", flush=True)
    steps = interleaved({name: entry.step for name, entry in entries.items()}, rounds)
    passes = interleaved({name: entry.infer for name, entry in entries.items()}, rounds)
    for name, entry in entries.items():
        found[name] |= {"training step": median(steps[name]), "inference": median(passes[name])}
        found[name] |= {"compile": entry.compile_seconds, "tolerance": entry.tolerance}
    if OURS in entries:
        report["products"] = _products(entries[OURS], work, rounds)
    entries.clear()
    gc.collect()
    for name in found:
        if name not in EQUAL_ERROR:
            found[name]["peak megabytes"] = peak_memory(data, name, setting.series)
    return report | {"entries": found}


def _at_equal_error(
    work: Work, reference: Reference, theirs: dict[str, float], solver: str
) -> tuple[Entry, dict[str, Any]]:
    for factor in LOOSER:
        entry = OurEntry(work, solver=solver)
        entry.tolerance = factor * work.setting.tolerance
        errors = reference.errors_of(entry.infer(), reference.gradients)
        if factor == 1.0 or (errors.largest <= theirs["largest"] and errors.rms <= theirs["rms"]):
            return entry, compare(entry, reference)
    raise AssertionError("the last factor is 1")


def _products(entry: Entry, work: Work, rounds: int) -> dict[str, Any]:
    """Share of the machine's own matrix-product speed that a training step reaches: both by turns, since a machine is
    not equally fast at all times.
    """
    assert isinstance(entry, OurEntry)
    entry.infer()
    assert entry.outcome is not None
    assert entry.outcome.solution is not None
    filtered = why_not(conv_scores.SOURCE) is None
    operations = step_operations(work.setting, entry.outcome.solution.stats, filtered)
    speeds: list[float] = []
    seconds = median(interleaved({OURS: entry.step, "product": lambda: speeds.append(product_speed())}, rounds)[OURS])
    speed = median(speeds)
    share = sum(operations.values()) / seconds / speed
    print(f"products of a step: {sum(operations.values()) / 1e9:.1f} GFLOP, {share:.0%} of {speed / 1e9:.0f} GFLOP/s")
    return {"operations": operations, "operations per second of a large product": speed, "share": share}


def measure_share(data: str, rounds: int | None = None) -> None:
    """The share of product speed alone, into what was measured before."""
    work = Work.of(SETTINGS[data])
    products = _products(OurEntry(work), work, rounds or ROUNDS[data])
    if (report := read(f"peers_{data}")) is not None:
        write(f"peers_{data}", report | {"products": products})


def show(report: dict[str, Any]) -> None:
    """On the terminal."""
    ours = report["entries"].get(OURS)
    for name, found in report["entries"].items():
        line = f"{name:>40}: step {found['training step']:.3f} s, inference {found['inference']:.3f} s"
        if ours is not None:
            ratios = [found[what] / ours[what] for what in ("training step", "inference")]
            line += f" ({ratios[0]:.2f} x and {ratios[1]:.2f} x smoothcde)"
        line += f", {found['peak megabytes']:.0f} MB" if "peak megabytes" in found else ""
        if found["compile"]:
            line += f"; compiling {', '.join(f'{what} {s:.1f} s' for what, s in found['compile'].items())}"
        print(line, flush=True)


def run(data: str, series: int | None = None, rounds: int | None = None, only: str = "") -> None:
    """Measure one setting; written down only if it is the whole of it."""
    names = [name for name in ENTRIES if only in name]
    report = measure(data, names, series, rounds or ROUNDS[data])
    show(report)
    if series is None and not only:
        write(f"peers_{data}", report)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setting", choices=SETTINGS)
    parser.add_argument("--series", type=int, help="a smaller batch; results are then not written")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--share", action="store_true", help="measure the share of product speed and nothing else")
    parser.add_argument("--only", default="", help="entries whose name contains this; results are then not written")
    arguments = parser.parse_args()
    if arguments.share:
        measure_share(arguments.setting, arguments.rounds)
    else:
        run(arguments.setting, arguments.series, arguments.rounds, arguments.only)
