"""A space offers a model the settings it has a use for, and nothing beyond its ranges."""

import pytest

from smoothcde import SearchSpace


class Lowest:
    """Chooses the least of everything, and keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def suggest_float(self, name, low, high, *, log=False):
        self.asked.append(name)
        return low

    def suggest_int(self, name, low, high):
        self.asked.append(name)
        return high

    def suggest_categorical(self, name, choices):
        self.asked.append(name)
        return choices[0]


COMMON = {"hidden", "learning_rate", "weight_decay", "dropout"}


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("gru", set()),
        ("cubic", set()),
        ("kernel", {"bandwidths"}),
        ("mv-kernel", {"bandwidths"}),
        ("gp", {"bandwidths", "noise"}),
        ("mvc-gp", {"bandwidths", "noise"}),
    ],
)
def test_a_model_is_offered_what_it_has(model, more):
    assert set(SearchSpace().choose(Lowest(), model)) == COMMON | more


def test_models_with_one_path_have_one_bandwidth_and_others_a_geometric_row_of_them():
    space = SearchSpace(narrowest=(0.05, 0.05), widest=(0.8, 0.8), views=(1, 3))
    assert space.choose(Lowest(), "gp")["bandwidths"] == [0.05]
    assert space.choose(Lowest(), "mvc-gp")["bandwidths"] == [0.05, 0.2, 0.8]


def test_the_widest_view_is_no_narrower_than_the_narrowest():
    space = SearchSpace(narrowest=(0.4, 0.4), widest=(0.2, 0.2), views=(2, 2))
    assert space.choose(Lowest(), "mv-gp")["bandwidths"] == [0.4, 0.4]


def test_settings_left_out_are_not_asked_for():
    chooser = Lowest()
    space = SearchSpace(hidden=None, learning_rate=None, dropout=None, narrowest=None, noise=None)
    assert space.choose(chooser, "mvc-gp") == {"weight_decay": 1e-5}
    assert chooser.asked == ["weight_decay"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"learning_rate": (0.0, 0.1)},
            r"learning_rate is \(0.0, 0.1\); give the least and the most of",
        ),
        ({"noise": (0.5, 0.1)}, "noise is"),
        ({"dropout": (0.0, 1.0)}, "dropout is"),
        ({"views": (0, 3)}, "views is"),
        ({"hidden": ()}, r"hidden is \(\); give sizes of at least 1"),
    ],
)
def test_impossible_ranges_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        SearchSpace(**wrong)
