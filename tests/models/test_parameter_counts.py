"""The parameter counts of the paper's table follow from its settings."""

import pytest
import torch

from smoothcde.models import build_model, matching_hidden, parameter_count

CHARACTERS, DIGITS, GESTURES = (3, 20), (13, 10), (3, 8)  # channels and classes of the paper's three data sets


def of(name, data, **settings):
    channels, outputs = data
    return build_model(name, channels=channels, outputs=outputs, time_scale=1.0, **settings)


def weightless(name, data, **settings):
    """A model to count, not to use: its parameters have shapes and no values, and take no time to draw."""
    with torch.device("meta"):
        return of(name, data, **settings)


@pytest.mark.parametrize(
    ("name", "data", "views", "published"),
    [
        ("mvc-gp", CHARACTERS, 4, 326_040),
        ("mvc-gp", DIGITS, 3, 753_933),
        ("mvc-gp", GESTURES, 3, 252_683),
        ("mvc-kernel", DIGITS, 4, 986_510),
        ("mvc-kernel", GESTURES, 4, 319_884),
    ],
)
def test_mvc_models_have_the_published_count_less_a_bias_per_view(name, data, views, published):
    # A bias on a query's score shifts all scores of its softmax alike, so it never does anything; we have none.
    assert parameter_count(of(name, data, bandwidths=(0.1,) * views)) == published - views


@pytest.mark.parametrize("name", ["linear", "cubic"])
@pytest.mark.parametrize(
    ("data", "hidden", "published"),
    [(CHARACTERS, 604, 325_704), (DIGITS, 412, 753_686), (GESTURES, 480, 253_096)],
)
def test_interpolating_baselines_have_the_published_count(name, data, hidden, published):
    assert parameter_count(weightless(name, data, hidden=hidden)) == published


@pytest.mark.parametrize(
    ("data", "hidden", "published"),
    [(CHARACTERS, 604, 325_704), (DIGITS, 412, 753_686), (GESTURES, 480, 253_096)],
)
def test_matching_hidden_finds_the_published_hidden_sizes(data, hidden, published):
    assert matching_hidden(lambda h: weightless("linear", data, hidden=h), published) == hidden


def test_matching_hidden_takes_the_nearer_neighbour():
    counts = {h: parameter_count(of("cubic", GESTURES, hidden=h, width=16)) for h in (20, 21)}
    assert matching_hidden(lambda h: of("cubic", GESTURES, hidden=h, width=16), counts[20] + 1, most=64) == 20
    assert matching_hidden(lambda h: of("cubic", GESTURES, hidden=h, width=16), counts[21] - 1, most=64) == 21


@pytest.mark.parametrize(("parameters", "hidden"), [(1, 1), (10**9, 64)])
def test_matching_hidden_stays_within_its_range(parameters, hidden):
    assert matching_hidden(lambda h: of("cubic", GESTURES, hidden=h, width=16), parameters, most=64) == hidden


def test_only_what_is_trained_counts():
    model = of("cubic", GESTURES, hidden=8)
    whole = parameter_count(model)
    model.initial.requires_grad_(False)
    assert parameter_count(model) == whole - (3 * 8 + 8)


def test_learnt_bandwidths_and_noise_count_too():
    fixed = of("mvc-gp", GESTURES, bandwidths=(0.1, 0.2))
    learnt = of("mvc-gp", GESTURES, bandwidths=(0.1, 0.2), learn_bandwidths=True, learn_noise=True)
    assert parameter_count(learnt) == parameter_count(fixed) + 3
