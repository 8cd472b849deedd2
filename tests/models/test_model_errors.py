"""What models refuse, and how they say it."""

import jaxtyping
import numpy as np
import pytest
import torch
from small_models import LONG, SHORT, series_of, several_views, small_model

from smoothcde.models import MODELS, MultiViewCDE, NeuralCDE, build_model
from smoothcde.models.bandwidths import Bandwidths
from smoothcde.series import SeriesSet

SMOOTHING = ["kernel", "gp", "mv-kernel", "mv-gp", "mvc-kernel", "mvc-gp"]


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


def refuses(message):
    return pytest.raises(ValueError, match=message)


def test_an_unknown_name_is_answered_with_all_names():
    with refuses("there is no model 'mvc-gpp'; use any of: ") as refused:
        build_model("mvc-gpp", channels=2, outputs=3, time_scale=1.0)
    for name in MODELS:
        assert repr(name) in str(refused.value)


def test_other_channels_than_built_for(name):
    three = SeriesSet.from_arrays(np.zeros((1, 3, 4)))
    with refuses("built for 2 channels; the batch has 3"):
        small_model(name)(three.batch(dtype=torch.float64))


@pytest.mark.parametrize("time_scale", [0.0, -1.0, float("nan")])
def test_a_time_scale_that_is_not_positive(name, time_scale):
    with refuses(f"time_scale is {time_scale}; give the longest span"):
        small_model(name, time_scale=time_scale)


@pytest.mark.parametrize("noise", [0.0, -0.1, float("nan")])
@pytest.mark.parametrize("name", ["gp", "mv-gp", "mvc-gp"])
def test_noise_that_is_not_positive(name, noise):
    with refuses(f"noise is {noise}; it must be positive, 0.01 is the usual choice"):
        small_model(name, noise=noise)


@pytest.mark.parametrize("bandwidth", [0.0, -0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", SMOOTHING)
def test_a_bandwidth_that_is_not_positive_and_finite(name, bandwidth):
    bandwidths = (0.1, bandwidth) if several_views(name) else (bandwidth,)
    with refuses("give one positive fraction of the time scale per view") as refused:
        small_model(name, bandwidths=bandwidths)
    assert str(bandwidths) in str(refused.value)


@pytest.mark.parametrize("name", ["kernel", "gp"])
@pytest.mark.parametrize("bandwidths", [(), (0.1, 0.2, 0.3)])
def test_several_bandwidths_for_a_single_path(name, bandwidths):
    with refuses(f"model {name!r} has one path; give one bandwidth, not {len(bandwidths)}"):
        small_model(name, bandwidths=bandwidths)


@pytest.mark.parametrize("name", MODELS)
def test_a_setting_that_the_model_has_not(name):
    with refuses(f"model {name!r} has no setting 'hiden'; it has ") as refused:
        small_model(name, hiden=8)
    assert "'hidden'" in str(refused.value)
    assert "'rtol'" in str(refused.value)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("hidden", [0, -3, 8.0, "8"])
def test_a_size_that_is_no_whole_number(name, hidden):
    with refuses(f"hidden is {hidden!r}; give a whole number of at least 1"):
        small_model(name, hidden=hidden)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in SMOOTHING])
def test_models_without_smoothing_ignore_bandwidths_and_noise(name):
    batch = series_of(SHORT).batch(dtype=torch.float64)
    given = small_model(name, bandwidths=(0.1, 0.2), noise=0.3)
    assert torch.equal(given(batch), small_model(name)(batch))


@pytest.mark.parametrize("floor", [0.2, 0.3, 0.0, -0.1])
def test_a_floor_that_leaves_no_room_below_the_bandwidths(floor):
    with refuses(f"the floor {floor} must be positive and below every bandwidth"):
        Bandwidths((0.2, 0.4), time_scale=1.0, learn=True, floor=floor)


def test_static_features_that_are_missing_or_too_many(name):
    model = small_model(name, static=2)
    with refuses("built for 2 static features; the batch has 0"):
        model(series_of(SHORT).batch(dtype=torch.float64))
    with refuses("built for 2 static features; the batch has 3"):
        model(series_of(SHORT, static=[[1.0, 2.0, 3.0]]).batch(dtype=torch.float64))


@pytest.mark.parametrize("times", [0.5, [[0.0, 1.0]], [[0.0], [1.0], [2.0]], [[[0.0]]]])
@pytest.mark.parametrize("name", ["linear", "rectilinear", "mvc-gp", "log-ncde", "ode-rnn", "gru", "gru-d", "mamba"])
def test_times_of_the_wrong_shape(name, times):
    with refuses(r"times have shape .*; give \[moments\], or \[n, moments\] with n = 2"):
        small_model(name).solve(series_of(SHORT, LONG).batch(dtype=torch.float64), times=times)


@pytest.fixture
def without_type_checks(monkeypatch):
    """As users run it: type checks, which know the allowed words too, are on in tests alone."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("activation", "gelu", "'tanh', 'relu'"),
        ("encoder_inputs", "mask", r"'values', 'values\+mask\+gap'"),
        ("solver", "euler", "'bosh3', 'bs5', 'dopri5', 'tsit5', 'dopri8'"),
        ("step_control", "batch", "'row', 'sample', 'joint'"),
        ("knots", "skip", "'land', 'step_over'"),
        ("gradient", "autograd", "'backprop', 'checkpoint', 'adjoint'"),
    ],
)
def test_an_unknown_word_is_answered_with_all_words(key, value, allowed):
    with refuses(f"{key} is {value!r}; use any of: {allowed}"):
        small_model("mvc-gp", **{key: value})


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize(
    ("key", "value", "allowed"), [("smoother", "spline", "'gp', 'kernel'"), ("encoder", "lstm", "'conv', 'identity'")]
)
def test_an_unknown_smoother_or_encoder(key, value, allowed):
    with refuses(f"{key} is {value!r}; use any of: {allowed}"):
        MultiViewCDE(channels=2, outputs=3, bandwidths=(0.1,), **{key: value})


def test_an_unknown_path():
    with refuses("path is 'bezier'; use any of: 'linear', 'hermite', 'cubic', 'smoothing-spline', 'rectilinear', "):
        NeuralCDE(path="bezier", channels=2, outputs=3)


@pytest.mark.parametrize("name", ["kernel", "mv-kernel", "mvc-kernel"])
def test_an_unknown_kernel(name):
    with refuses("kernel is 'box'; use any of: 'gaussian', 'laplacian', 'cauchy', 'epanechnikov', 'tricube'"):
        small_model(name, kernel="box")(series_of(SHORT).batch(dtype=torch.float64))
