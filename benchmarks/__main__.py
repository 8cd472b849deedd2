"""Everything that `make bench` runs, each part in a process of its own, and the page made from it.

    python -m benchmarks

Parts alone: `python -m benchmarks.peers SETTING`, `benchmarks.precision SETTING`, `benchmarks.latency`,
`benchmarks.smoothing`, `benchmarks.many_channels`, `benchmarks.frozen_plans`, `benchmarks.steps`,
`benchmarks.amplification`, and `benchmarks.page` for the tables of docs/benchmarks.md.
"""

import subprocess
import sys

from benchmarks.page import update
from benchmarks.settings import SETTINGS

PARTS = (
    *(("benchmarks.peers", setting) for setting in SETTINGS),
    ("benchmarks.latency",),
    *(("benchmarks.precision", setting) for setting in SETTINGS),
    ("benchmarks.smoothing",),
    ("benchmarks.many_channels",),
    ("benchmarks.frozen_plans",),
    ("benchmarks.steps",),
    ("benchmarks.amplification",),
)


def main() -> int:
    """Run all parts; one that fails keeps its last result, and is told at the end."""
    failed = []
    for part in PARTS:
        print(f"\n== python -m {' '.join(part)}", flush=True)
        # A process each: what one part leaves in memory, in thread pools or pinned to a core is no other's.
        if subprocess.run([sys.executable, "-m", *part]).returncode:
            failed.append(" ".join(part))
        else:
            update()
    if failed:
        print(f"\nfailed: {'; '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
