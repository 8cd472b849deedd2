"""The contract that every model keeps, on every kind of batch that irregular series make."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from small_models import (
    CHANNEL_NEVER_OBSERVED,
    LONG,
    MIDDLE,
    NOTHING,
    ONE_OBSERVATION,
    ONE_STAMP,
    SHORT,
    STAMPS_WITHOUT_VALUES,
    TIME_SCALE,
    WITHOUT_PATH,
    series_of,
    several_views,
    small_model,
)

from smoothcde.models import MODELS, build_model
from smoothcde.series import SeriesSet
from smoothcde.training import CrossEntropy, Recipe, measure_classifier, train

REGULAR = np.sin(np.arange(36.0) ** 1.3).reshape(3, 2, 6)
WITH_PATH = [name for name in MODELS if name not in WITHOUT_PATH]
SIGNATURES = ("log-ncde", "neural-rde")
KINKED = ("hermite",)
"""Second derivatives that jump and are stepped over: errors of many tolerances, by which digits decide about steps."""
SERIES = {
    "complete": SeriesSet.from_arrays(REGULAR, times=[0.0, 0.7, 1.9, 2.0, 3.1, 4.4]),
    "missing values, own times, unequal lengths": series_of(LONG, SHORT, MIDDLE),
    "a batch of one": series_of(LONG),
    "a series of one observation": series_of(LONG, ONE_OBSERVATION, ONE_STAMP),
    "a channel never observed": series_of(LONG, CHANNEL_NEVER_OBSERVED),
    "a channel observed in no series": series_of(CHANNEL_NEVER_OBSERVED),
    "a series without observations": series_of(SHORT, NOTHING, STAMPS_WITHOUT_VALUES),
    "no observations at all": series_of(NOTHING, NOTHING),
    "a window wider than the stamps": series_of(
        SHORT, MIDDLE, ONE_STAMP, NOTHING, window=([-1.5, -0.5, 1.0, 0.0], [4.0, 4.9, 5.0, 2.0])
    ),
}
EVERYTHING = series_of(LONG, SHORT, MIDDLE, ONE_OBSERVATION, ONE_STAMP, CHANNEL_NEVER_OBSERVED, NOTHING)


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


@pytest.fixture(params=SERIES)
def kind(request):
    return request.param


# Solved once per session: run-time shape checks make every solve cost tens of milliseconds.
@cache
def outcome_of(name, dtype=torch.float64):
    with torch.no_grad():
        return small_model(name, dtype).solve(EVERYTHING.batch(dtype=dtype))


def per_series(outcome, counts):
    """`[views, n]` from view-major counts."""
    return counts.reshape(-1, len(outcome.outputs))


def test_outputs_and_gradients_are_finite_on_any_series(name, kind):
    model = small_model(name, torch.float32)
    outcome = model.solve(SERIES[kind].batch())
    assert outcome.outputs.shape == (len(SERIES[kind]), 3)
    assert outcome.outputs.isfinite().all()
    assert outcome.solution is None or outcome.solution.finished
    assert outcome.nfe.shape == (len(outcome.outputs) * getattr(model, "views", 1),)
    outcome.outputs.square().sum().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), key


def test_gradients_reach_every_parameter(name):
    learnt = {"learn_bandwidths": True} if several_views(name) else {}
    learnt |= {"learn_bandwidth": True} if name in ("kernel", "gp") else {}
    noise = {"learn_noise": True} if name in ("mv-gp", "mvc-gp") else {}
    model = small_model(name, **learnt, **noise)
    model(SERIES["missing values, own times, unequal lengths"].batch(dtype=torch.float64)).square().sum().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.abs().max() > 1e-12, key


def test_a_series_alone_gives_what_it_gives_in_a_batch_with_as_many_steps(name):
    model, together = small_model(name), outcome_of(name)
    for i in range(len(EVERYTHING)):
        with torch.no_grad():
            alone = model.solve(EVERYTHING.batch([i], dtype=torch.float64))
        torch.testing.assert_close(alone.outputs[0], together.outputs[i], rtol=1e-9, atol=1e-9)
        assert (per_series(together, together.nfe)[:, i] == alone.nfe).all(), f"nfe of series {i}"
        if name in WITH_PATH:
            for counts in ("accepted", "rejected"):
                of_all, own = getattr(together.solution.stats, counts), getattr(alone.solution.stats, counts)
                assert (per_series(together, of_all)[:, i] == own).all(), f"{counts} of series {i}"


def test_a_series_alone_gives_what_it_gives_in_a_batch_in_float32(name):
    model = small_model(name, torch.float32)
    together = outcome_of(name, torch.float32).outputs
    with torch.no_grad():
        alone = torch.cat([model(EVERYTHING.batch([i])) for i in range(3)])
    torch.testing.assert_close(alone, together[:3], rtol=1e-3, atol=1e-3)  # the solver's tolerance


def test_float32_agrees_with_float64(name):
    # At a loose tolerance rounding decides whether a step at the edge is accepted, and the two go different ways.
    with torch.no_grad():
        single, double = (
            small_model(name, dtype, rtol=1e-5, atol=1e-5)(EVERYTHING.batch(dtype=dtype))
            for dtype in (torch.float32, torch.float64)
        )
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    close = 5e-3 if name in KINKED else 1e-3
    torch.testing.assert_close(single.double(), double, rtol=close, atol=close)


def test_permuting_the_batch_permutes_the_outputs(name):
    order = [4, 0, 6, 2, 5, 1, 3]
    together = outcome_of(name)
    with torch.no_grad():
        permuted = small_model(name).solve(EVERYTHING.batch(order, dtype=torch.float64))
    torch.testing.assert_close(permuted.outputs, together.outputs[order], rtol=1e-9, atol=1e-9)
    assert (per_series(permuted, permuted.nfe) == per_series(together, together.nfe)[:, order]).all()


def test_when_a_series_was_recorded_does_not_matter_only_time_since_its_start(name):
    later = replace(EVERYTHING, times=EVERYTHING.times + 2.0**30, start=EVERYTHING.start + 2.0**30)
    later = replace(later, end=EVERYTHING.end + 2.0**30)
    model = small_model(name, rtol=1e-7, atol=1e-7) if name in KINKED else small_model(name)
    with torch.no_grad():
        moved, known = (model(series.batch(dtype=torch.float64)) for series in (later, EVERYTHING))
    torch.testing.assert_close(moved, known, rtol=1e-4, atol=1e-4)  # stamps round to 1e-7


def test_solving_twice_gives_the_same_twice(name):
    with torch.no_grad():
        assert torch.equal(
            small_model(name).solve(EVERYTHING.batch(dtype=torch.float64)).outputs, outcome_of(name).outputs
        )


def test_the_last_requested_moment_gives_the_outputs_at_the_end(name):
    model = small_model(name)
    batch = EVERYTHING.batch(dtype=torch.float64)
    moments = batch.end[:, None] * torch.tensor([0.0, 0.3, 0.6, 1.0], dtype=torch.float64)
    with torch.no_grad():
        outcome = model.solve(batch, times=moments)
    assert outcome.outputs.shape == (len(EVERYTHING), 4, 3)
    assert outcome.outputs.isfinite().all()
    torch.testing.assert_close(outcome.outputs[:, -1], outcome_of(name).outputs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", WITH_PATH)
def test_the_first_requested_moment_reads_out_the_initial_state(name):
    model = small_model(name)
    batch = EVERYTHING.batch(dtype=torch.float64)
    with torch.no_grad():
        outcome = model.solve(batch, times=[0.0, 1.0])
        views = model.initial(model.start_features(outcome.path)).chunk(model.views)
        expected = model.readout(torch.cat(views, dim=1))
    torch.testing.assert_close(outcome.outputs[:, 0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", WITHOUT_PATH)
@pytest.mark.parametrize("moment", [0.0, 0.45, 1.1, 3.0])
def test_a_requested_moment_knows_nothing_of_what_comes_after(name, moment):
    model = small_model(name, rtol=1e-9, atol=1e-9)
    until = EVERYTHING.with_window(end=np.minimum(EVERYTHING.start + moment, EVERYTHING.end))
    with torch.no_grad():
        asked = model.solve(EVERYTHING.batch(dtype=torch.float64), times=[moment]).outputs[:, 0]
        cut = model(until.batch(dtype=torch.float64))
    torch.testing.assert_close(asked, cut, rtol=1e-7, atol=1e-7)


def test_moments_for_all_are_moments_for_each(name):
    model = small_model(name)
    batch = series_of(SHORT, MIDDLE).batch(dtype=torch.float64)
    shared = torch.tensor([0.2, 1.0, 3.7], dtype=torch.float64)
    with torch.no_grad():
        assert torch.equal(model.solve(batch, shared).outputs, model.solve(batch, shared.expand(2, 3)).outputs)


def test_static_features_join_at_the_readout(name):
    features = np.array([[0.5, -1.0], [2.0, 0.3], [0.0, 0.0]])
    with_static = series_of(SHORT, MIDDLE, NOTHING, static=features)
    model = small_model(name, static=2)
    with torch.no_grad():
        outputs = model(with_static.batch(dtype=torch.float64))
        without = model(replace(with_static, static=np.zeros((3, 2))).batch(dtype=torch.float64))
        expected = torch.as_tensor(features) @ model.readout.weight[:, -2:].T
        at_moments = model.solve(with_static.batch(dtype=torch.float64), times=[0.0, 9.0]).outputs
    torch.testing.assert_close(outputs - without, expected)
    torch.testing.assert_close(at_moments[:, -1], outputs)


@pytest.mark.parametrize("name", WITH_PATH)
def test_a_time_channel_tells_how_long_a_window_was(name):
    model = small_model(name, time_channel=True)
    batch = EVERYTHING.batch(dtype=torch.float64)
    with torch.no_grad():
        path = model.solve(batch).path
        time_at_end = path.evaluate(path.end)[:, 2]
    assert path.channels == (6 if name in SIGNATURES else 3)  # three areas
    torch.testing.assert_close(time_at_end, batch.end.repeat(model.views) / TIME_SCALE)


@pytest.mark.parametrize("name", WITH_PATH)
def test_a_time_channel_sets_an_empty_window_apart_from_a_longer_one(name):
    empty = series_of(NOTHING, NOTHING, window=([0.0, 0.0], [1.0, 5.0]))
    with torch.no_grad():
        outputs = small_model(name, time_channel=True)(empty.batch(dtype=torch.float64))
    if name == "rectilinear":
        assert torch.equal(outputs[0], outputs[1])  # its clock ticks at stamps only
    else:
        assert (outputs[0] - outputs[1]).abs().max() > 1e-3


@pytest.mark.parametrize("name", [name for name in WITH_PATH if name not in SIGNATURES])
@pytest.mark.parametrize("time_channel", [False, True])
def test_count_channels_tell_how_often_each_channel_was_observed(name, time_channel):
    model = small_model(name, time_channel=time_channel, count_channels=True, count_scale=0.5)
    batch = EVERYTHING.batch(dtype=torch.float64)
    with torch.no_grad():
        path = model.solve(batch).path
        at_end = path.evaluate(path.end)
    own_clock = name == "rectilinear"
    assert path.channels == 4 + (time_channel or own_clock)
    counts = at_end[:, 3:5] if own_clock else at_end[:, 2:4]
    total = batch.mask.sum(dim=1).double().repeat(model.views, 1) * 0.5
    if several_views(name) or name in ("kernel", "gp"):
        assert (counts <= total + 1e-9).all()  # smoothed like its view
        assert (counts >= 0).all()
    else:
        torch.testing.assert_close(counts, total)


def test_weights_saved_and_loaded_give_the_same_outputs(name, tmp_path):
    model, other = small_model(name), small_model(name, seed=1)
    file = tmp_path / "weights.pt"
    torch.save(model.state_dict(), file)
    batch = series_of(LONG, SHORT).batch(dtype=torch.float64)
    with torch.no_grad():
        assert not torch.equal(model(batch), other(batch))
        other.load_state_dict(torch.load(file, weights_only=True))
        assert torch.equal(model(batch), other(batch))


def rising_or_falling(n, seed):
    """Series that rise or fall, at uneven stamps, with noise, an offset, and a second channel that says nothing."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    values, times = [], []
    for label in labels:
        length = rng.integers(5, 9)
        t = (np.arange(length) + rng.uniform(-0.3, 0.3, length)) / length
        rising = 2.5 * (2 * label - 1) * t + 0.1 * rng.normal(size=length) + rng.normal()
        nothing = 0.3 * rng.normal(size=length)
        nothing[rng.random(length) < 0.3] = np.nan
        values.append(np.stack([rising, nothing]))
        times.append(t)
    return SeriesSet.from_arrays(values, times), labels


