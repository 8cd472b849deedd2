"""What a measurement ran on: processor, threads, versions; and how fast it multiplies matrices."""

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing import median

PACKAGES = ("torch", "torchdiffeq", "torchode", "jax", "jaxlib", "diffrax", "optax", "onnxruntime", "numpy")
SIDE = 2048
VECTORS = {"AVX-512 and AMX": "amx_bf16", "AVX-512": "avx512f", "AVX2": "avx2", "AVX": "avx"}


def described() -> dict[str, Any]:
    """For the head of every result."""
    return {
        "machine": platform.machine(),
        "processor": _about("model name") or "unknown",
        "vectors": _vectors(),
        "cores": len(os.sched_getaffinity(0)),
        "torch threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def product_speed(repeats: int = 9) -> float:
    """Floating point operations per second of a large float32 product, as many threads as everything else has."""
    a, b = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        a @ b
        seconds.append(time.perf_counter() - begin)
    return 2 * SIDE**3 / median(seconds)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _vectors() -> str:
    """The longest vectors of the processor, and its matrix tiles, if it tells: machines of one name differ in them."""
    flags = _about("flags").split()
    return next((name for name, flag in VECTORS.items() if flag in flags), "")


def _about(what: str) -> str:
    """What the system says of the first processor, on Linux."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(what)), "")
