"""Spoken words as series: frames as librosa makes them, clips of one second, and features that are kept."""

import io
import os
import tarfile
from pathlib import Path

import librosa
import numpy as np
import pytest
import soundfile

from smoothcde.data import KNOWN, MFCC, load_speech_commands, load_spoken_digits, split_three
from smoothcde.data.speech import DIGITS, WORDS

DATA = os.environ.get("SMOOTHCDE_DATA")
RNG = np.random.default_rng(0)


def sound(samples, loudness=0.3):
    """Noise with a tone in it, as 16-bit samples hold it."""
    wave = loudness * (np.sin(np.arange(samples) / 5) + 0.2 * RNG.normal(size=samples)) / 1.6
    return (np.round(wave * 2**15) / 2**15).astype(np.float32)


def librosas(clip, settings):
    return librosa.feature.mfcc(
        y=clip,
        sr=settings.sample_rate,
        n_mfcc=settings.coefficients,
        n_fft=settings.window,
        hop_length=settings.hop,
        n_mels=settings.mels,
    ).T


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Speech Commands with a few clips of the ten words, some of them too short or too long."""
    folder = tmp_path / "SpeechCommands" / "speech_commands_v0.02"
    for number, word in enumerate(WORDS):
        (folder / word).mkdir(parents=True)
        for speaker, samples in (("ann", 16_000), ("bob", 16_000), ("cid", 15_702 + 300 * (number % 2))):
            soundfile.write(folder / word / f"{speaker}_nohash_0.wav", sound(samples), 16_000)
    (folder / "_background_noise_").mkdir()
    (folder / "validation_list.txt").write_text("yes/ann_nohash_0.wav\nno/cid_nohash_0.wav\nbed/ann_nohash_0.wav\n")
    (folder / "testing_list.txt").write_text("go/bob_nohash_0.wav\nup/bob_nohash_0.wav\n")
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    return folder


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """An archive of the form of Free Spoken Digits."""
    file = tmp_path / "FreeSpokenDigits.tar.gz"
    lengths = {"7_jackson_32": 1148, "0_theo_1": 4000, "9_jackson_0": 18_262, "7_theo_5": 3358}
    with tarfile.open(file, "w:gz") as archive:
        for name, length in lengths.items():
            content = io.BytesIO()
            soundfile.write(content, sound(length), 8_000, format="WAV")
            entry = tarfile.TarInfo(f"some-folder/recordings/{name}.wav")
            entry.size = len(content.getvalue())
            archive.addfile(entry, io.BytesIO(content.getvalue()))
        archive.addfile(tarfile.TarInfo("some-folder/README.md"))
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    return lengths


def test_one_second_has_161_frames():
    # Frames are centred on samples 0, 100, ..., 16000.
    assert MFCC().frames(16_000) == 161
    assert MFCC().of([sound(16_000)])[0].shape == (161, 20)


@pytest.mark.parametrize("settings", [MFCC(), DIGITS, MFCC(window=200, mels=40, coefficients=13)])
def test_clips_taken_together_are_librosas_one_by_one(settings):
    # Loud and faint: librosa cuts off 80 dB below the loudest of a clip, which must not be that of its neighbours.
    lengths = (16_000, 1148, 3358, 7999, 8000, 401, *range(2000, 9000, 100))
    clips = [sound(length, 0.9 * 10 ** -(i % 5)) for i, length in enumerate(lengths)]
    clips.append(np.zeros(5000, dtype=np.float32))
    found = settings.of(clips)
    for clip, own in zip(clips, found, strict=True):
        assert own.dtype == np.float32
        np.testing.assert_allclose(own, librosas(clip, settings), rtol=1e-4, atol=2e-3)


def test_commands_of_another_length_than_a_second_are_left_out(commands, tmp_path):
    series, labels = load_speech_commands(cache=tmp_path)
    assert labels.tolist() == [word for word in WORDS for _ in range(2)]
    assert series.ids[:3] == ("yes/ann_nohash_0.wav", "yes/bob_nohash_0.wav", "no/ann_nohash_0.wav")
    assert (series.lengths == 161).all()
    assert (series.channels, series.channel_names[0], series.has_missing) == (20, "mfcc 0", False)
    np.testing.assert_array_equal(series[3].times, np.arange(161))
    clip, _ = soundfile.read(commands / "no" / "bob_nohash_0.wav", dtype="float32")
    np.testing.assert_allclose(series[3].values, librosas(clip, MFCC()), rtol=1e-4, atol=2e-3)


def test_the_datas_own_lists_split_it(commands, tmp_path):
    parts = {split: load_speech_commands(split, cache=tmp_path) for split in ("train", "validation", "test")}
    assert {split: len(labels) for split, (_, labels) in parts.items()} == {"train": 17, "validation": 1, "test": 2}
    assert parts["validation"][0].ids == ("yes/ann_nohash_0.wav",)
    assert parts["test"][1].tolist() == ["up", "go"]
    everything = set(load_speech_commands(cache=tmp_path)[0].ids)
    assert set().union(*(series.ids for series, _ in parts.values())) == everything


def test_digits_keep_their_lengths_and_speakers(digits, tmp_path):
    series, labels, speakers = load_spoken_digits(cache=tmp_path)
    assert series.ids == ("0_theo_1.wav", "7_jackson_32.wav", "7_theo_5.wav", "9_jackson_0.wav")
    assert labels.tolist() == [0, 7, 7, 9]
    assert speakers.tolist() == ["theo", "jackson", "theo", "jackson"]
    assert series.lengths.tolist() == [4000 // 50 + 1, 1148 // 50 + 1, 3358 // 50 + 1, 18_262 // 50 + 1]


def test_features_are_computed_once(digits, tmp_path, monkeypatch):
    first, *_ = load_spoken_digits(cache=tmp_path / "kept")
    monkeypatch.setattr(MFCC, "of", None)
    monkeypatch.setattr("smoothcde.data.mfcc.find_spec", lambda name: None)  # nor are the packages needed any more
    again, labels, _ = load_spoken_digits(cache=tmp_path / "kept")
    np.testing.assert_array_equal(again.values, first.values)
    assert again.ids == first.ids
    assert labels.tolist() == [0, 7, 7, 9]


def test_another_setting_has_another_file(digits, tmp_path):
    kept = tmp_path / "kept"
    load_spoken_digits(cache=kept)
    coarse, *_ = load_spoken_digits(MFCC(sample_rate=8_000, window=200, hop=100), cache=kept)
    assert coarse.lengths[0] == 41
    assert len(list(kept.iterdir())) == 2
    assert load_spoken_digits(cache=kept)[0].lengths[0] == 81


def test_clips_that_change_are_computed_again(commands, tmp_path):
    before, _ = load_speech_commands(words=("yes",), cache=tmp_path)
    soundfile.write(commands / "yes" / "dan_nohash_0.wav", sound(16_000), 16_000)
    after, _ = load_speech_commands(words=("yes",), cache=tmp_path)
    assert (len(before), len(after)) == (2, 3)


def test_a_damaged_file_of_features_is_made_anew(digits, tmp_path):
    first, *_ = load_spoken_digits(cache=tmp_path / "kept")
    (file,) = (tmp_path / "kept").iterdir()
    file.write_bytes(file.read_bytes()[:100])
    again, *_ = load_spoken_digits(cache=tmp_path / "kept")
    np.testing.assert_array_equal(again.values, first.values)
    assert file.stat().st_size > 100


def test_a_cache_that_cannot_be_written_costs_only_time(digits, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match=r"features could not be kept in '.*file'"):
        series, *_ = load_spoken_digits(cache=tmp_path / "file")
    assert len(series) == 4


def test_missing_packages_are_named_with_the_remedy(digits, tmp_path, monkeypatch):
    monkeypatch.setattr("smoothcde.data.mfcc.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'audio needs librosa and soundfile; .*pip install "smoothcde\[audio\]"'):
        load_spoken_digits(cache=tmp_path)


LOADERS = {"SpeechCommands": load_speech_commands, "FreeSpokenDigits": load_spoken_digits}


@pytest.mark.parametrize("name", LOADERS)
def test_absent_data_say_how_to_get_them(name, tmp_path, monkeypatch):
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as absent:
        LOADERS[name]()
    data = KNOWN[name]
    command = f"smoothcde datasets {name} --download"
    for part in (f"'{data.own_place}'", command, data.remotes[0].address, "SMOOTHCDE_DATA"):
        assert part in str(absent.value)


def test_what_is_asked_for_must_be_there(commands, tmp_path):
    with pytest.raises(ValueError, match=r"nobody says bed in '.*'; the words are down, go, left,"):
        load_speech_commands(words=("yes", "bed"), cache=tmp_path)
    with pytest.raises(ValueError, match=r"there is no version 'v1'; use any of: 'v0.02', 'v0.01'"):
        load_speech_commands(version="v1", cache=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"SpeechCommands-v0\.01 was not found"):
        load_speech_commands(version="v0.01", cache=tmp_path)
    with pytest.raises(ValueError, match="has 16000 samples per second in 1 channels; expected 8000 in one"):
        load_speech_commands(features=DIGITS, cache=tmp_path)


def test_files_that_are_no_audio_are_named(commands, tmp_path):
    (commands / "go" / "zoe_nohash_0.wav").write_text("no audio")
    with pytest.raises(ValueError, match=r"zoe_nohash_0.wav' cannot be read as audio"):
        load_speech_commands(cache=tmp_path)


def test_a_damaged_archive_is_to_be_downloaded_again(digits, tmp_path):
    file = tmp_path / "FreeSpokenDigits.tar.gz"
    file.write_bytes(file.read_bytes()[:300])
    with pytest.raises(ValueError, match=r"FreeSpokenDigits.tar.gz' is damaged .*; delete it and download it again"):
        load_spoken_digits(cache=tmp_path / "kept")


def test_the_real_commands(tmp_path):
    if DATA is None or KNOWN["SpeechCommands-v0.01"].folder is None:
        pytest.skip("set SMOOTHCDE_DATA to a folder with SpeechCommands/speech_commands_v0.01")
    series, labels = load_speech_commands(version="v0.01", cache=tmp_path)
    assert set(labels) == set(WORDS)
    assert (series.channels, set(series.lengths)) == (20, {161})
    folder = KNOWN["SpeechCommands-v0.01"].located()
    files = [file for word in WORDS for file in (folder / word).glob("*.wav")]
    assert len(series) == sum(soundfile.info(file).frames == 16_000 for file in files) < len(files)
    clip, _ = soundfile.read(Path(folder) / series.ids[-1], dtype="float32")
    np.testing.assert_allclose(series[-1].values, librosas(clip, MFCC()), rtol=1e-4, atol=2e-3)


def test_the_real_digits(tmp_path):
    if DATA is None or KNOWN["FreeSpokenDigits"].folder is None:
        pytest.skip("set SMOOTHCDE_DATA to a folder with FreeSpokenDigits.tar.gz")
    series, digits, speakers = load_spoken_digits(cache=tmp_path)
    assert len(series) == 3000
    assert np.bincount(digits).tolist() == [300] * 10
    assert np.unique(speakers, return_counts=True)[1].tolist() == [500] * 6
    assert [len(part) for part in split_three(len(series))] == [1800, 600, 600]
