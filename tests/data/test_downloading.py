"""Downloads from a server of our own: checked, unpacked below their folder, or explained."""

import hashlib
import io
import os
import re
import tarfile
import threading
import warnings
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from smoothcde.data import KNOWN, DownloadError, KnownData, data_folder, fetch, load_uea
from smoothcde.data.known import Remote

DATA = os.environ.get("SMOOTHCDE_DATA")
CONTENT = b"1,2\n"
SUM = hashlib.sha256(CONTENT).hexdigest()
TS = "@problemName Tiny\n@timestamps false\n@univariate false\n@dimension 1\n@equalLength true\n@seriesLength 3\n"
TS += "@classLabel true a b\n@data\n1,2,3:a\n4,5,6:b\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        if "cut-off" in self.path:  # promises more than it sends
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x" * 10)
        else:
            super().do_GET()


@pytest.fixture
def served(tmp_path):
    """A folder, and the address it is served at."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The data folder."""
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def known(monkeypatch):
    """Makes a data set known by name."""

    def add(name, files, *remotes, place="Sets/tiny"):
        data = KnownData(name, "tiny", place, files, "https://example.org", remotes)
        monkeypatch.setitem(KNOWN, name, data)
        return data

    return add


def sum_of(content):
    return hashlib.sha256(content).hexdigest()


def left_behind(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() or path.name[0] == ".")


def test_a_file_is_checked_and_put_into_place(served, place, known, capsys):
    folder, address = served
    (folder / "a.csv").write_bytes(CONTENT)
    known("tiny", ("b.csv",), Remote(f"{address}/a.csv", "b.csv", SUM))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fetch("tiny") == place / "Sets" / "tiny"
    assert (place / "Sets" / "tiny" / "b.csv").read_bytes() == CONTENT
    assert left_behind(place) == ["Sets/tiny/b.csv"]
    assert "a.csv" in capsys.readouterr().err  # the bar


def test_another_sum_keeps_nothing(served, place, known):
    folder, address = served
    (folder / "a.csv").write_bytes(b"1,3\n")
    known("tiny", ("a.csv",), Remote(f"{address}/a.csv", "a.csv", SUM))
    with pytest.raises(DownloadError, match=rf"does not have the SHA-256 {SUM}, .*; nothing was kept"):
        fetch("tiny", progress=False)
    assert left_behind(place) == []


def test_a_file_without_a_known_sum_is_said_to_be_unchecked(served, place, known):
    folder, address = served
    (folder / "a.csv").write_bytes(CONTENT)
    known("tiny", ("a.csv",), Remote(f"{address}/a.csv", "a.csv"))
    with pytest.warns(UserWarning, match=rf"a\.csv was not checked: no SHA-256 is known for it\. It has {SUM}"):
        fetch("tiny", progress=False)


@pytest.mark.parametrize("inner", ["", "Tiny/"])
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_is_unpacked_wherever_its_files_are(served, place, known, kind, inner):
    folder, address = served
    contents = {f"{inner}Tiny_{part}.ts": TS for part in ("TRAIN", "TEST")} | {f"{inner}notes.txt": "no"}
    write_archive(folder / f"t.{kind}", contents)
    content = (folder / f"t.{kind}").read_bytes()
    remote = Remote(f"{address}/t.{kind}", sha256=sum_of(content), wanted="*.ts")
    known("Tiny", ("Tiny_TRAIN.ts", "Tiny_TEST.ts"), remote, place="UEA/Tiny")
    with pytest.raises(FileNotFoundError, match="`smoothcde datasets Tiny --download` fetches it from http://127"):
        load_uea("Tiny")
    assert fetch("Tiny", progress=False) == place / "UEA" / "Tiny"
    assert left_behind(place) == ["UEA/Tiny/Tiny_TEST.ts", "UEA/Tiny/Tiny_TRAIN.ts"]
    series, labels = load_uea("Tiny", "all")
    np.testing.assert_array_equal(series.values[:, 0], [1, 2, 3, 4, 5, 6] * 2)
    assert labels.tolist() == ["a", "b"] * 2


def write_archive(file, contents):
    if file.suffix == ".zip":
        with zipfile.ZipFile(file, "w") as archive:
            for name, text in contents.items():
                archive.writestr(name, text)
        return
    with tarfile.open(file, "w:gz") as archive:
        for name, text in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("name", ["../../escaped", "/tmp/smoothcde-escaped", "a/../../../escaped"])
@pytest.mark.filterwarnings("ignore:.* was not checked")
def test_an_archive_that_leads_outside_is_refused(served, place, known, kind, name, tmp_path):
    folder, address = served
    write_archive(folder / f"t.{kind}", {"a.csv": "fine", name: "evil"})
    known("tiny", ("a.csv",), Remote(f"{address}/t.{kind}"))
    if kind == "tar.gz" and name.startswith("/"):  # the tar filter makes it a name below instead
        fetch("tiny", progress=False)
    else:
        with pytest.raises(DownloadError, match=r"could not be unpacked .*outside.*; nothing was kept"):
            fetch("tiny", progress=False)
        assert left_behind(place) == []
    assert not list(tmp_path.rglob("escaped"))
    assert not Path("/tmp/smoothcde-escaped").exists()


