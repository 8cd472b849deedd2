"""Interleaved timing: every entry in every round, so that a slow moment of the machine hits all alike."""

import statistics
import time
from collections.abc import Callable


def interleaved(entries: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds per call, `rounds` of them for each entry.

    Each timed call follows an untimed one of the same entry, as a training step follows another: what one entry leaves
    in the caches and in the allocator is not charged to the next.
    """
    seconds: dict[str, list[float]] = {name: [] for name in entries}
    for _ in range(rounds):
        for name, call in entries.items():
            call()
            begin = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - begin)
    return seconds


def median(seconds: list[float]) -> float:
    """The middle value."""
    return statistics.median(seconds)
