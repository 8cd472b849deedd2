"""GRU-D against a plain NumPy transcription of its equations."""

import numpy as np
import torch

from smoothcde import SeriesSet, build_model


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def transcribed(model, values, times, scale):
    """Che et al. (2018), equations 10 to 17, one series `(channels, time)`, the empirical mean being zero."""
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    channels, length = values.shape
    hidden = model.hidden
    weight = p["from_input.weight"]
    on_value, on_mask = weight[:, :channels], weight[:, channels:]
    bias = p["from_input.bias"]
    h, last, since = np.zeros(hidden), np.zeros(channels), np.zeros(channels)
    for k in range(length):
        mask = np.isfinite(values[:, k]).astype(float)
        if k > 0:
            seen_before = np.isfinite(values[:, k - 1])
            gap = (times[k] - times[k - 1]) / scale
            since = np.where(seen_before, gap, since + gap)
            last = np.where(seen_before, values[:, k - 1], last)
        decay_x = np.exp(-np.maximum(0, p["input_decay_weight"] * since + p["input_decay_bias"]))
        decay_h = np.exp(-np.maximum(0, p["state_decay.weight"] @ since + p["state_decay.bias"]))
        x = np.where(mask > 0, values[:, k], decay_x * last)
        h = decay_h * h
        push = on_value @ x + on_mask @ mask + bias
        reset = sigmoid(push[:hidden] + h @ p["to_gates"][:, :hidden])
        update = sigmoid(push[hidden : 2 * hidden] + h @ p["to_gates"][:, hidden:])
        candidate = np.tanh(push[2 * hidden :] + (reset * h) @ p["to_candidate"])
        h = (1 - update) * h + update * candidate
    return p["readout.weight"] @ h + p["readout.bias"]


def test_the_recurrence_is_that_of_its_authors():
    generator = np.random.default_rng(0)
    values = [generator.normal(size=(3, length)) for length in (9, 5, 1, 7)]
    for block in values:
        block[generator.random(block.shape) < 0.4] = np.nan
    times = [np.sort(generator.uniform(0, 10, block.shape[1])) for block in values]
    series = SeriesSet.from_arrays(values, times)
    torch.manual_seed(0)
    model = build_model("gru-d", channels=3, outputs=2, time_scale=4.0, hidden=6).double()
    with torch.no_grad():
        for parameter in model.parameters():  # decays start at zero, where they would show nothing
            parameter.add_(0.3 * torch.rand_like(parameter))
    ours = model(series.batch(dtype=torch.float64)).detach().numpy()
    for row, (block, stamps) in enumerate(zip(values, times, strict=True)):
        np.testing.assert_allclose(ours[row], transcribed(model, block, stamps, 4.0), atol=1e-12)


def test_nothing_decays_before_training():
    model = build_model("gru-d", channels=2, outputs=1, time_scale=1.0, hidden=4)
    assert not model.input_decay_weight.any()
    assert not model.state_decay.weight.any()
    assert not model.state_decay.bias.any()
