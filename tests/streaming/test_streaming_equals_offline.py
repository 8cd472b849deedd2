"""A stream says what the same model says offline of the same observations, whatever came in which order."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamed import Recorded, small_predictor

from smoothcde import SeriesSet, load_uea
from smoothcde.paths import GPPath, chebyshev
from smoothcde.streaming.panels import PANELS, Panels, panel_nodes

SPARSE = {"encoder_inputs": "values+mask+gap", "count_channels": True, "count_scale": 0.05}
MOVING = {"time_channel": True, "time_unit": 0.1, "integral_channels": True}


def walk(generator, count, series, channels=2, missing=0.0):
    """Smooth values at stamps that differ from series to series."""
    times = np.cumsum(generator.exponential(0.25, size=(count, series)), axis=0)
    phase = generator.uniform(0, 6, size=(series, channels))
    values = np.sin(times[:, :, None] * 0.7 + phase)
    values[generator.random(values.shape) < missing] = np.nan
    return times, values


def follow(recorded: Recorded, times, values, every: int) -> float:
    """Stamp by stamp; the largest difference seen, at last stamps, at one common moment and later ones in turn."""
    series, worst = times.shape[1], 0.0
    for k in range(len(times)):
        recorded.update(times[k], values[k], range(series))
        if k % every == 0:
            newest = recorded.newest()
            moments = [None, float(newest.max()), newest + 0.3, float(newest.max() + 30)][k // every % 4]
            worst = max(worst, recorded.difference(moments))
    return worst


@pytest.mark.parametrize("panels", [False, True])
@pytest.mark.parametrize(
    ("name", "missing", "options"),
    [("mvc-gp", 0.0, {}), ("mvc-gp", 0.4, SPARSE), ("mv-gp", 0.4, SPARSE), ("gp", 0.0, {}), ("gp", 0.4, MOVING)],
)
def test_incremental_models_on_many_series_with_own_stamps(name, missing, options, panels):
    recorded = Recorded(small_predictor(name, **options), 10.0, series=3, panels=panels, method="incremental")
    times, values = walk(np.random.default_rng(0), 56, 3, missing=missing)
    assert follow(recorded, times, values, every=7) < 1e-7


@pytest.mark.parametrize("name", ["mvc-kernel", "cubic", "gru"])
def test_other_models_are_fitted_anew(name):
    recorded = Recorded(small_predictor(name), 6.0, series=2)
    times, values = walk(np.random.default_rng(1), 40, 2, missing=0.2)
    assert follow(recorded, times, values, every=8) == 0.0


def test_single_precision_is_the_same_while_windows_are_short():
    recorded = Recorded(small_predictor(double=False, **SPARSE), 10.0, series=3, method="incremental")
    times, values = walk(np.random.default_rng(2), 60, 3, missing=0.3)
    assert follow(recorded, times, values, every=10) < 1e-5


def real_stream(name: str, count: int) -> np.ndarray:
    """Recordings of a data set, one after the other: `[stamps, channels]`, standardised."""
    try:
        series, _ = load_uea(name)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    values = series.values[:count]
    return (values - values.mean(axis=0)) / values.std(axis=0)


@pytest.mark.parametrize("panels", [False, True])
def test_three_hundred_updates_of_real_motion(panels):
    values = real_stream("BasicMotions", 320)
    recorded = Recorded(small_predictor(channels=6), 15.0, panels=panels, method="incremental")
    worst = 0.0
    for k, value in enumerate(values):
        recorded.update([0.25 * k], [value], [0])
        if k >= 20 and k % 12 == 0:
            worst = max(worst, recorded.difference())
    assert worst < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("panels", [False, True])
def test_ten_thousand_updates_of_real_gestures(panels):
    values = real_stream("UWaveGestureLibrary", 10_000)
    recorded = Recorded(small_predictor(channels=3), 10.0, panels=panels, method="incremental")
    times = np.arange(len(values)) / 10
    said, windows, worst = [], [], 0.0
    for k, value in enumerate(values):
        recorded.stream.update(times[k], value)
        if k % 4 == 3:
            said.append(recorded.stream.outputs()[0])
            windows.append(slice(max(0, k - 103), k + 1))
        if len(said) == 100:  # offline many at a time, which is quicker
            offline = SeriesSet.from_arrays([values[w].T for w in windows], [times[w] for w in windows])
            want = recorded.predictor.outputs(offline.with_window(history=10.0))
            worst = max(worst, float(np.abs(np.array(said) - want).max()))
            print(f"largest difference over {k + 1:,} updates, panels {panels}: {worst:.2e}", flush=True)
            said, windows = [], []
    assert worst < 1e-5
    assert recorded.stream._history.times.shape[1] <= 2 * 104


moments = st.integers(0, 60).map(lambda quarter: quarter / 4)
number = st.one_of(st.none(), st.integers(-3, 3))
stamp = st.tuples(st.integers(0, 1), moments, number, number)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    calls=st.lists(st.lists(stamp, min_size=1, max_size=5), min_size=1, max_size=8),
    policy=st.sampled_from(["mean", "last", "first"]),
    panels=st.booleans(),
    later=st.sampled_from([0.0, 0.25, 3.0, 20.0]),
)
def test_any_order_of_stamps(calls, policy, panels, later):
    predictor = small_predictor(**SPARSE)
    recorded = Recorded(predictor, 4.0, 2, panels, duplicates=policy, method="incremental")
    for call in calls:
        rows = [row for row, *_ in call]
        values = [[np.nan if v is None else v for v in pair] for _, _, *pair in call]
        recorded.update([time for _, time, *_ in call], np.array(values, dtype=float), rows)
        # What was dropped on the way was in no window that ends at or after the newest stamp.
        if all(recorded.told):
            assert recorded.difference(recorded.newest() + later) < 1e-6


def test_panels_stand_for_their_stamps_wherever_the_window_is():
    """Against the plain path through all stamps of a long window, fitted to the same weights."""
    predictor = small_predictor()
    model = predictor.model
    generator = np.random.default_rng(3)
    times = np.sort(generator.uniform(100.0, 110.0, size=400))
    series = SeriesSet.from_arrays([np.sin(times + np.array([[0.0], [1.0]]))], [times], window=(100.0, 110.0))
    batch = series.batch(dtype=torch.float64)
    scores = torch.from_numpy(generator.normal(size=(1, 2, 400)) * 20)  # weights over many orders of magnitude
    noise = torch.full((2,), 0.1, dtype=torch.float64)
    panels = Panels(1, 10.0, max(model.bandwidths.nodes(10.0)), 2, 2, torch.device("cpu"))
    panels.anchor = 37.3
    sums = panels.sums_of(batch, np.array([0]), times[None], noise, scores)
    counts = model.bandwidths.nodes(10.0)
    h = model.bandwidths.values
    mine = GPPath.of_sums(sums, batch.start, batch.end, h, nodes=counts, dtype=torch.float64)
    plain = GPPath.fit(batch, h, noise, torch.softmax(scores, dim=2), nodes=counts)
    t = torch.linspace(0, 10, 57, dtype=torch.float64).expand(2, -1)
    torch.testing.assert_close(mine.evaluate(t), plain.evaluate(t), rtol=0, atol=1e-8)
    torch.testing.assert_close(mine.derivative(t), plain.derivative(t), rtol=0, atol=1e-7)


@pytest.mark.parametrize("count", [5, 16, 44, 78])
def test_panel_nodes_carry_every_product_of_two_polynomials(count):
    nodes, length = panel_nodes(count), 2 / PANELS
    for begin in (-1.0, -0.4, 1.0 - length):
        x = torch.linspace(begin, begin + length, 101, dtype=torch.float64)
        on_panel = chebyshev.lagrange(2 * (x - begin) / length - 1, nodes)
        at_nodes = begin + (chebyshev.nodes(nodes) + 1) / 2 * length
        product = chebyshev.features(x, 2 * count - 1)
        assert (on_panel @ chebyshev.features(at_nodes, 2 * count - 1) - product).abs().max() < 1e-11