@pytest.mark.filterwarnings("ignore:.* was not checked")
def test_a_link_that_leads_outside_is_refused(served, place, known):
    folder, address = served
    with tarfile.open(folder / "t.tar", "w") as archive:
        entry = tarfile.TarInfo("a.csv")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    known("tiny", ("a.csv",), Remote(f"{address}/t.tar"))
    with pytest.raises(DownloadError, match="could not be unpacked"):
        fetch("tiny", progress=False)


@pytest.mark.parametrize("content", [b"no archive at all", None])
@pytest.mark.filterwarnings("ignore:.* was not checked")
def test_archives_that_are_damaged_or_hold_something_else_are_not_kept(served, place, known, content):
    folder, address = served
    write_archive(folder / "t.zip", {"other.csv": "1"})
    if content is not None:
        (folder / "t.zip").write_bytes(content)
    known("tiny", ("a.csv",), Remote(f"{address}/t.zip"))
    with pytest.raises(DownloadError, match=r"does not hold a\.csv|could not be unpacked"):
        fetch("tiny", progress=False)
    assert left_behind(place) == []


def test_what_is_there_needs_no_network(place, known):
    data = known("tiny", ("a.csv",), Remote("http://127.0.0.1:9/a.csv", "a.csv", "0" * 64))
    data.own_place.mkdir(parents=True)
    (data.own_place / "a.csv").write_text("mine")
    assert fetch("tiny") == data.own_place
    assert (data.own_place / "a.csv").read_text() == "mine"


def test_only_what_is_missing_is_downloaded(served, place, known):
    folder, address = served
    (folder / "b.csv").write_text("b")
    remotes = Remote("http://127.0.0.1:9/a.csv", "a.csv"), Remote(f"{address}/b.csv", "b.csv", sum_of(b"b"))
    data = known("tiny", ("a.csv",), *remotes)
    data.own_place.mkdir(parents=True)
    (data.own_place / "a.csv").write_text("mine")
    fetch("tiny", progress=False)
    assert left_behind(place) == ["Sets/tiny/a.csv", "Sets/tiny/b.csv"]


def test_what_comes_with_aeon_is_not_downloaded(place, monkeypatch):
    monkeypatch.setattr("smoothcde.data.download._download", None)
    assert fetch("JapaneseVowels").name == "JapaneseVowels"


@pytest.mark.parametrize(
    ("end", "reason"),
    [("http://127.0.0.1:9/a.csv", "no connection"), ("/absent.csv", "answer 404"), ("/cut-off.csv", "no connection")],
)
def test_no_connection_is_one_sentence_with_address_and_place(served, place, known, end, reason):
    address = end if end.startswith("http") else served[1] + end
    known("tiny", ("a.csv",), Remote(address, "a.csv"))
    with pytest.raises(DownloadError) as failed:
        fetch("tiny")
    assert str(failed.value) == (
        f"tiny could not be downloaded from {address} ({reason}); check the connection and try again, "
        f"or put a.csv from https://example.org in '{place / 'Sets' / 'tiny'}'"
    )
    assert left_behind(place) == []


def test_a_data_folder_that_cannot_be_written_is_explained(tmp_path, monkeypatch, known):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path / "file"))
    known("tiny", ("a.csv",), Remote("http://127.0.0.1:9/a.csv", "a.csv"))
    with pytest.raises(DownloadError, match=r"the data folder '.*file' cannot be written .*; point the environment"):
        fetch("tiny")


def test_unknown_names_are_answered_with_the_known():
    with pytest.raises(ValueError, match="there is no data set 'mnist'; use any of: 'physionet2012', 'JapaneseVowels'"):
        fetch("mnist")


def test_without_a_folder_of_their_own_data_lie_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("SMOOTHCDE_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / project)
    assert data_folder() == tmp_path / "smoothcde"
    assert KNOWN["PEMS-SF"].own_place == tmp_path / "smoothcde" / "UEA" / "PEMS-SF"


@pytest.mark.parametrize("data", KNOWN.values(), ids=KNOWN)
def test_every_known_set_can_be_downloaded_and_checked_where_a_sum_is_known(data):
    assert data.remotes
    for remote in data.remotes:
        assert remote.address.startswith("https://")
        assert remote.sha256 is None or re.fullmatch("[0-9a-f]{64}", remote.sha256)


@pytest.mark.parametrize("file", ["ETTm1.csv", "Outcomes-a.txt", "Outcomes-b.txt"])
def test_sums_are_those_of_the_real_files(file):
    name = "ETTm1" if file == "ETTm1.csv" else "physionet2012"
    if DATA is None or not (real := KNOWN[name].own_place / file).exists():
        pytest.skip(f"set SMOOTHCDE_DATA to a folder with {name} to check its sum")
    assert [remote.sha256 for remote in KNOWN[name].remotes if remote.file == file] == [sum_of(real.read_bytes())]
