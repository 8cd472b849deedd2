"""Times read as the user knows them: numbers as numbers, seconds since 1970 as dates."""

import numpy as np
import pytest
from explained_series import SERIES, Document, small_predictor

from smoothcde import explain
from smoothcde.explain.times import duration_text, look_like_dates, moment_text, ticks
from smoothcde.series import SeriesSet

NOVEMBER = 1.7e9  # 2023-11-14 22:13:20


def test_only_times_within_our_lifetimes_look_like_dates():
    assert look_like_dates(np.array([NOVEMBER, 1.2e9]), np.array([NOVEMBER + 10, 1.3e9]))
    assert not look_like_dates(np.array([NOVEMBER, 0.0]), np.array([NOVEMBER + 10, 48.0]))
    assert not look_like_dates(np.array([1.7e12]), np.array([1.7e12 + 5]))  # milliseconds
    assert not look_like_dates(np.array([]), np.array([]))


def test_moments_are_numbers_or_dates_in_utc():
    assert moment_text(100.0, 2.5, dates=False) == "102.5"
    assert moment_text(NOVEMBER, 0.0, dates=True) == "2023-11-14 22:13:20 UTC"
    assert moment_text(NOVEMBER, 40.0, dates=True) == "2023-11-14 22:14 UTC"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (30.0, "30 s"),
        (600.0, "10 min"),
        (9000.0, "2.5 h"),
        (172800.0, "2 days"),
        (0.5, "0.5 s"),
        (8640000.0, "14.3 weeks"),
    ],
)
def test_durations_have_a_unit_that_suits_them(seconds, text):
    assert duration_text(seconds, dates=True) == text
    assert duration_text(seconds, dates=False) == f"{seconds:.3g}"


@pytest.mark.parametrize(
    ("origin", "span", "labels"),
    [
        (0.0, 10.0, ["0", "2", "4", "6", "8", "10"]),
        (100.0, 1.0, ["100.0", "100.2", "100.4", "100.6", "100.8", "101.0"]),
        (-1.0, 2.0, ["-1.0", "-0.5", "0.0", "0.5", "1.0"]),
        (7.5, 0.0, ["7.5"]),
    ],
)
def test_ticks_of_numbers(origin, span, labels):
    found = ticks(origin, span, dates=False)
    assert [label for _, label in found] == labels
    np.testing.assert_allclose([origin + time for time, _ in found], [float(label) for label in labels])


@pytest.mark.parametrize(
    ("span", "first", "later"),
    [
        (120.0, "11-14 22:13:30", "22:14:00"),
        (9 * 3600.0, "11-15 00:00", "02:00"),
        (6 * 86400.0, "11-15", "11-16"),
        (200 * 86400.0, "2023-12", "2024-01"),
        (3000 * 86400.0, "2024", "2026"),
    ],
)
def test_ticks_of_dates_tell_the_date_when_it_changes(span, first, later):
    found = ticks(NOVEMBER, span, dates=True)
    assert 2 <= len(found) <= 10
    assert [label for _, label in found[:2]] == [first, later]
    assert all(0 <= time <= span for time, _ in found)


def test_a_page_of_dates_shows_dates_unless_told_otherwise():
    hours = SERIES.times * 3600.0 + NOVEMBER
    blocks = [SERIES.values[a:b].T for a, b in zip(SERIES.offsets[:2], SERIES.offsets[1:3], strict=True)]
    stamps = [hours[a:b] for a, b in zip(SERIES.offsets[:2], SERIES.offsets[1:3], strict=True)]
    series = SeriesSet.from_arrays(blocks, stamps)
    predictor = small_predictor(series=series, time_scale=36000.0)
    data = Document(explain(predictor, series).html()).data()
    assert data["dates"] is True
    assert data["series"][0]["from"] == "2023-11-19 02:13:20 UTC"
    assert data["series"][0]["views"][0]["bandwidth"] == "2 h"
    plain = Document(explain(predictor, series, dates=False).html()).data()
    assert plain["dates"] is False
    assert plain["series"][0]["from"] == "1700360000"
    assert plain["series"][0]["views"][0]["bandwidth"] == "7.2e+03"


def test_steps_keep_their_place_on_large_times():
    series = SeriesSet.from_arrays(np.sin(np.arange(12.0))[None, None], NOVEMBER + np.arange(12.0))
    predictor = small_predictor(series=series)
    shown = Document(explain(predictor, series).html()).data()["series"][0]
    np.testing.assert_allclose(shown["views"][0]["steps"], predictor.solve(series)[1].solution.steps[0], atol=1e-4)
