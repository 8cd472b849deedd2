"""The tuning grids of the paper, by name."""

import pytest

from smoothcde.models import build_model
from smoothcde.training import GRIDS, grid_points


@pytest.mark.parametrize("name", ["log-ncde", "neural-rde"])
def test_windows_are_every_combination_once_in_units_of_the_model(name):
    points = list(grid_points(name, longest=121))
    assert {point.settings["step"] for point in points} == {3 / 120, 5 / 120, 10 / 120, 20 / 120, 30 / 120}
    assert {point.settings["depth"] for point in points} == {1, 2}
    assert {point.learning_rate for point in points} == {5e-3, 1e-2}
    assert len({(point.learning_rate, *point.settings.values()) for point in points}) == len(points) == 2 * 5 * 2


@pytest.mark.parametrize("name", ["ode-rnn", "gru-d", "gru", "mamba"])
def test_baselines_search_the_papers_learning_rates(name):
    assert {point.learning_rate for point in grid_points(name)} == {1e-3, 5e-3, 1e-2}


def test_only_the_baseline_with_a_solver_searches_a_tolerance():
    assert {(p.settings["rtol"], p.settings["atol"]) for p in grid_points("ode-rnn")} == {(1e-2, 1e-2), (1e-3, 1e-3)}
    assert not any(point.settings for name in ("gru-d", "gru", "mamba") for point in grid_points(name))


@pytest.mark.parametrize("name", ["gp", "mv-gp", "mvc-gp"])
def test_gaussian_processes_search_their_noise_at_the_learning_rate_of_the_data_set(name):
    points = list(grid_points(name))
    assert [point.settings for point in points] == [{"noise": 0.01}, {"noise": 0.05}]
    assert {point.learning_rate for point in points} == {None}


@pytest.mark.parametrize("name", GRIDS)
def test_what_a_grid_sets_its_model_takes(name):
    for point in grid_points(name, longest=65):
        model = build_model(name, channels=2, outputs=2, time_scale=64.0, hidden=3, **point.settings)
        for key, value in point.settings.items():
            assert getattr(model.options if key in ("rtol", "atol") else model, key) == value


def test_an_unknown_grid_is_answered_with_all_names():
    with pytest.raises(ValueError, match="there is no grid 'gruu'; use any of: 'ode-rnn', 'gru-d', "):
        list(grid_points("gruu"))


@pytest.mark.parametrize("longest", [None, 1])
def test_windows_need_the_length_of_the_series(longest):
    with pytest.raises(ValueError, match=f"longest is {longest}; the grid 'log-ncde' needs the number of stamps"):
        list(grid_points("log-ncde", longest))
