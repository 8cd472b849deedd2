"""Fields of low rank: the product without the matrix equals the product with it."""

from typing import Any

import numpy as np
import pytest
import torch

from smoothcde import ChannelScaler, SeriesSet, build_model, parameter_count
from smoothcde.models import LowRankField
from smoothcde.solve import Rows

SETTINGS: dict[str, Any] = {
    "channels": 6,
    "outputs": 2,
    "time_scale": 9.0,
    "bandwidths": (0.2, 0.5),
    "hidden": 8,
    "width": 8,
}


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_product_is_that_of_the_matrix(activation):
    field = LowRankField(2, 5, 7, width=6, activation=activation, rank=3).double()
    rows = Rows.all(8, views=2).keep(np.array([0, 1, 2, 5]))
    z, dx = normal(4, 5), normal(4, 7, seed=1)
    matrix = field.matrix(z, rows)
    assert matrix.shape == (4, 5, 7)
    assert (torch.linalg.matrix_rank(matrix) == 3).all()
    torch.testing.assert_close(field.product(z, dx, rows), (matrix @ dx[:, :, None])[:, :, 0])


def test_a_thousand_channels_move_a_state_no_further_than_a_few_dozen():
    moved = []
    for channels in (32, 1024):
        torch.manual_seed(0)
        field = LowRankField(1, 16, channels, rank=8).double()
        moved.append(field.product(normal(50, 16), normal(50, channels, seed=1), Rows.all(50)).norm(dim=1).mean())
    assert moved[1] < 1.5 * moved[0]


def test_every_view_has_weights_of_its_own():
    field = LowRankField(2, 5, 7, width=6, rank=3).double()
    z, dx = normal(1, 5).repeat(2, 1), normal(1, 7, seed=1).repeat(2, 1)
    first, second = field.product(z, dx, Rows.all(2, views=2))
    alone = field.product(z[:1], dx[:1], Rows.all(2, views=2).keep(np.array([1])))
    torch.testing.assert_close(alone[0], second)
    assert not torch.allclose(first, second)


def test_a_model_of_low_rank_is_small_has_all_gradients_and_learns():
    generator = np.random.default_rng(0)
    labels = np.arange(24) % 2
    waves = np.sin(np.linspace(0, 6, 10) + 1.5 * labels[:, None, None]) * generator.normal(1, 0.1, size=(24, 6, 1))
    series = SeriesSet.from_arrays(waves)
    batch, targets = ChannelScaler.fit(series).transform(series).batch(), torch.as_tensor(labels)
    torch.manual_seed(0)
    model = build_model("mvc-gp", rank=2, **SETTINGS)
    assert parameter_count(model) < parameter_count(build_model("mvc-gp", **SETTINGS))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(30):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), targets)
        loss.backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
        optimiser.step()
    assert (model(batch).argmax(dim=1) == targets).all()


def test_gradients_are_exact():
    field = LowRankField(1, 3, 4, width=5, rank=2).double()
    rows = Rows.all(2)
    inputs = (normal(2, 3).requires_grad_(), normal(2, 4, seed=1).requires_grad_())
    assert torch.autograd.gradcheck(lambda z, dx: field.product(z, dx, rows), inputs)


def test_a_rank_below_one_is_refused():
    with pytest.raises(ValueError, match="rank is 0; give a whole number of at least 1"):
        build_model("gp", rank=0, **(SETTINGS | {"bandwidths": (0.2,)}))


def test_lie_brackets_need_the_full_matrix():
    with pytest.raises(ValueError, match="the log-ODE method needs the full matrix of its field; leave `rank` out"):
        build_model("log-ncde", rank=2, **SETTINGS)
    build_model("neural-rde", rank=2, **SETTINGS)
