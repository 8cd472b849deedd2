"""Recipes: the paper's settings, schedules that torch agrees with, and what is refused."""

from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from smoothcde.models import MODELS, build_model
from smoothcde.training import RECIPES, Recipe, recipe_of

# Of the paper's appendix, "Dataset-Specific Optimization Settings".
APPENDIX = {
    "paper-character-trajectories": (256, 1e-4, 1e-5, 25, 1e-3),
    "paper-spoken-arabic-digits": (2048, 1e-3, 1e-4, 13, 1e-3),
    "paper-uwave": (512, 1e-3, 1e-5, 30, 1e-4),
    "paper-speech-commands": (512, 1e-3, 0.0, 20, 1e-2),
    "paper-pems-sf": (32, 1e-3, 0.0, 30, 1e-3),
}


@pytest.mark.parametrize("name", APPENDIX)
def test_the_papers_settings(name):
    recipe = RECIPES[name]
    found = recipe.batch_size, recipe.learning_rate, recipe.weight_decay, recipe.epochs, recipe.model["rtol"]
    assert found == APPENDIX[name]
    assert recipe.model["atol"] == recipe.model["rtol"]
    assert (recipe.optimizer, recipe.schedule, recipe.select) == ("adam", "constant", "metric")
    assert recipe.dropout == 0
    assert recipe.clip is None


def test_every_recipe_is_the_papers_or_for_data_of_ones_own():
    assert set(RECIPES) == {"tuned", "forecast", *APPENDIX}


@pytest.mark.parametrize("name", RECIPES)
def test_its_settings_build_a_model(name):
    build_model("mvc-gp", channels=3, outputs=2, time_scale=1.0, hidden=4, **RECIPES[name].model)


@pytest.mark.parametrize("model", MODELS)
def test_the_general_recipe_suits_every_model(model):
    build_model(model, channels=3, outputs=2, time_scale=1.0, hidden=4, **RECIPES["tuned"].model)


def test_recipes_do_not_change():
    with pytest.raises(FrozenInstanceError):
        RECIPES["tuned"].epochs = 3
    with pytest.raises(TypeError):
        RECIPES["mine"] = Recipe()
    assert replace(RECIPES["tuned"], epochs=3) != RECIPES["tuned"]
    assert {RECIPES["tuned"], RECIPES["tuned"]} == {recipe_of("tuned")}


def test_a_recipe_by_name_with_changes():
    assert recipe_of("paper-uwave", seed=2) == replace(RECIPES["paper-uwave"], seed=2)
    with pytest.raises(ValueError, match="there is no recipe 'uwave'; use any of: 'tuned', 'forecast', 'paper"):
        recipe_of("uwave")


def rates_of(kind, steps, rate=0.3, **settings):
    """Learning rate and first beta at each step, by torch."""
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], rate, betas=(0.9, 0.999))
    schedule, found = kind(optimizer, **settings), []
    for step in range(steps):
        found.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["betas"][0]))
        optimizer.step()
        if step < steps - 1:
            schedule.step()
    return found


@pytest.mark.parametrize("steps", [2, 3, 4, 10, 37])
def test_one_cycle_is_torchs(steps):
    recipe = Recipe(learning_rate=0.3)
    expected = rates_of(torch.optim.lr_scheduler.OneCycleLR, steps, max_lr=0.3, total_steps=steps)
    for step, (rate, momentum) in enumerate(expected):
        assert recipe.learning_rate_at(step, steps) == pytest.approx(rate, rel=1e-9)
        assert recipe.momentum_at(step, steps) == pytest.approx(momentum, rel=1e-9)


def test_a_cycle_of_one_step_has_a_rate():
    assert 0 < Recipe().learning_rate_at(0, 1) <= Recipe().learning_rate


def test_cosine_is_torchs():
    recipe = Recipe(learning_rate=0.3, schedule="cosine")
    expected = rates_of(torch.optim.lr_scheduler.CosineAnnealingLR, 10, T_max=10)
    for step, (rate, momentum) in enumerate(expected):
        assert recipe.learning_rate_at(step, 10) == pytest.approx(rate)
        assert recipe.momentum_at(step, 10) == momentum == 0.9


def test_constant_is_constant():
    recipe = Recipe(schedule="constant")
    assert {(recipe.learning_rate_at(step, 9), recipe.momentum_at(step, 9)) for step in range(9)} == {(2e-3, 0.9)}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epochs": 0}, "epochs is 0; give a whole number of at least 1"),
        ({"batch_size": -1}, "batch_size is -1; give a whole number of at least 1"),
        ({"seed": -1}, "seed is -1; give a whole number of at least 0"),
        ({"epoch_size": 0}, "epoch_size is 0; give at least one series, or None for all of them"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; give a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan; give a number above 0"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1; give 0 or a small number above"),
        ({"clip": 0.0}, "clip is 0.0; give the largest gradient norm, or None"),
        ({"patience": 0}, "patience is 0; give at least one epoch, or None"),
        ({"dropout": 1.0}, "dropout is 1.0; give the share of stamps to hide, from 0 to below 1"),
        ({"optimizer": "sgd"}, "optimizer is 'sgd'; use any of: 'adam', 'adamw'"),
        ({"schedule": "step"}, "schedule is 'step'; use any of: 'constant', 'one-cycle', 'cosine'"),
        ({"precision": "16"}, "precision is '16'; use any of: '32-true', 'bf16-mixed', '64-true'"),
        ({"select": "auc"}, "select is 'auc'; use any of: 'metric', 'loss'"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        Recipe(**wrong)


def test_a_single_step_is_a_step():
    assert Recipe(learning_rate=0.01).learning_rate_at(0, 1) == pytest.approx(0.01)
