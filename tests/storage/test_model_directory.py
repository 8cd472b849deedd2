"""Model directories: what comes back, and what is refused."""

import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from smoothcde.storage import FORMAT_VERSION, Contents, ModelFileError, atomic, read_directory, write_directory

FILES = ("manifest.json", "model.json", "weights.safetensors")


@pytest.fixture
def contents() -> Contents:
    tensors = {"a.weight": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1.0, 2.0], dtype=torch.float64)}
    return Contents({"task": "classification", "numbers": [0.1, 1e-300, -3], "text": "ü \u2028", "none": None}, tensors)


@pytest.fixture
def saved(contents, tmp_path) -> Path:
    write_directory(tmp_path / "model", contents)
    return tmp_path / "model"


def rewrite(folder: Path, **changes: bytes) -> None:
    """Replace files and make checksums fit again, as an attacker would."""
    for name, content in changes.items():
        (folder / {"model": "model.json", "weights": "weights.safetensors"}[name]).write_bytes(content)
    reseal(folder, {})


def reseal(folder: Path, changes: dict) -> None:
    def canonical(document) -> bytes:
        return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()

    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["sha256"]
    for name in FILES[1:]:
        content = (folder / name).read_bytes()
        manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest |= changes
    manifest["sha256"] = hashlib.sha256(canonical(manifest)).hexdigest()
    (folder / "manifest.json").write_bytes(canonical(manifest))


def test_what_was_written_comes_back(saved, contents):
    found = read_directory(saved)
    assert found.document == contents.document
    assert found.tensors.keys() == contents.tensors.keys()
    for name, tensor in contents.tensors.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name], tensor)


def test_a_directory_holds_three_files_and_no_trace_of_the_writing(saved):
    assert sorted(p.name for p in saved.iterdir()) == list(FILES)
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


def test_a_resealed_directory_is_read_so_the_tests_below_fail_for_their_own_reason(saved, contents):
    reseal(saved, {})
    assert read_directory(saved).document == contents.document


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(ModelFileError, match=f"has no file {name}.*copy the directory again"):
        read_directory(saved)


@pytest.mark.parametrize("name", FILES)
def test_every_flipped_byte_is_noticed(saved, name):
    content = (saved / name).read_bytes()
    generator = np.random.default_rng(0)
    for place in generator.permutation(len(content))[:200]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(generator.integers(8))
        (saved / name).write_bytes(bytes(flipped))
        with pytest.raises(ModelFileError):
            read_directory(saved)
    (saved / name).write_bytes(content)
    read_directory(saved)


@pytest.mark.parametrize("name", FILES[1:])
def test_a_flipped_byte_gets_the_name_of_its_file_and_a_remedy(saved, name):
    content = bytearray((saved / name).read_bytes())
    content[-3] ^= 1
    (saved / name).write_bytes(bytes(content))
    with pytest.raises(ModelFileError, match=rf"{name}' does not match its checksum.*copy the directory again"):
        read_directory(saved)


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_refused(saved, name):
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError, match=name):
        read_directory(saved)


def test_a_newer_format_asks_for_an_upgrade(saved):
    reseal(saved, {"format_version": FORMAT_VERSION + 1, "something": "new"})
    with pytest.raises(ModelFileError, match=r"newer smoothcde \(format 2; this one reads up to 1\).*pip install"):
        read_directory(saved)


@pytest.mark.parametrize("version", [None, "1", 0, True, 1.0])
def test_a_format_version_that_is_none_is_refused(saved, version):
    reseal(saved, {"format_version": version})
    with pytest.raises(ModelFileError, match="gives no format version"):
        read_directory(saved)


def test_another_programs_directory_is_not_taken_for_a_model(saved):
    reseal(saved, {"format": "something else"})
    with pytest.raises(ModelFileError, match="does not describe a smoothcde model"):
        read_directory(saved)


class Bomb:
    """Unpickling it leaves a file behind."""

    def __init__(self, trace: Path):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("sealed", [False, True])
