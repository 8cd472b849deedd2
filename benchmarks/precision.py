"""Work against precision: error and time of one training step and one inference pass over tolerances 1e-1 to 1e-5.

    python -m benchmarks.precision UWaveGestureLibrary
    python -m benchmarks.precision UWaveGestureLibrary --series 16 --rounds 1      # a try; writes nothing

smoothcde, the paper's stack and diffrax; what a tolerance means differs between them, an error does not.
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.entries import DIFFRAX, ENTRIES, OURS, PAPER, Entry
from benchmarks.machine import described
from benchmarks.record import read, write
from benchmarks.reference import Reference
from benchmarks.settings import SETTINGS, Work
from benchmarks.timing import interleaved, median

COMPARED = (OURS, PAPER, DIFFRAX)
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
ROUNDS = {"CharacterTrajectories": 5, "SpokenArabicDigits": 2, "UWaveGestureLibrary": 5}
SERIES = {"SpokenArabicDigits": 256}
"""Series of a batch where all 2,048 would take half an hour."""
IMAGE = Path(__file__).parent.parent / "docs" / "images" / "precision.png"


def measure(data: str, series: int | None, rounds: int) -> dict[str, Any]:
    """Points of each entry, in the order of the tolerances."""
    work = Work.of(SETTINGS[data], series)
    reference = Reference.of(work)
    entries = {name: ENTRIES[name](work) for name in COMPARED}
    points: dict[str, list[dict[str, float]]] = {name: [] for name in entries}
    for tolerance in TOLERANCES:
        for name, entry in entries.items():
            points[name].append({"tolerance": tolerance, **_errors(entry, tolerance, reference)})
        for what, timed in (
            ("training step", interleaved({name: entry.step for name, entry in entries.items()}, rounds)),
            ("inference", interleaved({name: entry.infer for name, entry in entries.items()}, rounds)),
        ):
            for name, seconds in timed.items():
                points[name][-1][what] = median(seconds)
        for name in entries:
            point = points[name][-1]
            print(
                f"{tolerance:7.0e} {name:>24}: error {point['largest']:.1e} at worst, {point['rms']:.1e} rms, "
                f"{point['evaluations']:.0f} evaluations, step {point['training step']:.3f} s, "
                f"inference {point['inference']:.3f} s",
                flush=True,
            )
    head = {"data": work.source, "series": work.setting.series, "rounds": rounds, **described()}
    return head | {"points": points}


def _errors(entry: Entry, tolerance: float, reference: Reference) -> dict[str, float]:
    entry.tolerance = tolerance
    outputs = entry.infer()
    evaluations = entry.counts().computed
    return {**asdict(reference.errors_of(outputs, entry.gradients())), "evaluations": evaluations}


def draw(file: Path = IMAGE) -> None:
    """Every setting that has been measured, as one picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    reports = {data: found for data in SETTINGS if (found := read(f"precision_{data}")) is not None}
    if not reports:
        return
    figure, axes = plt.subplots(2, len(reports), figsize=(4.2 * len(reports), 7), squeeze=False, sharey="row")
    for column, (data, report) in enumerate(reports.items()):
        for row, (what, error) in enumerate((("training step", "gradient"), ("inference", "rms"))):
            axis = axes[row, column]
            for (name, points), marker in zip(report["points"].items(), "osD", strict=True):
                axis.loglog([p[what] for p in points], [p[error] for p in points], f"-{marker}", label=name)
            axis.set_xlabel(f"seconds per {what}" + (" pass" if what == "inference" else ""))
            axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.grid(alpha=0.3, which="both")
        axes[0, column].set_title(f"{data}, {report['series']} series", fontsize=10)
    axes[0, 0].set_ylabel("relative error of the gradient")
    axes[1, 0].set_ylabel("root mean square error of outputs")
    axes[0, 0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def run(data: str, series: int | None = None, rounds: int | None = None) -> None:
    """Measure one setting; written down and drawn only at its usual size."""
    report = measure(data, series or SERIES.get(data), rounds or ROUNDS[data])
    if series is None:
        write(f"precision_{data}", report)
        draw()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setting", choices=SETTINGS)
    parser.add_argument("--series", type=int, help="a smaller batch; results are then not written")
    parser.add_argument("--rounds", type=int)
    arguments = parser.parse_args()
    run(arguments.setting, arguments.series, arguments.rounds)
