"""Plans of steps: how they are followed, found, kept, and refused."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from smoothcde.models import FrozenModel
from smoothcde.series import SeriesSet
from smoothcde.solve import SolveError, StepPlan
from smoothcde.solve.plan import distance
from smoothcde.solve.tableaus import TABLEAUS

sys.path.append(str(Path(__file__).parent.parent / "models"))
from small_models import small_model

TOLERANCE = 1e-4


def wavy(n=40, seed=0, roughness=1.0):
    """Series of two channels with own stamps, unequal windows and missing values."""
    generator = np.random.default_rng(seed)
    values, times = [], []
    for _ in range(n):
        t = np.sort(generator.uniform(0, generator.uniform(3, 5.4), size=generator.integers(12, 30)))
        waves = np.sin(2 * np.outer(generator.uniform(0.5, 1.5, 2), t) + generator.uniform(0, 6, (2, 1)))
        waves[generator.random(waves.shape) < 0.2] = np.nan
        values.append(roughness * waves)
        times.append(t + generator.uniform(-3, 3))
    return SeriesSet.from_arrays(values, times)


def model(name="mvc-gp", **settings):
    bandwidths = (0.2, 0.5) if name.startswith("mv") else (0.3,)
    return small_model(name, **({"bandwidths": bandwidths, "rtol": TOLERANCE, "atol": TOLERANCE} | settings))


@pytest.fixture(scope="module")
def planned():
    found = model()
    return found, StepPlan.calibrate(found, wavy(), coverage=0.95)


def test_a_series_that_the_adaptive_solver_cannot_solve_either_keeps_its_number(planned):
    found, plan = planned
    series = wavy(6, seed=3)
    values = series.values.copy()
    values[series.offsets[4] : series.offsets[5]] *= 1e4
    rough = replace(series, values=values).batch(dtype=torch.float64)
    with pytest.raises(SolveError, match="rows 4") as refused:
        FrozenModel(found, plan).solve(rough, options=replace(found.options, max_steps=20), fallback="adaptive")
    assert len(refused.value.solution.codes) == 12
    assert set(np.flatnonzero(refused.value.solution.codes) % 6) == {4}


def test_following_a_plan_is_textbook_runge_kutta():
    """Against the same steps in plain NumPy, row by row, views of unlike step counts."""
    found = model("mv-gp")
    batch = wavy(3).batch(dtype=torch.float64)
    plan = StepPlan(((0.2, 0.5, 1.0), (0.6, 1.0)), (1.0, 1.0), "dopri5", 1e-3, 1e-3, 1.0, 1.0, 3)
    tableau = TABLEAUS["dopri5"]
    with torch.no_grad():
        begun = found.begin(batch)
        state, ratios = plan.follow(begun.term, begun.z0)
        for row in range(6):
            view, path = row // 3, begun.path.select([row])
            rows = begun.term.field
            z, t0, window = begun.z0[row].numpy(), float(path.start), float(path.end - path.start)

            def slope(z, t, view=view, path=path, rows=rows):
                weights = [getattr(rows, layer) for layer in ("inner", "outer")]
                (w1, b1), (w2, b2) = [(x.weight[view].numpy(), x.bias[view].numpy()) for x in weights]
                matrix = np.tanh(np.tanh(z @ w1 + b1) @ w2 + b2).reshape(2, -1)
                return path.derivative(t)[0].numpy() @ matrix

            for step, (begin, end) in enumerate(zip((0.0, *plan.ends[view]), plan.ends[view], strict=False)):
                h, k = (end - begin) * window, []
                for c, a in zip(tableau.nodes, ([], *tableau.stages), strict=True):
                    y = z + h * sum((x * s for x, s in zip(a, k, strict=True)), np.zeros_like(z))
                    k.append(slope(y, min(t0 + begin * window + c * h, float(path.end))))
                error = h * sum(x * s for x, s in zip(tableau.error, k, strict=True))
                ratio = np.sqrt(np.mean((error / (1e-3 + 1e-3 * np.maximum(np.abs(z), np.abs(y)))) ** 2))
                assert_allclose(ratios[row, step], ratio, rtol=1e-6, atol=1e-12)
                z = y
            assert_allclose(state[row], z, rtol=1e-9, atol=1e-11)
        assert ratios[3:, 2].abs().max() == 0  # the second view has two steps only


@pytest.mark.parametrize("name", ["mv-gp", "mvc-gp", "mvc-kernel", "mv-kernel", "gp", "kernel"])
def test_unseen_series_of_the_same_kind_are_within_ten_tolerances_of_the_adaptive_solution(name):
    found = model(name, bandwidths=(0.4, 0.8) if name.startswith("mv") else (0.4,), time_channel=True)
    plan = StepPlan.calibrate(found, wavy(), coverage=0.9)
    assert plan.covered >= 0.9
    batch = wavy(40, seed=1).batch(dtype=torch.float64)
    with torch.no_grad():
        outcome = FrozenModel(found, plan).solve(batch)
        fine = found.solve(batch, options=type(found.options)(rtol=TOLERANCE / 100, atol=TOLERANCE / 100))
    views = found.views
    off = distance(outcome.solution.state, fine.solution.state, (TOLERANCE,) * 2).reshape(views, -1).max(axis=0)
    assert (off[~outcome.flagged] <= 10).mean() >= 0.95
    assert outcome.flagged.mean() < 0.35
    assert outcome.nfe.tolist() == np.repeat(plan.nfe, 40).tolist()
    assert [len(ends) - 1 for ends in outcome.solution.steps[::40]] == list(plan.steps)


def test_rough_series_are_flagged_and_solved_again(planned):
    found, plan = planned
    rough = wavy(20, seed=2, roughness=10.0).batch(dtype=torch.float64)
    frozen = FrozenModel(found, plan)
    with torch.no_grad():
        alone, helped, adaptive = frozen.solve(rough), frozen.solve(rough, fallback="adaptive"), found.solve(rough)
    assert alone.flagged.mean() >= 0.95
    assert not alone.resolved.any()
    assert (helped.resolved == helped.flagged).all()
    again = np.flatnonzero(helped.resolved)
    assert_allclose(helped.outputs[again], adaptive.outputs[again], rtol=1e-9)
    rows = np.concatenate([again, again + 20])
    assert (helped.nfe[rows] == adaptive.nfe[rows] + np.repeat(plan.nfe, 20)[rows]).all()
    assert_allclose(helped.solution.steps[again[0]], adaptive.solution.steps[again[0]])
    assert (alone.outputs - adaptive.outputs).abs().max() > 0  # the plan alone is another answer


def test_a_row_does_not_depend_on_its_batch(planned):
    found, plan = planned
    batch = wavy(6, seed=3).batch(dtype=torch.float64)
    with torch.no_grad():
        outputs = FrozenModel(found, plan)(batch)
        for row in range(6):
            assert_allclose(FrozenModel(found, plan)(batch.select([row]))[0], outputs[row], rtol=1e-9)


def test_gaps_wider_than_a_kernel_can_bridge_are_outside_any_plan():
    found = model("kernel", bandwidths=(0.1,))
    plan = StepPlan(((0.5, 1.0),), (1.0,), "dopri5", 1e-3, 1e-3, 1.0, 1.0, 1)
    gap = SeriesSet.from_arrays([[[0.0, 0.1, 0.0, 0.1]] * 2], [[0.0, 0.2, 5.0, 5.2]])
    outcome = FrozenModel(found, plan).solve(gap.batch(dtype=torch.float64))
    assert outcome.flagged.tolist() == [True]
    assert np.isinf(outcome.error_ratio[0])


def test_series_without_observations_or_extent(planned):
    found, plan = planned
    odd = SeriesSet.from_arrays([np.zeros((2, 0)), [[0.5], [np.nan]]], [[], [3.0]]).batch(dtype=torch.float64)
    frozen = FrozenModel(found, plan)
    with torch.no_grad():
        assert_allclose(frozen(odd), found(odd), rtol=1e-9)


def test_plans_survive_json(planned):
    plan = planned[1]
    assert StepPlan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ends": ((0.5, 0.4, 1.0), (1.0,))}, "increase from above 0 to 1"),
        ({"ends": ((0.5,), (1.0,))}, "increase from above 0 to 1"),
        ({"limits": (0.5,)}, "one per view"),
        ({"solver": "euler"}, "use any of"),
    ],
)
def test_plans_that_make_no_sense_are_refused(planned, change, message):
    with pytest.raises(ValueError, match=message):
        replace(planned[1], **change)


@pytest.mark.parametrize("name", ["linear", "rectilinear", "log-ncde", "ode-rnn", "gru"])
def test_models_that_no_plan_can_serve_are_refused(name):
    with pytest.raises(ValueError, match="a frozen step plan cannot serve this model"):
        StepPlan.calibrate(small_model(name), wavy(2))


def test_wrong_use_is_explained(planned):
    found, plan = planned
    with pytest.raises(ValueError, match="no calibration series"):
        StepPlan.calibrate(found, wavy(2)[[]])
    with pytest.raises(ValueError, match=r"coverage is 1.5"):
        StepPlan.calibrate(found, wavy(2), coverage=1.5)
    with pytest.raises(ValueError, match="the plan is for 2 views and the model has 1"):
        FrozenModel(model("gp"), plan)
    with pytest.raises(ValueError, match="end of a window only"):
        FrozenModel(found, plan).solve(wavy(2).batch(dtype=torch.float64), times=[1.0])
    with pytest.raises(ValueError, match="fallback is 'none at all'"):
        FrozenModel(found, plan).solve(wavy(2).batch(dtype=torch.float64), fallback="none at all")
    with pytest.raises(ValueError, match=r"no plan was found .* kinks or gaps"):
        StepPlan.calibrate(small_model("kernel", bandwidths=(0.01,)), wavy(4))


def test_a_series_that_is_hard_in_every_view_is_counted_once():
    """One of forty may fail: were each of two views to fail for its half of it, none could fail at all."""
    hard = np.random.default_rng(1).normal(size=(1, 2, 25)) * 40
    ordinary = wavy(39)
    values = [ordinary[[i]].values.T for i in range(39)] + [hard[0]]
    times = [ordinary[[i]].times for i in range(39)] + [np.sort(np.random.default_rng(2).uniform(0, 4, 25))]
    found = model()
    plan = StepPlan.calibrate(found, SeriesSet.from_arrays(values, times), coverage=0.97)
    alone = StepPlan.calibrate(found, ordinary, coverage=0.97)
    assert plan.covered == pytest.approx(39 / 40)
    assert max(plan.steps) <= 2 * max(alone.steps)
    everyone = StepPlan.calibrate(found, SeriesSet.from_arrays(values, times), coverage=0.99)
    assert everyone.covered == 1.0
    assert max(everyone.steps) > max(plan.steps)
