"""Steps and evaluations in compiled code equal those of plain torch in float64, gradients included."""

import copy

import numpy as np
import pytest
import torch

from smoothcde.models import TanhField
from smoothcde.native import PackedField
from smoothcde.paths import LinearPath
from smoothcde.series import SeriesSet
from smoothcde.solve import ControlTerm, Rows
from smoothcde.solve.step import Dense, advance
from smoothcde.solve.tableaus import TABLEAUS

# Views, series, hidden, width, channels: multiples of a vector and not, fewer rows than a tile and several blocks.
SHAPES = [(3, 50, 128, 128, 3), (2, 7, 60, 20, 5), (1, 1, 100, 33, 1), (1, 130, 37, 64, 2), (4, 5, 16, 8, 13)]
TOLERANCES = (1e-3, 1e-3)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def fields(views, hidden, width, channels, activation="tanh"):
    """A field in compiled code, and the same one in float64."""
    torch.manual_seed(0)
    field = TanhField(views, hidden, channels, width, activation)
    packed = field.prepared()
    assert isinstance(packed, PackedField)
    return field, packed, copy.deepcopy(field).double()


def term_of(field, channels):
    """A term that is handed its controls; it never looks at its path."""
    return ControlTerm(field, LinearPath.fit(SeriesSet.from_arrays(np.zeros((1, channels, 2))).batch()))


class PlainField:
    """A field in operations that torch differentiates itself."""

    def __init__(self, field):
        self.field = field

    def product(self, z, dx, rows):
        return (self.field.matrix(z, rows) @ dx[:, :, None])[:, :, 0]


def close(found, expected, largest=2e-6):
    found, expected = found.detach(), expected.detach()
    assert float((found.double() - expected).abs().max()) <= largest * max(1.0, float(expected.abs().max()))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize(("views", "series", "hidden", "width", "channels"), SHAPES)
def test_products_and_their_gradients_are_those_of_torch(views, series, hidden, width, channels, activation):
    field, packed, exact = fields(views, hidden, width, channels, activation)
    rows = Rows.all(views * series, views)
    z, dx = normal(len(rows.index), hidden).requires_grad_(), normal(len(rows.index), channels, seed=1).requires_grad_()
    wide = [t.detach().double().requires_grad_() for t in (z, dx)]
    product, expected = packed.product(z, dx, rows), exact.product(*wide, rows)
    close(product, expected)
    g = normal(*product.shape, seed=2)
    found = torch.autograd.grad(product, [z, dx, *field.parameters()], g)
    for one, other in zip(found, torch.autograd.grad(expected, [*wide, *exact.parameters()], g.double()), strict=True):
        close(one, other)
    with torch.no_grad():
        assert torch.equal(packed.product(z, dx, rows), product)


@pytest.mark.parametrize("solver", TABLEAUS)
@pytest.mark.parametrize(("views", "series", "hidden", "width", "channels"), SHAPES)
def test_whole_steps_are_those_taken_slope_by_slope(views, series, hidden, width, channels, solver):
    field, packed, exact = fields(views, hidden, width, channels)
    tableau, rows = TABLEAUS[solver], Rows.all(views * series, views)
    n = len(rows.index)
    inputs = [normal(n, hidden), normal(n, hidden, seed=1), normal(n, tableau.slopes - 1, channels, seed=2)]
    inputs = [x.requires_grad_() for x in inputs]
    wide = [x.detach().double().requires_grad_() for x in inputs]
    h = 0.1 + 0.3 * torch.rand(n, 1, generator=torch.Generator().manual_seed(3))
    step = advance(tableau, term_of(packed, channels), rows, *inputs, h, TOLERANCES)
    expected = advance(tableau, term_of(exact, channels), rows, *wide, h.double(), TOLERANCES)
    close(step.state, expected.state)
    close(step.slope, expected.slope)
    close(step.squared_ratio.sqrt(), expected.squared_ratio.sqrt(), 1e-3)  # a small difference of large numbers
    assert (step.squared_departure is None) == (tableau.departure is None)
    if expected.squared_departure is not None:
        close(step.squared_departure.sqrt(), expected.squared_departure.sqrt(), 1e-4)
    gradients = normal(2, n, hidden, seed=4)
    found = torch.autograd.grad([step.state, step.slope], [*inputs, *field.parameters()], list(gradients))
    outputs = [expected.state, expected.slope]
    known = torch.autograd.grad(outputs, [*wide, *exact.parameters()], list(gradients.double()))
    for one, other in zip(found, known, strict=True):
        close(one, other, 5e-6)
    with torch.no_grad():
        again = advance(tableau, term_of(packed, channels), rows, *inputs, h, TOLERANCES)
    assert torch.equal(again.state, step.state)
    assert torch.equal(again.squared_ratio, step.squared_ratio)


