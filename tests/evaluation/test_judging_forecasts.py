"""MSE, MAE, MASE and coverage of forecasts against plain transcriptions."""

import numpy as np
import pytest

from smoothcde.evaluation import Backtest, ForecastTally

RANDOM = np.random.default_rng(0)
TRUTH = RANDOM.normal(size=(9, 4, 3))
TRUTH[RANDOM.random(TRUTH.shape) < 0.3] = np.nan
FORECAST = RANDOM.normal(size=TRUTH.shape)
LOWER, UPPER = FORECAST - 0.8, FORECAST + 0.5
SCALE, NAIVE = np.array([1.0, 2.0, 5.0]), np.array([0.5, 0.1, 2.0])


def tally(parts=3):
    """The windows in several parts."""
    found = ForecastTally(3)
    for rows in np.array_split(np.arange(9), parts):
        found.add(TRUTH[rows], FORECAST[rows], LOWER[rows], UPPER[rows])
    return found


def transcribed(channels, scale):
    squared, absolute, scaled, inside = [], [], [], []
    for i in range(9):
        for k in range(4):
            for c in channels:
                if not np.isnan(TRUTH[i, k, c]):
                    error = FORECAST[i, k, c] - TRUTH[i, k, c]
                    squared.append((error / scale[c]) ** 2)
                    absolute.append(abs(error) / scale[c])
                    scaled.append(abs(error) / NAIVE[c])
                    inside.append(LOWER[i, k, c] <= TRUTH[i, k, c] <= UPPER[i, k, c])
    return {"MSE": np.mean(squared), "MAE": np.mean(absolute), "MASE": np.mean(scaled), "coverage": np.mean(inside)}


@pytest.mark.parametrize("parts", [1, 4])
def test_over_all_channels(parts):
    assert tally(parts).scores(scale=SCALE, naive=NAIVE) == pytest.approx(transcribed(range(3), SCALE))


def test_tables_are_of_models_and_channels():
    found = Backtest({"mine": tally(), "other": tally(1)}, ("a", "b", "c"), SCALE, NAIVE, 9, 0, 0.8)
    assert dict(found.table.loc["mine"]) == pytest.approx(transcribed(range(3), SCALE))
    assert dict(found.by_channel.loc[("other", "b")]) == pytest.approx(transcribed([1], np.ones(3)))


def test_a_channel_that_never_moved_has_no_mase_and_spoils_none():
    still = np.array([0.5, 0.0, 2.0])
    assert np.isnan(tally().scores(naive=still, channel=1)["MASE"])
    moved = [c for c in range(3) if c != 1]
    assert tally().scores(naive=still)["MASE"] == pytest.approx(transcribed(moved, SCALE)["MASE"])


def test_nothing_observed_is_no_number():
    empty = ForecastTally(2)
    empty.add(np.full((1, 3, 2), np.nan), np.zeros((1, 3, 2)))
    assert all(np.isnan(score) for score in empty.scores(naive=np.ones(2)).values())


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"targets have shape \(1, 2, 3\), forecasts \(1, 2, 1\); give both alike"):
        ForecastTally(3).add(np.zeros((1, 2, 3)), np.zeros((1, 2, 1)))
