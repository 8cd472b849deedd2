"""Interleaved timing: every entry once per round, so that a slow moment of the machine hits all alike."""

import statistics
import time
from collections.abc import Callable


def interleaved(entries: dict[str, Callable[[], object]], rounds: int, warmup: int = 1) -> dict[str, list[float]]:
    """Seconds per call, `rounds` of them for each entry, after `warmup` rounds that do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in entries}
    for turn in range(warmup + rounds):
        for name, call in entries.items():
            begin = time.perf_counter()
            call()
            if turn >= warmup:
                seconds[name].append(time.perf_counter() - begin)
    return seconds


def median(seconds: list[float]) -> float:
    """The middle value."""
    return statistics.median(seconds)