def test_nothing_is_less_exact_than_in_torch():
    field, packed, exact = fields(2, 128, 128, 3)
    rows = Rows.all(140, 2)
    z, dx, g = normal(140, 128), normal(140, 3, seed=1), normal(140, 128, seed=2)

    def product_and_gradients(own, parameters, dtype):
        inputs = [x.to(dtype).requires_grad_() for x in (z, dx)]
        product = own.product(*inputs, rows)
        return product, *torch.autograd.grad(product, [*inputs, *parameters], g.to(dtype))

    expected = product_and_gradients(exact, exact.parameters(), torch.float64)
    found = product_and_gradients(packed, field.parameters(), torch.float32)
    plain = product_and_gradients(field, field.parameters(), torch.float32)
    for one, other, true in zip(found, plain, expected, strict=True):
        errors = [float((x.detach() - true.detach()).square().mean().sqrt()) for x in (one, other)]
        assert errors[0] <= 1.5 * errors[1]


@pytest.mark.parametrize("solver", TABLEAUS)
def test_several_steps_are_one_after_the_other_and_empty_ones_change_nothing(solver):
    _, packed, _ = fields(3, 40, 24, 3)
    method, rows, stages = TABLEAUS[solver].compiled, Rows.all(12, 3), TABLEAUS[solver].slopes - 1
    z, first, dx = normal(12, 40), normal(12, 40, seed=1), normal(12, 4, stages, 3, seed=2)
    h = torch.full((12, 4), 0.2)
    h[:4, 2:] = h[4:8, :1] = h[8:] = 0  # the first view ends early, the second begins late, the last stands still
    with torch.no_grad():
        found = packed.steps(method, z, first, dx, h, TOLERANCES, rows)
        state, slope, ratios = z, first, torch.zeros(12, 4)
        for step in range(4):
            taken = packed.step(method, state, slope, dx[:, step], h[:, step : step + 1], TOLERANCES, rows)
            moved = h[:, step] > 0
            state, slope = (torch.where(moved[:, None], *pair) for pair in ((taken.state, state), (taken.slope, slope)))
            ratios[:, step] = torch.where(moved, taken.squared_ratio, 0.0)
    assert torch.equal(found.state, state)
    assert torch.equal(found.slope, slope)
    assert torch.equal(found.squared_ratio, ratios)


KEPT = {
    "some of each view": [0, 2, 5, 7, 8, 11],
    "none of the middle view": [1, 2, 9],
    "one": [11],
}


@pytest.mark.parametrize("kept", KEPT)
def test_a_row_does_not_depend_on_its_neighbours_to_the_last_bit(kept):
    _, packed, _ = fields(3, 40, 24, 3)
    everyone, positions = Rows.all(12, 3), np.array(KEPT[kept])
    z, first, dx, h = normal(12, 40), normal(12, 40, seed=1), normal(12, 6, 3, seed=2), torch.full((12, 1), 0.2)
    with torch.no_grad():
        together = packed.step(TABLEAUS["dopri5"].compiled, z, first, dx, h, TOLERANCES, everyone)
        some = (x[positions] for x in (z, first, dx, h))
        alone = packed.step(TABLEAUS["dopri5"].compiled, *some, TOLERANCES, everyone.keep(positions))
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one, other[positions])


def test_what_is_not_a_number_stays_in_its_row():
    _, packed, _ = fields(1, 40, 24, 3)
    z, first, dx, h = normal(20, 40), normal(20, 40, seed=1), normal(20, 6, 3, seed=2), torch.full((20, 1), 0.2)
    z[3, 7], first[11, 0] = torch.nan, torch.inf
    with torch.no_grad():
        step = packed.step(TABLEAUS["dopri5"].compiled, z, first, dx, h, TOLERANCES, Rows.all(20))
    lost = [3, 11]
    assert not step.squared_ratio[lost].isfinite().any()
    assert step.squared_ratio[[row for row in range(20) if row not in lost]].isfinite().all()


def test_large_inputs_saturate():
    _, packed, exact = fields(1, 8, 8, 2)
    z = torch.tensor([0.0, 1e-6, -3.0, 30.0, -200.0, 1e30, -1e30, 5.0]) * torch.ones(4, 8)
    dx = torch.ones(4, 2)
    with torch.no_grad():
        close(packed.product(z, dx, Rows.all(4)), exact.product(z.double(), dx.double(), Rows.all(4)))


