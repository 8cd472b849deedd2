"""Fields with weights per view: grouped products equal one `nn.Linear` per view."""

import numpy as np
import pytest
import torch
from torch import nn

from smoothcde.models import TanhField, tanh_product
from smoothcde.models.fields import ViewLinear
from smoothcde.solve import Rows

# Rows of three views of four series: all, some of each view, and a view that has left altogether.
ROWS = {
    "all": Rows.all(12, views=3),
    "as many of each view": Rows.all(12, views=3).keep(np.array([0, 2, 5, 7, 8, 11])),
    "unequally many": Rows.all(12, views=3).keep(np.array([0, 1, 3, 6, 8, 9])),
    "none of the middle view": Rows.all(12, views=3).keep(np.array([1, 2, 9])),
    "one": Rows.all(12, views=3).keep(np.array([11])),
}


@pytest.fixture(params=ROWS)
def rows(request):
    return ROWS[request.param]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def linear_of_view(layer, view):
    _, inputs, outputs = layer.weight.shape
    linear = nn.Linear(inputs, outputs, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(layer.weight[view].T)
        linear.bias.copy_(layer.bias[view])
    return linear


def test_each_row_goes_through_its_own_views_linear_layer(rows):
    layer = ViewLinear(views=3, inputs=4, outputs=5).double()
    x = normal(len(rows.index), 4)
    expected = torch.stack([linear_of_view(layer, row // 4)(x[i]) for i, row in enumerate(rows.index)])
    torch.testing.assert_close(layer(x, rows), expected)


def test_layers_start_as_torchs_do():
    torch.manual_seed(0)
    layer = ViewLinear(views=50, inputs=16, outputs=20)
    for parameter in (layer.weight.detach(), layer.bias.detach()):
        assert parameter.abs().max() <= 1 / 4
        assert abs(float(parameter.std()) - 1 / 4 / np.sqrt(3)) < 0.01


@pytest.mark.parametrize(("activation", "function"), [("tanh", torch.tanh), ("relu", torch.relu)])
def test_the_field_is_the_papers(rows, activation, function):
    field = TanhField(views=3, hidden=4, channels=2, width=6, activation=activation).double()
    z = normal(len(rows.index), 4)
    matrix = field.matrix(z, rows)
    for i, row in enumerate(rows.index):
        inner, outer = linear_of_view(field.inner, row // 4), linear_of_view(field.outer, row // 4)
        expected = torch.tanh(outer(function(inner(z[i])))).view(2, 4).T
        torch.testing.assert_close(matrix[i], expected)


def test_the_product_is_the_matrix_times_dx(rows):
    field = TanhField(views=3, hidden=4, channels=2, width=6).double()
    z, dx = normal(len(rows.index), 4), normal(len(rows.index), 2, seed=1)
    torch.testing.assert_close(field.product(z, dx, rows), (field.matrix(z, rows) @ dx[:, :, None])[:, :, 0])


def test_the_product_does_not_mix_rows(rows):
    field = TanhField(views=3, hidden=4, channels=2, width=6).double()
    z, dx = normal(len(rows.index), 4), normal(len(rows.index), 2, seed=1)
    jacobian = torch.autograd.functional.jacobian(lambda state: field.product(state, dx, rows), z)
    for i in range(len(z)):
        for j in range(len(z)):
            assert (jacobian[i, :, j] != 0).any() == (i == j)


def test_first_and_second_derivatives_of_the_product_are_those_of_finite_differences():
    rows = ROWS["unequally many"]
    field = TanhField(views=3, hidden=3, channels=2, width=4).double()
    z, dx = normal(6, 3).requires_grad_(), normal(6, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda z, dx: field.product(z, dx, rows), (z, dx))
    assert torch.autograd.gradgradcheck(lambda z, dx: field.product(z, dx, rows), (z, dx), fast_mode=True)


@pytest.mark.parametrize("channels", [2, 9])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_products_in_pieces_are_those_at_once(rows, activation, channels, monkeypatch):
    field = TanhField(views=3, hidden=4, channels=channels, width=6, activation=activation).double()
    z, dx = normal(len(rows.index), 4).requires_grad_(), normal(len(rows.index), channels, seed=1).requires_grad_()
    inputs, weights = [z, dx, *field.parameters()], normal(len(rows.index), 4, seed=2)
    monkeypatch.setattr(tanh_product, "FEW", 0)
    results = []
    for cached in (10**6, 4 * channels * 2, 1):  # all rows at once, two of them, one
        monkeypatch.setattr(tanh_product, "CACHED", cached)
        product = field.product(z, dx, rows)
        with torch.no_grad():
            torch.testing.assert_close(field.product(z, dx, rows), product)
        results.append([product, *torch.autograd.grad((product * weights).sum(), inputs)])
    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(results[2], results[0])


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_products_of_few_rows_are_those_of_many(rows, activation, monkeypatch):
    field = TanhField(views=3, hidden=4, channels=2, width=6, activation=activation).double()
    z, dx = normal(len(rows.index), 4), normal(len(rows.index), 2, seed=1)
    with torch.no_grad():
        few = field.product(z, dx, rows)
        monkeypatch.setattr(tanh_product, "FEW", 0)
        torch.testing.assert_close(few, field.product(z, dx, rows))


def test_without_gradients_no_more_than_a_piece_is_in_memory(monkeypatch):
    monkeypatch.setattr(tanh_product, "CACHED", 4 * 9 * 2)
    monkeypatch.setattr(tanh_product, "FEW", 0)
    made, whole = [], tanh_product._in_pieces

    def watched(*inputs):
        total, s = whole(*inputs)
        made.append(s.shape)
        return total, s

    monkeypatch.setattr(tanh_product, "_in_pieces", watched)
    field = TanhField(views=3, hidden=4, channels=9, width=6).double()
    with torch.no_grad():
        field.product(normal(12, 4), normal(12, 9), ROWS["all"])
    field.product(normal(12, 4), normal(12, 9), ROWS["all"])
    assert made == [(2, 9, 4), (12, 9, 4)]
