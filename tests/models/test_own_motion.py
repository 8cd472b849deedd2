"""Channels by which a state moves on its own: time in a small unit, and running integrals of the path."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.integrate import quad, solve_ivp
from small_models import LONG, MIDDLE, SHORT, TIME_SCALE, series_of, small_model

from smoothcde.paths import GPPath, IntegralPath, LinearPath

SERIES = series_of(LONG, SHORT, MIDDLE)
MOVING = {"time_channel": True, "time_unit": 0.1, "integral_channels": True, "integral_unit": 0.4}


@pytest.mark.parametrize(
    "fit", [LinearPath.fit, lambda batch: GPPath.fit(batch, bandwidth=0.4, noise=0.05)], ids=["linear", "gp"]
)
def test_integrals_are_those_of_scipy(fit):
    path = fit(SERIES.batch(dtype=torch.float64))
    both = IntegralPath.of(path, scale=2.0)
    for row in range(path.rows):
        one, start, end = path.select([row]), float(path.start[row]), float(path.end[row])
        kinks = [float(knot) for knot in one.knots[0] if knot.isfinite()]
        for share in (0.0, 0.3, 1.0):
            t = start + share * (end - start)
            found = both.select([row]).evaluate(t)[0]
            inside = [knot for knot in kinks if start < knot < t]
            for channel in range(2):
                expected = quad(lambda s: float(one.evaluate(s)[0, channel]), start, t, points=inside, limit=200)[0]  # noqa: B023
                assert float(found[2 + channel]) == pytest.approx(expected / 2.0, abs=1e-8)
                assert float(found[channel]) == pytest.approx(float(one.evaluate(t)[0, channel]))


@pytest.mark.parametrize("name", ["gp", "mvc-gp", "cubic", "linear"])
def test_the_state_is_moved_by_where_the_path_is(name):
    """dz = f(z) dX + g(z) X dt + h(z) dt, written out and solved by SciPy."""
    model = small_model(name, **MOVING, rtol=1e-9, atol=1e-9)
    batch = SERIES.batch(dtype=torch.float64)
    with torch.no_grad():
        outcome = model.solve(batch)
        plain, _, _ = model.smooth(batch)
        for row in range(plain.rows):
            view, path = row // len(batch), plain.select([row])

            def slope(t, z, path=path, view=view):
                inner = torch.tanh(torch.as_tensor(z) @ model.field.inner.weight[view] + model.field.inner.bias[view])
                matrix = torch.tanh(inner @ model.field.outer.weight[view] + model.field.outer.bias[view])
                f, g, h = matrix.view(5, model.hidden).split((2, 2, 1))
                x = path.evaluate(t)[0] / (0.4 * TIME_SCALE)
                return (path.derivative(t)[0] @ f + x @ g + h[0] / (0.1 * TIME_SCALE)).numpy()

            first = torch.cat([path.evaluate(path.start)[0], torch.zeros(1, dtype=torch.float64)])
            z = model.initial(first).numpy()
            kinks = [float(knot) for knot in path.knots[0] if knot.isfinite()]
            corners = [float(path.start), *kinks, float(path.end)]
            for begin, end in pairwise(corners):
                z = solve_ivp(slope, (begin, end), z, rtol=1e-10, atol=1e-10).y[:, -1]
            np.testing.assert_allclose(outcome.solution.state[row], z, atol=1e-6)


@pytest.mark.parametrize("gradient", ["backprop", "adjoint"])
def test_gradients_agree(gradient):
    model = small_model("mvc-gp", **MOVING, rtol=1e-9, atol=1e-9, gradient=gradient)
    reference = small_model("mvc-gp", **MOVING, rtol=1e-9, atol=1e-9, gradient="checkpoint")
    for each in (model, reference):
        each(SERIES.batch(dtype=torch.float64)).square().sum().backward()
    for (name, found), expected in zip(model.named_parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad, rtol=1e-5, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")


def test_the_time_of_log_signatures_has_the_unit_too():
    batch = SERIES.batch(dtype=torch.float64)
    with torch.no_grad():
        path = small_model("log-ncde", time_channel=True, time_unit=0.1).solve(batch).path
        torch.testing.assert_close(path.evaluate(path.end)[:, 2], batch.end / (0.1 * TIME_SCALE))


def test_what_cannot_be_is_refused():
    for name, message in (("rectilinear", "stands still in time"), ("log-ncde", "have no integral channels")):
        with pytest.raises(ValueError, match=message):
            small_model(name, integral_channels=True)
    for unit in ("time_unit", "integral_unit"):
        with pytest.raises(ValueError, match=f"{unit} is 0.0; give a positive fraction"):
            small_model("gp", **{unit: 0.0})
    with pytest.raises(ValueError, match="scale is 0"):
        IntegralPath.of(LinearPath.fit(SERIES.batch()), 0.0)
