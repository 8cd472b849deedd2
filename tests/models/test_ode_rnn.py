"""ODE-RNN against a loop over torchdiffeq."""

import numpy as np
import torch
from torchdiffeq import odeint

from smoothcde import SeriesSet, build_model


def irregular(seed=0):
    generator = np.random.default_rng(seed)
    values = [generator.normal(size=(2, length)) for length in (6, 4, 1)]
    values[0][0, 2] = values[1][:, 1] = np.nan
    return SeriesSet.from_arrays(values, [np.sort(generator.uniform(0, 5, block.shape[1])) for block in values])


def moving_model():
    torch.manual_seed(0)
    model = build_model("ode-rnn", channels=2, outputs=3, time_scale=2.0, hidden=5, rtol=1e-9, atol=1e-9).double()
    torch.nn.init.normal_(model.derivative.outer.weight, std=0.7)  # zero at first, which would show nothing
    return model


@torch.no_grad()
def by_torchdiffeq(model, batch, row, until=None):
    h, now = torch.zeros(1, model.hidden, dtype=torch.float64), 0.0

    def drift(h, gap):
        window = torch.tensor([0.0, gap / model.time_scale], dtype=torch.float64)
        return h if gap <= 0 else odeint(model.derivative, h, window, rtol=1e-10, atol=1e-10, method="dopri5")[-1]

    for k in range(int(batch.lengths[row])):
        t = float(batch.times[row, k])
        if until is not None and t > until:
            break
        h, now = drift(h, t - now), t
        if batch.mask[row, k].any():
            h = model.cell(torch.cat([batch.values[row, k], batch.mask[row, k].double()])[None], h)
    end = float(batch.end[row]) if until is None else until
    return model.readout(drift(h, end - now))[0]


def test_states_drift_between_stamps_as_torchdiffeq_says():
    model, batch = moving_model(), irregular().batch(dtype=torch.float64)
    outputs = model(batch)
    for row in range(3):
        torch.testing.assert_close(outputs[row].detach(), by_torchdiffeq(model, batch, row), rtol=0, atol=1e-7)


def test_requested_moments_drift_on_from_the_stamp_before():
    model, batch = moving_model(), irregular().batch(dtype=torch.float64)
    outputs = model.solve(batch, times=[0.0, 0.7, 2.0]).outputs
    for row in range(2):
        for column, moment in enumerate((0.0, 0.7, 2.0)):
            if moment <= float(batch.end[row]):
                expected = by_torchdiffeq(model, batch, row, until=moment)
                torch.testing.assert_close(outputs[row, column].detach(), expected, rtol=0, atol=1e-7)


def test_evaluations_add_up_over_the_gaps():
    model, batch = moving_model(), irregular().batch(dtype=torch.float64)
    nfe = model.solve(batch).nfe
    assert nfe[0] > nfe[1] > nfe[2] == 0  # a single stamp has no gap


def test_the_state_stands_still_before_training():
    model = build_model("ode-rnn", channels=2, outputs=3, time_scale=2.0, hidden=5)
    assert not model.derivative.outer.weight.any()
