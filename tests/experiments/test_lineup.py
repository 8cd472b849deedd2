"""Capacity matching: every model as large as mvc-gp, on the shapes of the paper's data sets."""

import pytest
import torch

from smoothcde.experiments.footprint import PAPER_DATA
from smoothcde.experiments.lineup import Lineup
from smoothcde.models import MODELS, parameter_count

PUBLISHED = {"CharacterTrajectories": 326_040, "SpokenArabicDigits": 753_933, "UWaveGestureLibrary": 252_683}


@pytest.mark.parametrize("data", PUBLISHED)
@pytest.mark.parametrize("name", MODELS)
def test_counts_are_within_a_hundredth_of_the_papers_reference(name, data):
    model = PAPER_DATA[data].lineup().model(name)
    assert parameter_count(model) == pytest.approx(PUBLISHED[data], rel=0.01)


@pytest.mark.parametrize("name", ["cubic", "mv-gp", "log-ncde", "ode-rnn", "gru-d", "gru", "mamba"])
def test_no_other_hidden_size_comes_nearer(name):
    lineup = Lineup(channels=2, outputs=3, time_scale=1.0, bandwidths=(0.1, 0.4), hidden=12, width=10)
    hidden = lineup.hidden_of(name)

    def off(hidden):
        return abs(parameter_count(lineup.build(name, hidden)) - lineup.parameters)

    assert all(off(hidden) <= off(other) for other in range(1, 4 * hidden))


def test_the_reference_is_itself():
    lineup = Lineup(channels=2, outputs=3, time_scale=1.0, bandwidths=(0.1, 0.4), hidden=12, width=10)
    assert lineup.hidden_of("mvc-gp") == 12
    assert parameter_count(lineup.model("mvc-gp")) == lineup.parameters


def test_matching_draws_no_random_numbers():
    lineup = PAPER_DATA["CharacterTrajectories"].lineup()
    size = lineup.parameters
    torch.manual_seed(3)
    lineup.hidden_of("gru")
    drawn = torch.rand(2)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(2))
    assert size == lineup.parameters


def test_all_models_share_options_and_views_go_to_those_that_have_several():
    lineup = Lineup(2, 3, 1.0, (0.1, 0.4), hidden=8, width=8, options={"rtol": 0.05})
    assert lineup.model("mv-kernel").views == 2
    assert lineup.model("gp").views == 1
    assert {lineup.model(name).options.rtol for name in MODELS} == {0.05}
