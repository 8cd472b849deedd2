"""Where a run's figures are seen: TensorBoard, MLflow, and a bar on terminals."""

import io
import sys

import pytest
from rich.console import Console
from small_training import LABELS, run, trends

from smoothcde.training import Recipe, TrainingError
from smoothcde.training.progress import ProgressBar

SHORT = Recipe(epochs=3, batch_size=12)
HELD = {"validation": (trends(seed=1), LABELS)}


class Stop(Exception):
    """Stands for a crash."""


def crash(epoch, step, loss, nfe):
    if (epoch, step) == (2, 1):
        raise Stop


def curves_of(directory):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(directory / "tensorboard"))
    found.Reload()
    return {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_tensorboard_has_a_curve_per_metric(tmp_path):
    record, _ = run(SHORT, directory=tmp_path, loggers=["tensorboard"], **HELD)
    curves = curves_of(tmp_path)
    assert set(curves) == {"loss", "nfe", "learning_rate", "seconds", "validation/loss", "validation/accuracy"}
    assert curves["loss"] == [(row["epoch"], pytest.approx(row["loss"])) for row in record.epochs]


def test_tensorboard_shows_each_epoch_of_a_resumed_run_once(tmp_path):
    with pytest.raises(Stop):
        run(SHORT, directory=tmp_path, loggers=["tensorboard"], on_step=crash, **HELD)
    record, _ = run(SHORT, directory=tmp_path, loggers=["tensorboard"], **HELD)
    assert curves_of(tmp_path)["loss"] == [(row["epoch"], pytest.approx(row["loss"])) for row in record.epochs]


class TestMLflow:
    @pytest.fixture(autouse=True)
    def local(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")

    def only_run(self, experiment="smoothcde"):
        from mlflow import MlflowClient

        client = MlflowClient()
        (found,) = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
        return client, found

    def test_a_run_has_its_recipe_and_its_metrics(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "vowels")
        record, _ = run(SHORT, directory=tmp_path / "run", loggers=["mlflow"], **HELD)
        client, found = self.only_run("vowels")
        assert found.info.status == "FINISHED"
        assert found.data.params["learning_rate"] == "0.002"
        history = client.get_metric_history(found.info.run_id, "validation_accuracy")
        assert [(m.step, m.value) for m in history] == [(e["epoch"], e["validation_accuracy"]) for e in record.epochs]

    def test_a_resumed_run_is_the_same_run(self, tmp_path):
        with pytest.raises(Stop):
            run(SHORT, directory=tmp_path / "run", loggers=["mlflow"], on_step=crash, **HELD)
        _, failed = self.only_run()
        assert failed.info.status == "FAILED"
        run(SHORT, directory=tmp_path / "run", loggers=["mlflow"], **HELD)
        client, found = self.only_run()
        assert found.info.status == "FINISHED"
        assert [m.step for m in client.get_metric_history(found.info.run_id, "loss")] == [1, 2, 3]


@pytest.mark.parametrize(("name", "module"), [("tensorboard", "torch.utils.tensorboard"), ("mlflow", "mlflow")])
def test_a_missing_package_is_named_with_the_command_that_brings_it(tmp_path, monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"logging to {name} needs .* run: pip install 'smoothcde\[{name}\]'"):
        run(SHORT, directory=tmp_path, loggers=[name])


def test_unknown_loggers_and_logs_without_a_place_are_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no logger 'wandb'; use any of: 'tensorboard', 'mlflow'"):
        run(SHORT, directory=tmp_path, loggers=["wandb"])
    with pytest.raises(ValueError, match="the logger 'mlflow' needs a directory; give one"):
        run(SHORT, loggers=["mlflow"])


class TestProgress:
    def shown(self, terminal, **arguments):
        output = io.StringIO()
        console = Console(file=output, force_terminal=terminal, width=120)
        run(SHORT, progress=True, console=console, title="vowels", **arguments)
        return output.getvalue()

    def test_the_bar_tells_epoch_loss_score_cost_and_time_left(self):
        shown = self.shown(True, name="mvc-gp", **HELD)
        for words in ("vowels", "epoch 3/3", "loss ", "accuracy ", "NFE ", "left"):
            assert words in shown

    def test_models_without_a_solver_have_no_nfe_to_tell(self):
        assert "NFE" not in self.shown(True)

    def test_nothing_is_shown_where_there_is_no_terminal(self):
        assert self.shown(False, **HELD) == ""

    def test_nothing_is_shown_unless_asked_for(self, capsys):
        run(SHORT)
        assert capsys.readouterr() == ("", "")

    def test_the_bar_starts_where_a_resumed_run_does(self):
        output = io.StringIO()
        with ProgressBar(Console(file=output, force_terminal=True, width=120), "", 4, 5, done=10) as bar:
            bar.step(3, 0.5, 0.0)
            assert bar.done == 11
        assert "training" in output.getvalue()

    def test_the_terminal_is_given_back_when_training_fails(self):
        output = io.StringIO()
        console = Console(file=output, force_terminal=True, width=120)

        def fail(*told):
            raise TrainingError("no")

        with pytest.raises(TrainingError):
            run(SHORT, progress=True, console=console, on_step=fail)
        assert output.getvalue().count("\x1b[?25l") == output.getvalue().count("\x1b[?25h") == 1  # cursor hidden, shown
