"""Several processes train as one does: they share each batch, however unequal the work."""

import os
import socket
import subprocess
import sys
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from small_training import LABELS, in_process, model_of, numbers_of, trends

from smoothcde.series import SeriesSet
from smoothcde.training import CrossEntropy, Recipe, TrainingError, make_fabric, train
from smoothcde.training.processes import share_of

ROOT = Path(__file__).parents[2]
# 24 series by 7 make steps of 6; two processes take three each. 13 epochs are 52 steps.
CURVE = Recipe(epochs=13, batch_size=7, learning_rate=5e-3, dropout=0.2)
# Steps of 5, 5, 5, 5 and 4, so shares of 3 and 2; in double precision, where only a wrong weight could tell.
UNEQUAL = replace(CURVE, epochs=2, batch_size=5, precision="64-true")


def smooth_and_wild():
    """Two series: one of a few solver steps, one of many."""
    time = np.linspace(0, 1, 60)
    return SeriesSet.from_arrays([[0.01 * time], [5 * np.sin(90 * time**2)]])


def curve(recipe, **arguments):
    """Losses of steps, record and final weights."""
    losses, model = [], model_of("mvc-gp", bandwidths=(0.1, 0.3), diversity=0.1, rtol=1e-4, atol=1e-4)
    weights = np.linspace(0.5, 2, 24)
    record = train(
        model,
        trends(),
        LABELS,
        CrossEntropy(),
        recipe,
        weights=weights,
        validation=(trends(seed=1)[:5], LABELS[:5]),
        on_step=lambda epoch, step, loss, nfe: losses.append(loss),
        **arguments,
    )
    return losses, [(row["validation_loss"], row["nfe"]) for row in record.epochs], numbers_of(model)


def unequal_work():
    """Evaluations that this process made in two steps, and the losses of the steps."""
    model, mine, losses = model_of("linear", outputs=2, time_scale=59.0, max_steps=5000, knots="step_over"), [], []
    solve = model.solve
    model.solve = lambda batch: (outcome := solve(batch), mine.append(int(outcome.nfe.sum())))[0]
    # In double precision: in single, a rounding can decide whether the solver steps over a wave, alone as well.
    recipe = Recipe(epochs=2, batch_size=2, precision="64-true")
    train(
        model,
        smooth_and_wild(),
        np.array([0, 1]),
        CrossEntropy(),
        recipe,
        on_step=lambda epoch, step, loss, nfe: losses.append(loss),
    )
    return mine, losses


def one_series_for_two():
    """A step with fewer series than processes."""
    series, labels = trends()[:3], LABELS[:3]
    model = model_of("gru")
    record = train(model, series, labels, CrossEntropy(), Recipe(epochs=2, batch_size=1), validation=(series, labels))
    return record.loss, numbers_of(model)


def failing_on_one_side():
    """The sentence each process gets when the share of one cannot be solved."""
    try:
        train(
            model_of("linear", outputs=2, time_scale=59.0, max_steps=20, knots="step_over"),
            smooth_and_wild(),
            np.array([0, 1]),
            CrossEntropy(),
            Recipe(epochs=1, batch_size=2),
        )
    except TrainingError as error:
        return str(error)


def everything(directory):
    """All of the above in one start of the processes, which is what takes the time."""
    return {
        "curve": curve(CURVE, directory=directory),
        "unequal shares": curve(UNEQUAL),
        "micro-batches": curve(replace(UNEQUAL, micro_batch=2)),
        "unequal work": unequal_work(),
        "one series for two": one_series_for_two(),
        "failing": failing_on_one_side(),
    }


