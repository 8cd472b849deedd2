"""GRU: what it sees, with and without time and mask, against a loop over torch's cell."""

import numpy as np
import pytest
import torch
from small_models import LONG, MIDDLE, NOTHING, SHORT, TIME_SCALE, series_of, small_model
from torch import nn

from smoothcde.models import parameter_count

SERIES = series_of(LONG, SHORT, MIDDLE, NOTHING)


def stretched(factor):
    """The same values at stamps further apart."""
    return series_of(*[(values, np.asarray(times) * factor) for values, times in (LONG, SHORT, MIDDLE, NOTHING)])


def by_cell(model, values, times, told):
    """The recurrence stamp by stamp, for one series `(channels, time)`."""
    cell = nn.GRUCell(model.recurrence.input_size, model.recurrence.hidden_size).double()
    cell.load_state_dict({key.removesuffix("_l0"): weight for key, weight in model.recurrence.state_dict().items()})
    h, last, before = torch.zeros(1, model.recurrence.hidden_size, dtype=torch.float64), np.zeros(len(values)), None
    for column, t in zip(np.asarray(values, dtype=float).T, times, strict=True):
        seen = np.isfinite(column)
        last = np.where(seen, column, last)
        gap = 0.0 if before is None else (t - before) / TIME_SCALE
        features = np.concatenate([last, seen, [gap]]) if told else last
        h, before = cell(torch.as_tensor(features, dtype=torch.float64)[None], h), t
    return model.readout(h)[0]


@pytest.mark.parametrize("inputs", ["values", "values+mask+gap"])
@torch.no_grad()
def test_outputs_are_those_of_a_loop_over_the_cell(inputs):
    model = small_model("gru", encoder_inputs=inputs)
    outputs = model(SERIES.batch(dtype=torch.float64))
    for row, (values, times) in enumerate((LONG, SHORT, MIDDLE, NOTHING)):
        torch.testing.assert_close(outputs[row], by_cell(model, values, times, inputs != "values"), rtol=0, atol=1e-12)


@torch.no_grad()
def test_without_time_and_mask_it_sees_neither():
    blind, told = small_model("gru", encoder_inputs="values"), small_model("gru")
    now, later = SERIES.batch(dtype=torch.float64), stretched(1.7).batch(dtype=torch.float64)
    assert torch.equal(blind(now), blind(later))
    assert (told(now) - told(later))[:3].abs().amax(dim=1).min() > 1e-4
    carried = series_of(([[1.0, 1.0], [0.5, 0.7]], [0.0, 1.0])).batch(dtype=torch.float64)
    missing = series_of(([[1.0, np.nan], [0.5, 0.7]], [0.0, 1.0])).batch(dtype=torch.float64)
    assert torch.equal(blind(carried), blind(missing))
    assert (told(carried) - told(missing)).abs().max() > 1e-4


def test_layers_stack():
    one, two = small_model("gru", hidden=4), small_model("gru", hidden=4, layers=2)
    assert parameter_count(two) - parameter_count(one) == 3 * (4 * 4 + 4 * 4 + 4 + 4)
    assert two(SERIES.batch(dtype=torch.float64)).isfinite().all()
