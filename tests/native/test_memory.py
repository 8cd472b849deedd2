"""Memory that one training step leaves to the next: nobody writes where another does, and nothing is kept for ever."""

import gc
import os
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smoothcde import native
from smoothcde.native import memory
from smoothcde.native.memory import LARGE, Pool, room_to_keep

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is kept on Linux only")

MB = 1 << 20


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(1, 40 * MB), st.integers(-5, -1)), max_size=40))
def test_pieces_never_overlap_and_all_of_them_come_back(asked):
    """Sizes are taken; a negative number lets one of the pieces go."""
    pool, held = Pool(256 * MB), []
    for size in asked:
        if size < 0:
            held = held[: size - 1] + held[size:] if len(held) >= -size else held
        elif (piece := pool.take(size)) is not None:
            assert len(piece) >= size
            held.append(piece)
        begins = sorted((piece.ctypes.data, piece.ctypes.data + len(piece)) for piece in held)
        assert all(one[1] <= other[0] for one, other in pairwise(begins))
        free = pool.free()
        assert all(one[1] < other[0] for one, other in pairwise(free))
        assert sum(end - begin for begin, end in free) + sum(map(len, held)) == 256 * MB
    piece = None
    held.clear()
    assert pool.free() == [(0, 256 * MB)]


def test_what_is_gone_is_used_again():
    first = room_to_keep(LARGE)
    place = first.data_ptr()
    del first
    assert room_to_keep(LARGE).data_ptr() == place


def test_a_view_keeps_its_piece():
    whole = room_to_keep(2, LARGE)
    part = whole[1, :10]
    part.fill_(3.0)
    del whole
    room_to_keep(2, LARGE).fill_(7.0)
    assert (part == 3.0).all()


def test_more_than_there_is_comes_from_elsewhere(monkeypatch):
    small = Pool(8 * MB)
    monkeypatch.setattr(memory, "_pool", lambda: small)
    rooms = [room_to_keep(3 * MB // 2) for _ in range(3)]
    for value, numbers in enumerate(rooms):
        numbers.fill_(float(value))
    assert [float(numbers.max()) for numbers in rooms] == [0.0, 1.0, 2.0]
    assert small.take(8 * MB) is None


def test_where_addresses_are_limited_torch_is_asked():
    """With less of them than the machine has memory."""
    code = (
        "import resource, torch; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30));"
        "from smoothcde.native import memory; memory.os.sysconf = lambda name: 1 << 20;"
        "numbers = memory.room_to_keep(1 << 21); numbers.fill_(1.0); assert memory._pool() is None;"
        "memory.give_back()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_memory_is_given_back():
    numbers = room_to_keep(64 * MB)
    numbers.fill_(1.0)
    with_it = resident()
    del numbers
    kept = room_to_keep(2 * MB)
    kept.fill_(5.0)
    native.give_back()
    assert resident() < with_it - 200 * MB
    assert (kept == 5.0).all()


def test_a_graph_that_is_gone_leaves_its_memory():
    inner, outer = (torch.randn(1, 64, 64), torch.randn(1, 64)), (torch.randn(1, 64, 640), torch.randn(1, 640))
    field = native.PackedField(inner, outer, "tanh", lambda inputs, rows: inputs[0])
    pool = memory._pool()
    gc.collect()
    before = pool.free()
    z, dx = torch.randn(4000, 64, requires_grad=True), torch.randn(4000, 10)

    class Rows:
        sizes = (4000,)

    slope = field.product(z, dx, Rows)
    assert pool.free() != before  # activations and entries wait for the way back
    slope.sum().backward()
    assert pool.free() == before


def test_threads_do_not_share_pieces():
    """Arrays go in one thread while another takes some."""
    pool, wrong = Pool(512 * MB), []

    def work(mark):
        random = np.random.default_rng(mark)
        held = []
        for _ in range(200):
            if (piece := pool.take(int(random.integers(1, 6 * MB)))) is not None:
                piece[::4096] = mark
                held.append(piece)
            if len(held) > 8 or (held and random.random() < 0.4):
                old = held.pop(int(random.integers(len(held))))
                wrong.extend([mark] * int((old[::4096] != mark).any()))
            if random.random() < 0.1:
                pool.give_back()

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert pool.free() == [(0, 512 * MB)]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_has_memory_of_its_own():
    """Even if its parent was forked while a thread held the lock."""
    numbers = room_to_keep(LARGE)
    numbers.fill_(1.0)
    pool = memory._pool()
    with pool._lock:
        child = os.fork()
        if not child:
            room_to_keep(LARGE).numpy()[:] = 2.0  # torch's own threads do not outlive a fork
            os._exit(int((numbers.numpy() != 1.0).any()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (numbers == 1.0).all()
    assert memory._pool() is pool