def test_learns_to_tell_rising_from_falling(name):
    known, labels = rising_or_falling(48, seed=0)
    test, truth = rising_or_falling(100, seed=1)
    settings = {"outputs": 2, "time_scale": known.longest_span, "hidden": 8, "width": 8, "rtol": 1e-2, "atol": 1e-2}
    model = small_model(name, torch.float32, stirred=False, **settings)
    epochs = 20 if name in WITHOUT_PATH else 10
    train(model, known, labels, CrossEntropy(), Recipe(epochs=epochs, batch_size=48, learning_rate=0.05))
    assert measure_classifier(model, test, truth).accuracy > 0.95


@pytest.mark.parametrize("name", MODELS)
def test_requested_times_are_numbers(name):
    series = SeriesSet.from_arrays(np.zeros((2, 1, 4)))
    with pytest.raises(ValueError, match="times hold NaN; give every requested moment a number"):
        build_model(name, channels=1, outputs=1, time_scale=3.0, hidden=4).solve(series.batch(), times=[float("nan")])


def test_inference_mode_leaves_nothing_that_training_trips_over():
    series = SeriesSet.from_arrays(np.random.default_rng(0).normal(size=(3, 2, 7)))
    model = build_model("mvc-gp", channels=2, outputs=2, time_scale=6.0, bandwidths=(0.173, 0.31), hidden=4)
    with torch.inference_mode():
        model(series.batch())
    model(series.batch()).sum().backward()


def test_mamba_runs_in_mixed_precision():
    series = SeriesSet.from_arrays(np.random.default_rng(0).normal(size=(3, 2, 7)))
    model = build_model("mamba", channels=2, outputs=2, time_scale=6.0, hidden=4)
    with torch.autocast("cpu", torch.bfloat16):
        outputs = model(series.batch())
    outputs.float().sum().backward()
    torch.testing.assert_close(outputs.float(), model(series.batch()), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", MODELS)
def test_no_series_have_no_outputs(name):
    series = SeriesSet.from_arrays(np.zeros((2, 1, 4)))[np.zeros(0, dtype=int)]
    model = build_model(name, channels=1, outputs=2, time_scale=3.0, hidden=4)
    assert model.solve(series.batch()).outputs.shape == (0, 2)