def test_second_derivatives_are_those_of_torch():
    field, packed, exact = fields(2, 6, 5, 2)
    rows, tableau = Rows.all(6, 2), TABLEAUS["bosh3"]
    inputs = [normal(6, 6), normal(6, 6, seed=1), normal(6, 3, 2, seed=2)]
    h = torch.full((6, 1), 0.3)

    def curvature(term, inputs, h, parameters):
        inputs = [x.clone().requires_grad_() for x in inputs]
        step = advance(tableau, term, rows, *inputs, h, TOLERANCES)
        loss = step.state.square().sum() + term.slope(step.state, inputs[2], 0, rows).sum()
        first = torch.autograd.grad(loss, [*inputs, *parameters], create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), [*inputs, *parameters])

    found = curvature(term_of(packed, 2), inputs, h, list(field.parameters()))
    wide = [x.double() for x in inputs]
    by_hand = curvature(term_of(exact, 2), wide, h.double(), list(exact.parameters()))
    plain = curvature(term_of(PlainField(exact), 2), wide, h.double(), list(exact.parameters()))
    for compiled, other, expected in zip(found, by_hand, plain, strict=True):
        torch.testing.assert_close(other, expected)
        close(compiled, expected, 1e-5)


def test_gradients_are_the_same_in_every_run_of_two_threads():
    field, packed, _ = fields(3, 64, 32, 3)
    rows = Rows.all(300, 3)
    inputs = [normal(300, 64).requires_grad_(), normal(300, 64, seed=1), normal(300, 6, 3, seed=2)]
    threads = torch.get_num_threads()

    def gradients():
        step = packed.step(TABLEAUS["dopri5"].compiled, *inputs, torch.full((300, 1), 0.2), TOLERANCES, rows)
        return torch.autograd.grad(step.state.square().sum(), [inputs[0], *field.parameters()])

    alone = gradients()
    try:
        torch.set_num_threads(2)
        one, other = gradients(), gradients()
    finally:
        torch.set_num_threads(threads)
    for first, second, single in zip(one, other, alone, strict=True):
        assert torch.equal(first, second)
        close(first, single.double(), 1e-5)


def test_weights_changed_before_the_backward_pass_are_noticed():
    field, packed, _ = fields(1, 8, 8, 2)
    product = packed.product(normal(4, 8).requires_grad_(), normal(4, 2), Rows.all(4))
    with torch.no_grad():
        field.inner.weight.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_torchs_defaults_do_not_matter():
    field, packed, _ = fields(2, 24, 16, 3)
    rows, inputs = Rows.all(8, 2), [normal(8, 24), normal(8, 24, seed=1), normal(8, 6, 3, seed=2)]

    def gradients():
        step = packed.step(TABLEAUS["dopri5"].compiled, *inputs, torch.full((8, 1), 0.2).float(), TOLERANCES, rows)
        return step.state, *torch.autograd.grad(step.state.square().sum(), list(field.parameters()))

    usual = gradients()
    torch.set_default_dtype(torch.float64)
    try:
        others = gradients()
    finally:
        torch.set_default_dtype(torch.float32)
    for one, other in zip(others, usual, strict=True):
        assert torch.equal(one, other)


def test_another_precision_is_refused_in_words():
    _, packed, _ = fields(1, 8, 8, 2)
    with pytest.raises(TypeError, match=r"float32 on a CPU was given torch.float64 on cpu; bring states, paths and"):
        packed.product(normal(4, 8).double(), normal(4, 2), Rows.all(4))


def test_states_inside_a_step_are_still_to_be_had():
    _, packed, exact = fields(1, 8, 8, 2)
    tableau, rows = TABLEAUS["dopri5"], Rows.all(4)
    inputs = [normal(4, 8), normal(4, 8, seed=1), normal(4, 6, 2, seed=2)]
    h, dense = torch.full((4, 1), 0.2), Dense(torch.tensor([0, 2]), torch.tensor([0.3, 0.9], dtype=torch.float64))
    step = advance(tableau, term_of(packed, 2), rows, *inputs, h, TOLERANCES, dense)
    wide = [x.double() for x in inputs]
    expected = advance(tableau, term_of(exact, 2), rows, *wide, h.double(), TOLERANCES, dense)
    close(step.states, expected.states)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_left_to_torch(dtype):
    field = TanhField(1, 8, 2, 8).to(dtype)
    assert field.prepared() is field
