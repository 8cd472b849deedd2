"""Mamba: the paper's sizes, what it sees, its scan, and what it says when its package is missing."""

import sys

import numpy as np
import pytest
import torch
from small_models import LONG, MIDDLE, SHORT, series_of, small_model

from smoothcde.models import build_model

SERIES = series_of(LONG, SHORT, MIDDLE)


def test_the_sizes_are_the_papers():
    config = build_model("mamba", channels=3, outputs=8, time_scale=1.0).blocks.config
    assert (config.d_model, config.d_state, config.n_layers, config.expand_factor) == (128, 16, 2, 2)
    assert config.pscan


@torch.no_grad()
def test_the_scan_is_the_sequential_one_of_mambapy():
    model, batch = small_model("mamba"), SERIES.batch(dtype=torch.float64)
    scanned = model(batch)
    model.blocks.config.pscan = False
    torch.testing.assert_close(model(batch), scanned, rtol=1e-9, atol=1e-9)


def selective_scan(block, x):
    """One block of Gu and Dao (2024), algorithm 2 and figure 3, stamp by stamp in NumPy; `x` is `(time, width)`."""
    p = {name: parameter.detach().numpy() for name, parameter in block.named_parameters()}
    inner, states = p["A_log"].shape
    rank = p["dt_proj.weight"].shape[1]
    u, gate = np.split(x @ p["in_proj.weight"].T, 2, axis=1)
    taps = p["conv1d.weight"][:, 0]  # (inner, kernel): a causal convolution of each channel
    padded = np.concatenate([np.zeros((taps.shape[1] - 1, inner)), u])
    u = np.stack([(padded[k : k + taps.shape[1]].T * taps).sum(axis=1) for k in range(len(x))]) + p["conv1d.bias"]
    u = u / (1 + np.exp(-u))
    h, out = np.zeros((inner, states)), []
    for now in u:
        delta, b, c = np.split(p["x_proj.weight"] @ now, [rank, rank + states])
        delta = np.log1p(np.exp(p["dt_proj.weight"] @ delta + p["dt_proj.bias"]))
        h = np.exp(-delta[:, None] * np.exp(p["A_log"])) * h + (delta * now)[:, None] * b
        out.append(h @ c + p["D"] * now)
    return np.stack(out) * gate / (1 + np.exp(-gate)) @ p["out_proj.weight"].T


@torch.no_grad()
def test_a_block_is_the_selective_scan_of_its_authors():
    block = small_model("mamba").blocks.layers[0].mixer
    x = torch.randn(2, 9, 5, dtype=torch.float64)
    for row in range(2):
        np.testing.assert_allclose(block(x)[row].numpy(), selective_scan(block, x[row].numpy()), atol=1e-10)


@torch.no_grad()
def test_time_gaps_are_an_input_unless_left_out():
    wider = series_of(*[(values, np.asarray(times) * 1.7) for values, times in (LONG, SHORT, MIDDLE)])
    told, blind = small_model("mamba"), small_model("mamba", encoder_inputs="values")
    now, later = SERIES.batch(dtype=torch.float64), wider.batch(dtype=torch.float64)
    assert (told(now) - told(later)).abs().amax(dim=1).min() > 1e-5
    assert torch.equal(blind(now), blind(later))


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "mambapy.mamba", None)
    with pytest.raises(
        ImportError, match=r"needs the package mambapy; install it with: pip install \"smoothcde\[mamba\]\""
    ):
        build_model("mamba", channels=2, outputs=3, time_scale=1.0)
