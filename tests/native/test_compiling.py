"""Compiling happens once, quietly, and never stands in anybody's way."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from smoothcde.native import library, tanh_field

ASK = """
import torch
from smoothcde import SeriesSet, build_model
from smoothcde.native import tanh_field, why_not

torch.manual_seed(0)
how = {"time_scale": 1.0, "bandwidths": (0.1, 0.3), "hidden": 16, "rtol": 1e-4, "atol": 1e-4}
model = build_model("mvc-gp", channels=2, outputs=3, **how)
times = torch.linspace(0, 1, 30).numpy()
values = torch.sin(9 * torch.linspace(0, 1, 30)).repeat(4, 2, 1).numpy()
outcome = model.solve(SeriesSet.from_arrays(values, times).batch())
outcome.outputs.sum().backward()
print(why_not(tanh_field.SOURCE))
print(*outcome.outputs.flatten().tolist())
print(float(model.attention.queries.grad.norm()))
"""


def answer(**environment):
    """What a process of its own says."""
    said = subprocess.run(
        [sys.executable, "-c", ASK], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    reason, outputs, gradient = said.stdout.splitlines()
    return reason, [float(x) for x in outputs.split()], float(gradient)


def test_without_compiled_code_everything_is_the_same_but_slower():
    compiled, (off, outputs, gradient) = answer(), answer(SMOOTHCDE_NATIVE="0")
    assert compiled[0] == "None"
    assert off == "SMOOTHCDE_NATIVE is 0"
    assert compiled[1] == pytest.approx(outputs, abs=1e-4)
    assert compiled[2] == pytest.approx(gradient, rel=1e-3)


def test_a_missing_compiler_is_told_and_hinders_nobody():
    reason, outputs, _ = answer(CC="no-such-compiler")
    assert reason == "there is no C compiler 'no-such-compiler'; install one, or name it by CC"
    assert len(outputs) == 12


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where C files are looked for, with a cache of its own."""
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_a_compiler_that_fails_is_quoted(folder):
    broken = folder / "broken.c"
    broken.write_text("int nothing(void) { return here; }\n")
    reason = library._load.__wrapped__("broken.c")[1]
    assert reason.startswith("cc could not compile broken.c: ")
    assert "error" in reason
    assert not list(folder.rglob("*.so*"))


def test_what_was_compiled_once_is_not_compiled_again(folder, monkeypatch):
    (folder / "small.c").write_text("int three(void) { return 3; }\n")
    assert library._load.__wrapped__("small.c")[0].three() == 3
    monkeypatch.setattr(library.subprocess, "run", None)
    assert library._load.__wrapped__("small.c")[0].three() == 3
    (folder / "small.c").write_text("int three(void) { return 4; }\n")  # other code is compiled anew
    with pytest.raises(TypeError):
        library._load.__wrapped__("small.c")


def test_threads_that_need_it_at_the_same_time_all_get_it(folder):
    (folder / "small.c").write_text("int six(void) { return 6; }\n")
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(library._load.__wrapped__, ["small.c"] * 8))
    assert [(found.six(), reason) for found, reason in loaded] == [(6, None)] * 8
    assert len(list(folder.rglob("*.so*"))) == 1  # nobody had to make do with less


def test_a_cache_that_cannot_be_written_to_is_done_without(folder, monkeypatch):
    (folder / "small.c").write_text("int five(void) { return 5; }\n")
    (folder / "cache").write_text("a file where a folder would have to be")
    left = []
    monkeypatch.setattr(library.atexit, "register", lambda remove, folder, **how: left.append(folder))
    assert library._load.__wrapped__("small.c")[0].five() == 5
    assert [file.suffix for file in left[0].iterdir()] == [".so"]
    shutil.rmtree(left[0])


def test_a_full_cache_that_cannot_be_written_to_is_used(folder, monkeypatch):
    (folder / "small.c").write_text("int seven(void) { return 7; }\n")
    assert library._load.__wrapped__("small.c")[0].seven() == 7
    monkeypatch.setattr(library.Path, "mkdir", None)
    monkeypatch.setattr(library.subprocess, "run", None)
    assert library._load.__wrapped__("small.c")[0].seven() == 7


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_trace_is_left_to_torch():
    """It would keep the empty tensor that compiled code fills, and not the filling."""
    served = []

    def traced(tensor):
        served.append(library.serves(tanh_field.SOURCE, tensor))
        return 2 * tensor

    ones = torch.ones(3)
    traced(ones)
    torch.jit.trace(traced, ones, check_trace=False)
    assert served == [True, False]
