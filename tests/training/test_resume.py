"""A run that is killed goes on where it was, and ends as if nothing had happened."""

import csv
import json
import os
import signal
import sys
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import safetensors
import torch
from small_training import LABELS, RECIPE, model_of, run, train_and_report, trends, weights_of

from smoothcde.training import CheckpointError, CrossEntropy, Recipe, SquaredError, train
from smoothcde.training.checkpoint import FILE

SHORT = Recipe(epochs=3, batch_size=8, seed=1, dropout=0.2)


class Stop(Exception):
    """Stands for a crash."""


def crash_at(*moment):
    def on_step(epoch, step, loss, nfe):
        if (epoch, step) == moment:
            raise Stop

    return on_step


def interrupted(directory, *moment, **arguments):
    with pytest.raises(Stop):
        run(SHORT, directory=directory, on_step=crash_at(*moment), **arguments)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_kill_9_in_the_middle_of_epochs_changes_nothing(tmp_path):
    """Three kills at random moments, whether checkpoints come at the end of epochs only or after every step."""
    context = get_context("forkserver")  # imports torch once; each process is still one of its own
    context.set_forkserver_preload(["smoothcde.training"])
    answers, steps = context.Queue(), context.Value("i", 0)
    moments = []

    def start(directory, checkpoint_seconds):
        steps.value = 0
        process = context.Process(target=train_and_report, args=(directory, checkpoint_seconds, steps, answers))
        process.start()
        return process

    def finish(process):
        answer = answers.get(timeout=60)
        process.join()
        assert process.exitcode == 0
        return answer

    losses, best_epoch, expected = finish(start(tmp_path / "undisturbed", 60.0))
    anywhere = np.random.default_rng()
    for name, checkpoint_seconds in (("by-epoch", 60.0), ("by-step", 0.0)):
        for kill in range(3):
            process = start(tmp_path / name, checkpoint_seconds)
            # Of six epochs of five steps; the first kill comes after an epoch: there is something to go on from.
            moments.append((int(anywhere.integers(2 if kill else 6, 9)), float(anywhere.uniform(0, 0.01))))
            while steps.value < moments[-1][0]:
                assert process.exitcode is None
                time.sleep(0.001)
            time.sleep(moments[-1][1])
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            assert process.exitcode == -signal.SIGKILL, moments
        again, best_again, weights = finish(start(tmp_path / name, checkpoint_seconds))
        assert steps.value < 30  # it did go on, not begin anew
        assert (again, best_again) == (losses, best_epoch), moments
        for key, value in expected.items():
            np.testing.assert_array_equal(weights[key], value, err_msg=f"{key} after kills at {moments}")


@pytest.mark.parametrize("moment", [(1, 1), (1, 3), (2, 2), (3, 3)])
@pytest.mark.parametrize("checkpoint_seconds", [60.0, 0.0])
def test_a_crash_anywhere_changes_nothing(tmp_path, moment, checkpoint_seconds):
    held = {"validation": (trends(seed=1), LABELS), "checkpoint_seconds": checkpoint_seconds}
    record, model = run(SHORT, directory=tmp_path / "one", **held)
    interrupted(tmp_path / "two", *moment, **held)
    told = []
    again, resumed = run(SHORT, directory=tmp_path / "two", on_step=lambda *step: told.append(step[:2]), **held)
    # The crash comes before its step is saved. By epochs, the steps of the epoch under way are done again.
    done = (moment[0] - 1) * 3 + (0 if checkpoint_seconds else moment[1] - 1)
    assert len(told) == 9 - done
    assert again.loss == record.loss
    assert again.best_epoch == record.best_epoch
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), resumed.parameters(), strict=True))


def test_a_directory_does_not_change_a_run(tmp_path):
    _, with_directory = run(SHORT, directory=tmp_path)
    _, without = run(SHORT)
    assert all(torch.equal(a, b) for a, b in zip(with_directory.parameters(), without.parameters(), strict=True))


def test_a_finished_run_is_not_repeated(tmp_path):
    held = {"validation": (trends(seed=1), np.roll(LABELS, 1))}
    record, model = run(SHORT, directory=tmp_path, **held)
    told = []
    again, fresh = run(SHORT, directory=tmp_path, on_step=lambda *step: told.append(step), **held)
    assert not told
    assert again == record
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), fresh.parameters(), strict=True))


def test_metrics_stand_in_a_file_each_epoch_once(tmp_path):
    held = {"validation": (trends(seed=1), LABELS)}
    interrupted(tmp_path, 2, 2, **held)
    with open(tmp_path / "metrics.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 1
    record, _ = run(SHORT, directory=tmp_path, **held)
    with open(tmp_path / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{name: float(value) for name, value in row.items()} for row in rows] == record.epochs
    names = ["epoch", "loss", "nfe", "learning_rate", "validation_loss", "validation_accuracy", "seconds"]
    assert list(rows[0]) == names
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]