def test_a_hostile_pickle_under_our_file_names_is_refused_and_not_run(saved, tmp_path, name, sealed):
    trace = tmp_path / "it ran"
    (saved / name).write_bytes(pickle.dumps(Bomb(trace)))
    if sealed and name != "manifest.json":
        reseal(saved, {})
    with pytest.raises(ModelFileError, match=name):
        read_directory(saved)
    assert not trace.exists()
    pickle.loads(pickle.dumps(Bomb(trace)))
    assert trace.exists(), "the bomb of this test is a dud"


@pytest.mark.parametrize("name", FILES)
def test_a_torch_file_under_our_file_names_is_refused(saved, tmp_path, name):
    torch.save({"a": Bomb(tmp_path / "it ran")}, saved / name)
    if name != "manifest.json":
        reseal(saved, {})
    with pytest.raises(ModelFileError, match=name):
        read_directory(saved)
    assert not (tmp_path / "it ran").exists()


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "model.json/../../secret", "weights.pt"])
def test_paths_in_the_manifest_lead_nowhere(saved, name):
    files = json.loads((saved / "manifest.json").read_text())["files"]
    reseal(saved, {"files": files | {name: files["model.json"]}})
    with pytest.raises(ModelFileError, match=r"must list the files model\.json and weights\.safetensors, and no other"):
        read_directory(saved)


@pytest.mark.parametrize("name", FILES)
def test_links_are_not_followed(saved, tmp_path, name):
    shutil.move(saved / name, tmp_path / name)
    (saved / name).symlink_to(tmp_path / name)
    with pytest.raises(ModelFileError, match="holds no links"):
        read_directory(saved)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[1, 2]", "where an object was expected"),
        (b'{"a": NaN}', "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff\xfe{}", "is not JSON"),
        (b"", "is not JSON"),
    ],
)
def test_json_that_is_none_is_refused(saved, content, words):
    rewrite(saved, model=content)
    with pytest.raises(ModelFileError, match=words):
        read_directory(saved)


def test_a_directory_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        read_directory(tmp_path / "nowhere")


def test_a_file_in_place_of_a_directory_is_said_so(saved):
    with pytest.raises(ModelFileError, match="is a file; give the directory that holds it"):
        read_directory(saved / "model.json")


def test_saving_again_replaces_the_model(saved, contents):
    write_directory(saved, Contents({"task": "other"}, {}))
    assert read_directory(saved).document == {"task": "other"}
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


def test_a_directory_with_other_files_is_left_alone(tmp_path, contents):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ModelFileError, match=r"holds other files \(thesis.tex\).*directory of its own"):
        write_directory(tmp_path, contents)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_file_in_the_way_is_left_alone(tmp_path, contents):
    (tmp_path / "model").write_text("a note")
    with pytest.raises(ModelFileError, match="is not a directory"):
        write_directory(tmp_path / "model", contents)
    assert (tmp_path / "model").read_text() == "a note"


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_write_that_fails_leaves_the_old_model_and_no_rest(saved, contents, monkeypatch, step):
    def fail(*_):
        raise OSError(28, "No space left on device")

    if step == "rename":
        monkeypatch.setattr(atomic, "_exchange", fail)
    else:
        monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ModelFileError, match="No space left on device"):
        write_directory(saved, Contents({"task": "new"}, {}))
    monkeypatch.undo()
    assert read_directory(saved).document == contents.document
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


def test_without_the_linux_call_directories_are_swapped_all_the_same(saved, monkeypatch):
    def missing(*_, **__):
        raise OSError("no such library")

    monkeypatch.setattr(atomic.ctypes, "CDLL", missing)
    write_directory(saved, Contents({"task": "new"}, {}))
    assert read_directory(saved).document == {"task": "new"}
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ModelFileError, match="cannot be written as JSON"):
        write_directory(tmp_path / "model", Contents({"a": float("nan")}, {}))
    assert not list(tmp_path.iterdir())
