"""RevIN and the linear forecaster: each series on its own scale, and a linear map that has to be beaten."""

import numpy as np
import pytest
import torch
from small_models import LONG, NOTHING, ONE_STAMP, SHORT, series_of

from smoothcde.models import LinearForecaster, RevIN
from smoothcde.models.linear_forecaster import moving_average
from smoothcde.series import SeriesSet


def double_batch(series):
    return series.batch(dtype=torch.float64)


class TestRevIN:
    @torch.no_grad()
    def test_observed_values_get_mean_zero_and_spread_one(self):
        normal, scale = RevIN(2, epsilon=0.0).double().normalise(double_batch(series_of(LONG, SHORT)))
        for row, (values, _) in enumerate((LONG, SHORT)):
            np.testing.assert_allclose(scale.mean[row, 0], np.nanmean(values, axis=1), atol=1e-12)
            np.testing.assert_allclose(scale.spread[row, 0], np.nanstd(values, axis=1), atol=1e-12)
            for channel in range(2):
                seen = normal.values[row, normal.mask[row, :, channel], channel]
                np.testing.assert_allclose([seen.mean(), seen.std(unbiased=False)], [0.0, 1.0], atol=1e-12)
        assert not normal.values[~normal.mask].any()

    @torch.no_grad()
    def test_denormalising_undoes_normalising_whatever_was_learnt(self):
        revin = RevIN(2).double()
        revin.scale.copy_(torch.tensor([0.5, -2.0]))
        revin.shift.copy_(torch.tensor([0.3, 0.1]))
        batch = double_batch(series_of(LONG, SHORT))
        normal, scale = revin.normalise(batch)
        back = revin.denormalise(normal.values, scale)
        torch.testing.assert_close(back[batch.mask], batch.values[batch.mask], rtol=1e-8, atol=1e-8)

    def test_series_without_or_with_one_observation_stay_finite(self):
        revin = RevIN(2).double()
        normal, scale = revin.normalise(double_batch(series_of(NOTHING, ONE_STAMP, LONG)))
        assert scale.mean[0].tolist() == [[0.0, 0.0]]
        assert scale.spread[0].tolist() == [[1.0, 1.0]]
        normal.values.square().sum().backward()
        assert normal.values.isfinite().all()
        assert all(parameter.grad.isfinite().all() for parameter in revin.parameters())

    @torch.no_grad()
    def test_a_forecast_moves_with_the_units_of_its_series(self):
        torch.manual_seed(0)
        revin, forecaster = RevIN(1, epsilon=0.0).double(), LinearForecaster(channels=1, horizon=3, context=6).double()
        values = np.random.default_rng(0).normal(size=(2, 1, 6))

        def forecast(values):
            normal, scale = revin.normalise(double_batch(SeriesSet.from_arrays(values)))
            return revin.denormalise(forecaster(normal).unflatten(1, (3, 1)), scale)

        torch.testing.assert_close(forecast(7.0 * values - 40.0), 7.0 * forecast(values) - 40.0)


class TestLinearForecaster:
    def test_a_moving_average_repeats_the_ends(self):
        values = torch.tensor([[[1.0, 2.0, 6.0, 3.0]]])
        expected = torch.tensor([[[4 / 3, 3.0, 11 / 3, 4.0]]])
        torch.testing.assert_close(moving_average(values, 3), expected)
        assert torch.equal(moving_average(values, 1), values)

    @torch.no_grad()
    def test_trend_and_remainder_have_a_map_each_shared_by_channels(self):
        torch.manual_seed(0)
        model = LinearForecaster(channels=2, horizon=3, context=5, trend=3).double()
        values = np.random.default_rng(0).normal(size=(4, 2, 5))
        outputs = model(double_batch(SeriesSet.from_arrays(values))).numpy().reshape(4, 3, 2)
        ends = np.concatenate([values[:, :, :1], values, values[:, :, -1:]], axis=2)
        trend = (ends[:, :, :-2] + ends[:, :, 1:-1] + ends[:, :, 2:]) / 3
        for part, layer in ((values - trend, model.readout), (trend, model.trend_readout)):
            mapped = part @ layer.weight.numpy().T + layer.bias.numpy()
            outputs = outputs - mapped.transpose(0, 2, 1)
        np.testing.assert_allclose(outputs, 0, atol=1e-12)

    def test_learns_to_continue_sine_waves_at_uneven_stamps(self):
        rng = np.random.default_rng(0)

        def waves(n):
            phase = rng.uniform(0, 2 * np.pi, n)
            times = [np.sort(np.concatenate([[0.0, 5.0], rng.uniform(0, 5, 30)])) for _ in range(n)]
            past = [np.sin(t + p)[None] for t, p in zip(times, phase, strict=True)]
            future = np.sin(5 + np.arange(1, 5) / 2 + phase[:, None])
            return SeriesSet.from_arrays(past, times).batch(), torch.as_tensor(future, dtype=torch.float32)

        torch.manual_seed(0)
        model = LinearForecaster(channels=1, horizon=4, context=12, trend=5)
        (past, future), (test_past, test_future) = waves(64), waves(64)
        optimiser = torch.optim.Adam(model.parameters(), 0.02)
        for _ in range(150):
            optimiser.zero_grad()
            (model(past) - future).square().mean().backward()
            optimiser.step()
        with torch.no_grad():
            error = (model(test_past) - test_future).square().mean()
        assert error < 0.02 * test_future.square().mean()

    def test_wrong_settings_are_told_in_words(self):
        with pytest.raises(ValueError, match="trend is 4; a centred moving average needs an odd width"):
            LinearForecaster(channels=1, horizon=2, trend=4)
        model = LinearForecaster(channels=2, horizon=2)
        with pytest.raises(ValueError, match="has no outputs at requested times; it forecasts its horizon"):
            model.solve(series_of(SHORT).batch(), times=[1.0])
        with pytest.raises(ValueError, match="built for 2 channels; the batch has 3"):
            model(SeriesSet.from_arrays(np.zeros((1, 3, 4))).batch())
