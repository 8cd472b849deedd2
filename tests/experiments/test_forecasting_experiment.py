"""The experiment on ETTm1: its splits, what is dropped, and what it measures."""

import os

import numpy as np
import pytest

from smoothcde.data import load_ett
from smoothcde.experiments.forecasting import CONTEXT, Plan, Task, dropped, run_one, whole_without
from smoothcde.models import parameter_count
from smoothcde.series import SeriesSet

MONTH = 30 * 96


@pytest.fixture(scope="module")
def whole():
    """Twenty months of a random walk in seven channels, and a little more."""
    steps = np.random.default_rng(0).normal(size=(7, 20 * MONTH + 500))
    return SeriesSet.from_arrays([0.1 * steps.cumsum(axis=1)], [1e9 + 900.0 * np.arange(steps.shape[1])])


def test_the_splits_are_twelve_four_and_four_months(whole):
    task = Task.of(whole, "stamps", 0.0, 0)
    np.testing.assert_array_equal(task.training.times, whole.times[: 12 * MONTH])
    np.testing.assert_array_equal(task.validation.times, whole.times[12 * MONTH - CONTEXT : 16 * MONTH])
    np.testing.assert_array_equal(task.test.times, whole.times[16 * MONTH - CONTEXT : 20 * MONTH])


def test_the_last_value_without_drops_is_what_plain_slices_give(whole):
    found = run_one(Task.of(whole, "stamps", 0.0, 0), "last-value", Plan(), 0)
    scale = whole.values[: 12 * MONTH].std(axis=0)
    x, origins = whole.values / scale, np.arange(16 * MONTH - 1, 20 * MONTH - 24)
    errors = np.stack([x[origins + k] - x[origins] for k in range(1, 25)])
    assert found["windows"] == len(origins) == 4 * MONTH - 24 + 1
    assert found["mse"] == pytest.approx((errors**2).mean(), rel=1e-5)
    assert found["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-5)


def test_days_go_whole_and_stamps_by_chance(whole):
    days = dropped(whole.times, "days", 0.3, 1)[: 200 * 96].reshape(200, 96)
    assert (days.all(axis=1) | ~days.any(axis=1)).all()
    for reading in ("stamps", "days"):
        gone = dropped(whole.times, reading, 0.3, 1)
        assert gone.mean() == pytest.approx(0.3, abs=0.05)
        assert not np.array_equal(gone, dropped(whole.times, reading, 0.3, 2))
        kept = whole_without(whole, gone)
        assert len(kept.times) == (~gone).sum()
        assert kept.end == whole.end
    with pytest.raises(ValueError, match="there is no reading 'weeks'; use any of: 'stamps', 'days'"):
        dropped(whole.times, "weeks", 0.3, 0)


def test_histories_without_an_observation_have_no_forecast(whole):
    found = run_one(Task.of(whole, "days", 0.3, 1), "last-value", Plan(), 1)
    assert found["without_history"] > 0
    assert found["windows"] + found["without_history"] == 4 * MONTH - 24 + 1


@pytest.mark.parametrize("clock", [False, True])
def test_models_are_of_one_size(clock):
    plan = Plan(clock=clock)
    reference = parameter_count(plan._build("mvc-gp", plan.hidden))
    for name in ("cubic", "gru"):
        assert parameter_count(plan._build(name, plan.hidden_of(name))) == pytest.approx(reference, rel=0.02)


@pytest.mark.skipif("SMOOTHCDE_DATA" not in os.environ, reason="SMOOTHCDE_DATA names no folder of recordings")
def test_ettm1_is_read_as_it_is():
    series = load_ett("ETTm1")
    assert (len(series.times), series.channels, series.median_step) == (69680, 7, 900.0)
    np.testing.assert_allclose(series.values[0, [0, 6]], [5.827, 30.531], rtol=1e-6)
    assert series.channel_names[-1] == "OT"


def test_without_the_file_the_place_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("SMOOTHCDE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"ETTm1 was not found in '.*ETT'; `smoothcde datasets ETTm1 --"):
        load_ett()
    with pytest.raises(FileNotFoundError, match=r"or put ETTm1\.csv from https"):
        load_ett()
    with pytest.raises(ValueError, match="there is no recording 'ETTx'; use any of: 'ETTm1'"):
        load_ett("ETTx")