def test_nothing_is_left_beside_the_two_files(tmp_path):
    run(SHORT, directory=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE, "metrics.csv"]


class TestCheckpointsThatDoNotFit:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"recipe": replace(SHORT, learning_rate=0.1)}, "recipe.learning_rate was 0.002 and is 0.1"),
            ({"recipe": replace(SHORT, epochs=9, seed=2)}, "recipe.epochs was 3 and is 9; recipe.seed was 1 and is 2"),
            ({"model": model_of("gru", hidden=7)}, "weights of the model differ"),
            ({"series": trends(seed=2)}, "training data differ"),
            ({"targets": np.roll(LABELS, 1)}, "training data differ"),
            ({"weights": np.linspace(1, 2, 24)}, "training data differ"),
            ({"validation": (trends(), LABELS)}, "validation data differ"),
            ({"objective": CrossEntropy("auroc")}, "objectives differ"),
        ],
    )
    def test_another_run_is_refused(self, tmp_path, change, words):
        interrupted(tmp_path, 2, 1)
        given = {"model": model_of("gru"), "series": trends(), "targets": LABELS, "objective": CrossEntropy()}
        with pytest.raises(CheckpointError, match="holds a run that began otherwise: ") as refused:
            train(**({**given, "recipe": SHORT} | change), directory=tmp_path)
        assert words in str(refused.value)
        assert "or another directory, or delete this one" in str(refused.value)

    def test_a_flipped_byte_is_refused(self, tmp_path):
        interrupted(tmp_path, 2, 1)
        content = bytearray((tmp_path / FILE).read_bytes())
        content[-5] ^= 1
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(CheckpointError, match=r"is damaged .*; delete it to start anew"):
            run(SHORT, directory=tmp_path)

    @pytest.mark.parametrize("content", [b"", b"\x80\x04something pickled", b"\x10\0\0\0\0\0\0\0" + b"{}" + b" " * 14])
    def test_another_file_is_refused(self, tmp_path, content):
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(CheckpointError, match="is no checkpoint of a training run; delete it to start anew"):
            run(SHORT, directory=tmp_path)

    def test_a_half_written_one_is_not_looked_at(self, tmp_path):
        interrupted(tmp_path, 2, 1)
        (tmp_path / f".{FILE}.tmp").write_bytes(b"half")
        record, _ = run(SHORT, directory=tmp_path)
        assert len(record.epochs) == 3


def test_a_checkpoint_is_tensors_and_json(tmp_path):
    _, model = run(SHORT, directory=Path(tmp_path), validation=(trends(seed=1), LABELS))
    with safetensors.safe_open(tmp_path / FILE, framework="pt") as opened:
        header = json.loads(opened.metadata()["smoothcde"])
        names = set(opened.keys())
        best = {name: opened.get_tensor(f"best.{name}") for name in weights_of(model)}
    assert header["state"]["record"]["best_epoch"] in (1, 2, 3)
    assert {f"model.{name}" for name in best} < names
    assert "optimizer.0.exp_avg" in names
    assert all(torch.equal(best[name], value) for name, value in weights_of(model).items())


def test_regression_resumes_too(tmp_path):
    def slopes(**arguments):
        return train(model_of("gru", outputs=1), trends(), LABELS - 1.0, SquaredError(), SHORT, **arguments)

    expected = slopes()
    with pytest.raises(Stop):
        slopes(directory=tmp_path, on_step=crash_at(2, 2))
    assert slopes(directory=tmp_path).loss == expected.loss


def test_the_recipe_of_the_kill_test_uses_everything_random():
    assert RECIPE.dropout > 0
    assert len(LABELS) % RECIPE.batch_size


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("linear", {}), ("cubic", {})),
        (("gp", {}), ("gp", {"bandwidths": (0.4,)})),
        (("gp", {}), ("gp", {"noise": 0.5})),
        (("gp", {}), ("gp", {"rtol": 0.1})),
    ],
    ids=["path", "bandwidth", "noise", "tolerance"],
)
def test_a_model_with_the_same_weights_and_other_settings_is_another_run(tmp_path, first, second):
    train(model_of(first[0], **first[1]), trends(), LABELS, CrossEntropy(), SHORT, directory=tmp_path)
    with pytest.raises(CheckpointError, match="settings of the model differ"):
        train(model_of(second[0], **second[1]), trends(), LABELS, CrossEntropy(), SHORT, directory=tmp_path)