def answers_of(world, directory):
    """The answers of that many processes, joined by gloo."""
    context = get_context("forkserver")  # imports torch once, and without the type checks that tests run under
    context.set_forkserver_preload(["smoothcde.training"])
    answers = context.Queue()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        context.Process(target=in_process, args=(rank, world, port, answers, everything, directory))
        for rank in range(world)
    ]
    for process in processes:
        process.start()
    try:
        found = dict(answers.get(timeout=120) for _ in processes)
    finally:
        for process in processes:
            process.join(timeout=10)
            process.kill()
    return [found[rank] for rank in range(world)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return answers_of(1, tmp_path_factory.mktemp("alone"))[0]


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    return tmp_path_factory.mktemp("together")


@pytest.fixture(scope="module")
def two(together):
    return answers_of(2, together)


def assert_close(one, two, tolerance):
    np.testing.assert_allclose(one[0], two[0], rtol=0, atol=tolerance)
    (losses, nfe), (other_losses, other_nfe) = np.transpose(one[1]), np.transpose(two[1])
    np.testing.assert_allclose(losses, other_losses, rtol=1e-2)
    # Now and then rounding takes one of the rows over the edge of acceptance: a step more or less in one of eight.
    np.testing.assert_allclose(nfe, other_nfe, rtol=0, atol=1.0)
    for name, value in one[2].items():
        np.testing.assert_allclose(value, two[2][name], rtol=0, atol=100 * tolerance, err_msg=name)


def test_the_loss_curve_is_that_of_one_process(alone, two, together):
    losses = alone["curve"][0]
    assert len(losses) >= 50
    assert losses[-1] < 0.8 * losses[0]
    assert_close(alone["curve"], two[0]["curve"], 1e-4)
    assert two[0]["curve"][0] == two[1]["curve"][0]
    assert sorted(path.name for path in together.iterdir()) == ["checkpoint.safetensors", "metrics.csv"]


def test_shares_of_unequal_size_count_by_their_size(alone, two):
    assert_close(alone["unequal shares"], two[0]["unequal shares"], 2e-7)  # reported in single precision


def test_micro_batches_are_summed_before_processes_meet(alone, two):
    assert_close(alone["unequal shares"], two[0]["micro-batches"], 2e-7)


def test_both_end_with_the_same_weights(two):
    for name, value in two[0]["curve"][2].items():
        np.testing.assert_array_equal(value, two[1]["curve"][2][name])


def test_a_process_with_more_solver_steps_does_not_hang_the_other(alone, two):
    (mine, losses), (theirs, same) = (answers["unequal work"] for answers in two)
    assert losses == same
    assert all(max(a, b) > 5 * min(a, b) for a, b in zip(mine, theirs, strict=True)), (mine, theirs)
    np.testing.assert_allclose(losses, alone["unequal work"][1], atol=1e-6)


def test_fewer_series_than_processes_is_no_matter(alone, two):
    losses, weights = alone["one series for two"]
    found, others = two[1]["one series for two"]
    np.testing.assert_allclose(found, losses, atol=1e-5)
    for name, value in weights.items():
        np.testing.assert_allclose(value, others[name], atol=1e-4, err_msg=name)


def test_what_fails_in_one_process_stops_both_in_words(two):
    seen, told = sorted((answers["failing"] for answers in two), key=lambda words: "loss is nan" in words)
    assert seen.startswith("the solver did not finish in epoch 1, step 1, on series 1; The step limit was reached")
    assert told.startswith("the loss is nan in epoch 1, step 1, on one of the series ")


@pytest.mark.parametrize(
    ("series", "rank", "own", "stand_in"), [(8, 2, [6, 7], False), (2, 1, [1], False), (2, 2, [0], True)]
)
def test_a_batch_is_split_among_processes(series, rank, own, stand_in, monkeypatch):
    fabric = make_fabric("cpu")
    monkeypatch.setattr(type(fabric), "world_size", 3)
    monkeypatch.setattr(type(fabric), "global_rank", rank)
    found, stands_in = share_of(np.arange(series), fabric)
    assert (found.tolist(), stands_in) == (own, stand_in)


def test_one_process_is_the_default(monkeypatch):
    for name in ("TORCHELASTIC_RUN_ID", "LT_CLI_USED"):
        monkeypatch.delenv(name, raising=False)
    fabric = make_fabric("cpu")
    assert (fabric.world_size, fabric.device.type, fabric.is_global_zero) == (1, "cpu", True)


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
FABRIC = [str(Path(sys.executable).with_name("fabric")), "run", "--accelerator=cpu", "--strategy=ddp", "--devices=2"]


@pytest.mark.parametrize("launcher", [TORCHRUN, FABRIC], ids=["torchrun", "fabric run"])
def test_the_example_runs_in_two_processes(tmp_path, launcher):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    script = [str(ROOT / "examples" / "two_processes.py"), "--epochs", "1", "--out", str(tmp_path)]
    done = subprocess.run([*launcher, *script], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("validation accuracy") == 1  # the first process speaks for all
    assert "2 processes" in done.stdout
    assert (tmp_path / "metrics.csv").read_text().count("\n") == 2
