"""C code of this folder, compiled for the processor at hand when it is first needed.

Few operations decide how fast a solve is on a CPU, and torch offers them one by one only. Where there is a C compiler
(`cc`, or what `CC` names), they are compiled in some seconds, once per machine, and kept in the user's cache
folder. Where there is none, or with `SMOOTHCDE_NATIVE=0`, everything runs in plain torch: the same results to rounding,
slower.
"""

import atexit
import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import pooch
import torch
from torch import Tensor

SWITCH = "SMOOTHCDE_NATIVE"
TILES = "SMOOTHCDE_TILES"
_FLAGS = ("-O3", "-std=gnu11", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast")
_TUNED = (("-march=native", "-fopenmp"), ("-march=native",), ())
"""Tried in this order: not every compiler knows them all."""


_off = ContextVar("compiled code is not used", default=False)


@contextmanager
def without_compiled_code() -> Iterator[None]:
    """Everything inside runs in plain torch: for comparisons."""
    token = _off.set(True)
    try:
        yield
    finally:
        _off.reset(token)


@cache
def library(source: str) -> ctypes.CDLL | None:
    """The compiled form of a C file of this folder, or None where it cannot be had; `why_not` then tells."""
    return _load(source)[0]


def why_not(source: str) -> str | None:
    """Why there is no compiled form of a C file, in words; None if there is."""
    return _load(source)[1]


def serves(source: str, *tensors: Tensor, dtype: torch.dtype = torch.float32) -> bool:
    """Whether compiled code can work on these: of one type, on a CPU, outside of any trace or transformation."""
    if _off.get() or any(t.device.type != "cpu" or t.dtype != dtype for t in tensors):
        return False
    traced = torch.compiler.is_compiling() or torch.compiler.is_exporting() or torch.jit.is_tracing()  # type: ignore[attr-defined]
    if traced or torch.is_autocast_enabled("cpu"):
        return False
    transformed = torch._C._functorch.peek_interpreter_stack() is not None  # type: ignore[attr-defined]
    return not transformed and library(source) is not None


def call(source: str, function: str, *arguments: Any) -> None:
    """Call a compiled function: tensors and arrays as pointers, structures by reference, None as no pointer."""
    loaded = library(source)
    assert loaded is not None
    if getattr(loaded, function)(*map(_handed_over, arguments)):
        raise MemoryError(f"{function} of {source} found no memory to work in")


def _handed_over(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        if argument.dtype != torch.float32 or argument.device.type != "cpu":
            raise TypeError(
                f"a field whose weights are float32 on a CPU was given {argument.dtype} on {argument.device}; "
                "bring states, paths and field to one precision and device"
            )
        return ctypes.c_void_p(argument.data_ptr())
    return ctypes.byref(argument) if isinstance(argument, ctypes.Structure) else argument


def structure(name: str, kind: Any, *fields: str) -> type[ctypes.Structure]:
    """A C structure whose fields are all of one kind."""
    return type(name, (ctypes.Structure,), {"_fields_": [(field, kind) for field in fields]})


def pointers(tensors: Sequence[Tensor | None]) -> list[int | None]:
    """Where tensors begin."""
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]


def counts(numbers: Sequence[int]) -> Any:
    """An array of 64-bit integers."""
    return (ctypes.c_int64 * len(numbers))(*numbers)


@cache
def _load(source: str) -> tuple[ctypes.CDLL | None, str | None]:
    if os.environ.get(SWITCH, "1") == "0":
        return None, f"{SWITCH} is 0"
    named = os.environ.get("CC", "cc")
    compiler = shutil.which(named)
    if compiler is None or sys.platform == "win32":
        return None, f"there is no C compiler {named!r}; install one, or name it by CC"
    path = Path(__file__).with_name(source)
    said, tiles = "", ("-DTILES",) if tiles_allowed() else ()
    for tuned in _TUNED:
        try:
            return ctypes.CDLL(str(_compiled(path, compiler, (*tuned, *tiles)))), None
        except (OSError, subprocess.SubprocessError) as error:
            said = said or _gist(getattr(error, "stderr", None) or str(error))
    return None, f"{named} could not compile {source}: {said}"


@cache
def tiles_allowed() -> bool:
    """Whether this process may use matrix tiles (AMX), if the processor has them: Linux keeps room for them only for
    those who ask. Not with `SMOOTHCDE_TILES=0`.
    """
    if os.environ.get(TILES, "1") == "0" or sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    try:
        return ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data) == 0
    except (OSError, AttributeError):
        return False


def _gist(message: str) -> str:
    """The line of a compiler's message that says what is wrong."""
    lines = message.strip().splitlines()
    return next((line for line in lines if "error" in line), lines[-1])


def _compiled(source: Path, compiler: str, tuned: tuple[str, ...]) -> Path:
    code = [path.read_text(encoding="utf-8") for path in (source, *sorted(source.parent.glob("*.h")))]
    made_of = "\n".join([*code, compiler, *_FLAGS, *tuned, _processor()])
    name = f"{source.stem}-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.so"
    folder = Path(pooch.os_cache("smoothcde")) / "native"
    target = folder / name
    if not target.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            writable = os.access(folder, os.W_OK)
        except OSError:
            writable = False
        if not writable:
            folder = Path(tempfile.mkdtemp(prefix="smoothcde-native-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            target = folder / name
        # Under another name first: processes and threads that start together must not read half a file.
        draft = folder / f"{name}.{os.getpid()}.{threading.get_ident()}"
        command = [compiler, *_FLAGS, *tuned, str(source), "-o", str(draft), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    return target


def _processor() -> str:
    """What the code is compiled for: a home folder may be shared by different machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        told = sorted({line for line in lines if line.startswith(("flags", "model name", "Features"))})
    except OSError:
        told = [platform.processor()]
    return "\n".join([platform.machine(), *told])
