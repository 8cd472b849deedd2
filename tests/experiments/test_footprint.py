"""Parameters and peak memory of a training step, in a process of its own."""

import subprocess

import pytest

from smoothcde.experiments.footprint import PAPER_DATA, Footprint, footprint, peak_memory, table_of


def test_sizes_alone_start_no_process(monkeypatch):
    monkeypatch.setattr("subprocess.run", None)
    line = footprint("UWaveGestureLibrary", "gru", memory=False)
    assert line.peak is None
    assert line.reference == PAPER_DATA["UWaveGestureLibrary"].published - 3  # less a bias per view
    assert line.parameters == pytest.approx(line.reference, rel=0.01)


def test_memory_is_that_of_weights_and_activations():
    peak = peak_memory("SpokenArabicDigits", "gru", hidden=485, batch_size=128)
    weights = 4 * 4e-6 * 752_730  # with gradients and the optimiser's two moments
    gates = 4e-6 * 128 * 65 * 3 * 485  # kept at each stamp of each series for the backward pass
    assert weights + gates < peak < 20 * (weights + gates)


def test_a_failure_in_the_process_is_told(monkeypatch):
    failed = subprocess.CompletedProcess([], returncode=1, stdout="", stderr="out of memory")
    monkeypatch.setattr("subprocess.run", lambda *arguments, **how: failed)
    with pytest.raises(RuntimeError, match="measuring 'gru' on UWaveGestureLibrary failed:\nout of memory"):
        peak_memory("UWaveGestureLibrary", "gru", 8, 2)


def test_unknown_data_are_answered_with_all_names():
    with pytest.raises(ValueError, match="there is no data set 'Vowels'; use any of: 'CharacterTrajectories', "):
        footprint("Vowels", "gru")


def test_the_table_has_a_row_per_model():
    lines = [Footprint("D", "gru", 10, 990, 1000, 12.4), Footprint("D", "mvc-gp", 8, 1000, 1000, None)]
    columns = {column.header: list(column.cells) for column in table_of(lines).columns}
    assert columns["model"] == ["gru", "mvc-gp"]
    assert columns["off mvc-gp"] == ["-1.00%", "+0.00%"]
    assert columns["peak memory"] == ["12 MB", "-"]
