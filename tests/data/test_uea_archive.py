"""Data sets of the UEA archive, from aeon's own package and from a folder."""

import os
from pathlib import Path

import numpy as np
import pytest

from smoothcde.data import load_uea

DATA = os.environ.get("SMOOTHCDE_DATA")


@pytest.mark.parametrize(("split", "count"), [("train", 270), ("test", 370), ("all", 640)])
def test_japanese_vowels_come_with_aeon(split, count):
    series, labels = load_uea("JapaneseVowels", split)
    assert (len(series), len(labels), series.channels) == (count, count, 12)
    assert sorted(set(labels)) == [str(speaker) for speaker in range(1, 10)]
    assert not series.has_missing


def test_series_keep_their_own_lengths():
    series, _ = load_uea("JapaneseVowels", "all")
    assert (series.lengths.min(), series.lengths.max()) == (7, 29)


def test_basic_motions_come_with_aeon():
    series, labels = load_uea("BasicMotions")
    assert (len(series), series.channels) == (40, 6)
    assert (series.lengths == 100).all()
    assert len(set(labels)) == 4


def test_all_is_train_then_test():
    series, labels = load_uea("JapaneseVowels", "all")
    for split, part in (("train", slice(0, 270)), ("test", slice(270, 640))):
        own, own_labels = load_uea("JapaneseVowels", split)
        np.testing.assert_array_equal(series[part].values, own.values)
        np.testing.assert_array_equal(labels[part], own_labels)


def test_a_set_that_is_not_there_says_where_to_put_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as missing:
        load_uea("NoSuchSet", "all")
    message = str(missing.value)
    assert str(tmp_path / "UEA" / "NoSuchSet") in message
    for part in ("timeseriesclassification.com", "NoSuchSet_TRAIN.ts", "NoSuchSet_TEST.ts", "SMOOTHCDE_DATA"):
        assert part in message
    assert "--download" not in message  # only known sets are downloaded


def test_a_known_set_that_is_not_there_says_how_to_download_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as missing:
        load_uea("PEMS-SF")
    address = "https://timeseriesclassification.com/aeon-toolkit/PEMS-SF.zip"
    command = f"`smoothcde datasets PEMS-SF --download` fetches it from {address}"
    assert f"PEMS-SF was not found in '{tmp_path / 'UEA' / 'PEMS-SF'}'; {command}" in str(missing.value)


def test_a_set_of_many_channels_in_the_form_of_pems_sf(monkeypatch, tmp_path):
    folder = tmp_path / "UEA" / "PEMS-SF"
    folder.mkdir(parents=True)
    values = np.random.default_rng(0).random((4, 963, 144)).round(4)
    head = "@problemName PEMS-SF\n@timeStamps false\n@missing false\n@univariate false\n@dimensions 963\n"
    head += "@equalLength true\n@seriesLength 144\n@classLabel true 1.0 2.0 3.0 4.0 5.0 6.0 7.0\n@data\n"
    for part, days in (("TRAIN", values[:3]), ("TEST", values[3:])):
        rows = [
            ":".join([",".join(map(str, channel)) for channel in day] + [f"{i + 1}.0"]) for i, day in enumerate(days)
        ]
        (folder / f"PEMS-SF_{part}.ts").write_text(head + "\n".join(rows) + "\n")
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    series, labels = load_uea("PEMS-SF", "all")
    assert (series.channels, set(series.lengths)) == (963, {144})
    assert labels.tolist() == ["1.0", "2.0", "3.0", "1.0"]
    np.testing.assert_array_equal(series.values.reshape(4, 144, 963).transpose(0, 2, 1), values)


def test_an_unset_folder_is_fine_for_what_comes_with_aeon(monkeypatch):
    monkeypatch.delenv("SMOOTHCDE_DATA", raising=False)
    assert len(load_uea("JapaneseVowels")[0]) == 270
    with pytest.raises(FileNotFoundError, match="The environment variable SMOOTHCDE_DATA names another data folder"):
        load_uea("NoSuchSet", "all")


def test_the_folder_comes_before_aeon(monkeypatch, tmp_path):
    folder = tmp_path / "UEA" / "JapaneseVowels"
    folder.mkdir(parents=True)
    lines = ["@problemName Tiny", "@timestamps false", "@missing true", "@univariate false", "@dimension 2"]
    lines += ["@equalLength false", "@classLabel true a b", "@data", "1,2,?:4,5,6:a", "7,8:9,?:b", ""]
    (folder / "JapaneseVowels_TRAIN.ts").write_text("\n".join(lines))
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    series, labels = load_uea("JapaneseVowels")
    assert labels.tolist() == ["a", "b"]
    assert series.lengths.tolist() == [3, 2]
    np.testing.assert_array_equal(series.values, [[1, 4], [2, 5], [np.nan, 6], [7, 9], [8, np.nan]])


def test_an_unknown_split_is_answered_with_all_splits(monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)  # as users run it, without type checks
    with pytest.raises(ValueError, match="split is 'validation'; use any of: 'train', 'test', 'all'"):
        load_uea("JapaneseVowels", "validation")


@pytest.mark.parametrize(
    ("name", "count", "channels", "classes", "longest"),
    [
        ("CharacterTrajectories", 2858, 3, 20, 182),
        ("SpokenArabicDigits", 8798, 13, 10, 93),
        ("UWaveGestureLibrary", 440, 3, 8, 315),
    ],
)
def test_the_papers_sets_are_read_from_the_folder(name, count, channels, classes, longest):
    if DATA is None or not (Path(DATA) / "UEA" / name).exists():
        pytest.skip(f"set SMOOTHCDE_DATA to a folder with UEA/{name} to read it")
    series, labels = load_uea(name, "all")
    assert (series.channels, len(set(labels)), series.lengths.max()) == (channels, classes, longest)
    assert len(series) == len(labels) == pytest.approx(count, rel=0.02)  # copies in use differ by a few series
