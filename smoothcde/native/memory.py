"""Memory for what compiled code keeps from the way forwards for the way backwards.

A training step of a large batch keeps a gigabyte. The C library takes pieces of that size from the operating system and
gives them back at once, so that every step would pay for new pages full of zeros: a quarter of its time. Here they are
pieces of one range of addresses that stays, and pages are paid for when they are first written. The system may take
those that hold nothing when it is short of memory; `give_back` lets it have them at once.
"""

import math
import mmap
import os
import sys
import threading
import weakref
from collections import deque
from contextlib import suppress
from functools import cache

import numpy as np
import torch
from torch import Tensor

LARGE = 4 << 20
"""Bytes from which a piece is taken from here; the C library keeps smaller ones by itself."""

_PAGE = 2 << 20
"""A large page of Linux: a piece of whole ones can be taken without breaking one up."""


def room_to_keep(*shape: int) -> Tensor:
    """Numbers for compiled code to write and to find again on the way backwards."""
    size = 4 * math.prod(shape)
    if size >= LARGE and (pool := _pool()) is not None and (piece := pool.take(size)) is not None:
        return torch.from_numpy(piece).view(torch.float32)[: size // 4].view(shape)
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def give_back() -> None:
    """Let the operating system have the memory that holds nothing now."""
    if _pool.cache_info().currsize and (pool := _pool()) is not None:
        pool.give_back()


class Pool:
    """Pieces of one range of addresses, each free again as soon as its array is gone.

    Args:
        size: bytes in all; those never written cost nothing.
    """

    def __init__(self, size: int):
        self._memory = mmap.mmap(-1, size - size % _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # a system without them
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        self._free = [(0, len(self._memory))]
        self._lock = threading.Lock()
        # Arrays may go while the lock is held, in this very thread: they only say so here.
        self._gone: deque[tuple[int, int]] = deque()

    def take(self, size: int) -> np.ndarray | None:
        """At least so many bytes, the lowest that are free; None if there are none."""
        size = -(-size // _PAGE) * _PAGE
        with self._lock:
            self._settle()
            for place, (begin, end) in enumerate(self._free):
                if end - begin >= size:
                    self._free[place : place + 1] = [(begin + size, end)] if end - begin > size else []
                    break
            else:
                return None
        piece = np.frombuffer(self._memory, dtype=np.uint8, count=size, offset=begin)
        weakref.finalize(piece, self._gone.append, (begin, begin + size)).atexit = False
        return piece

    def give_back(self) -> None:
        """Let the operating system have what is free."""
        with self._lock:
            self._settle()
            for begin, end in self._free:
                self._memory.madvise(mmap.MADV_DONTNEED, begin, end - begin)

    def free(self) -> list[tuple[int, int]]:
        """Ranges that no array uses, from the lowest, none beside another."""
        with self._lock:
            self._settle()
            return list(self._free)

    def _settle(self) -> None:
        """Join what has become free with its neighbours."""
        while self._gone:
            begin, end = self._gone.popleft()
            self._memory.madvise(mmap.MADV_FREE, begin, end - begin)
            self._free.append((begin, end))
        joined: list[tuple[int, int]] = []
        for begin, end in sorted(self._free):
            if joined and joined[-1][1] == begin:
                begin, _ = joined.pop()
            joined.append((begin, end))
        self._free = joined


@cache
def _pool() -> Pool | None:
    """The one of this process; None where it cannot be had."""
    if sys.platform != "linux":
        return None
    try:
        return Pool(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError):
        return None  # addresses are limited


if hasattr(os, "register_at_fork"):
    # A child has copies of its parent's pieces, and perhaps a lock that no thread of its own will open.
    os.register_at_fork(after_in_child=_pool.cache_clear)
