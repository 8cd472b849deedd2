"""Training: the loss goes down, a seed repeats a run, and what happened is written down."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from smoothcde.models import build_model
from smoothcde.series import SeriesSet
from smoothcde.training import Recipe, train_classifier

LABELS = np.arange(24) % 3


def trends():
    """Series that fall, stay or rise, from anywhere, at twelve stamps."""
    start = np.random.default_rng(0).normal(size=24)
    return SeriesSet.from_arrays(
        [[x + 3 * (k - 1) * np.linspace(0, 1, 12)] for k, x in zip(LABELS, start, strict=True)]
    )


def model_of(name="mvc-gp", **settings):
    torch.manual_seed(0)
    several = {"encoder_width": 6} if name.startswith("mv") else {}
    sizes = {"channels": 1, "outputs": 3, "time_scale": 11.0, "bandwidths": (0.2,), "hidden": 6, "width": 6}
    return build_model(name, **(sizes | several | settings))


def run(recipe, model=None, **settings):
    model = model or model_of(**settings)
    return train_classifier(model, trends(), LABELS, recipe), model


def test_lowers_the_loss():
    record, _ = run(Recipe(epochs=12, batch_size=24, learning_rate=0.05))
    assert len(record.loss) == len(record.nfe) == 12
    assert record.loss[-1] < 0.5 * record.loss[0]
    assert record.seconds > 0


def test_the_same_seed_repeats_a_run_exactly():
    recipe = Recipe(epochs=2, batch_size=8, seed=3)
    (first, one), (second, two) = run(recipe), run(recipe)
    assert first.loss == second.loss
    assert first.nfe == second.nfe
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)


def test_another_seed_is_another_order():
    recipe = Recipe(epochs=2, batch_size=8, seed=3)
    assert run(recipe)[0].loss != run(replace(recipe, seed=4))[0].loss


def test_training_does_not_touch_the_global_random_state():
    model = model_of()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    run(Recipe(epochs=1), model)
    assert torch.equal(torch.rand(3), expected)


def test_every_series_is_seen_once_per_epoch(monkeypatch):
    seen = []
    batch = SeriesSet.batch
    monkeypatch.setattr(
        SeriesSet, "batch", lambda self, chosen, **how: seen.append(chosen) or batch(self, chosen, **how)
    )
    run(Recipe(epochs=2, batch_size=10))
    assert [len(chosen) for chosen in seen] == [8, 8, 8] * 2
    for epoch in (seen[:3], seen[3:]):
        assert sorted(np.concatenate(epoch)) == list(range(24))
    assert np.concatenate(seen[:3]).tolist() != np.concatenate(seen[3:]).tolist()


def test_each_step_is_reported():
    told = []
    record = train_classifier(
        model_of(), trends(), LABELS, Recipe(epochs=2, batch_size=12), lambda *step: told.append(step)
    )
    assert [epoch for epoch, _, _ in told] == [0, 0, 1, 1]
    np.testing.assert_allclose(record.loss, [np.mean([loss for e, loss, _ in told if e == epoch]) for epoch in (0, 1)])
    np.testing.assert_allclose(record.nfe, [np.mean([nfe for e, _, nfe in told if e == epoch]) for epoch in (0, 1)])


def test_the_first_loss_is_the_cross_entropy_of_the_untrained_model_with_its_penalty():
    model = model_of(bandwidths=(0.1, 0.3), diversity=0.5)
    with torch.no_grad():
        outcome = model.solve(trends().batch())
        expected = torch.nn.functional.cross_entropy(outcome.outputs, torch.as_tensor(LABELS)) + outcome.penalty
    record, _ = run(Recipe(epochs=1, batch_size=24), model)
    assert outcome.penalty > 0
    np.testing.assert_allclose(record.loss[0], float(expected), rtol=1e-5)


def test_models_train_in_float64_too():
    record, model = run(Recipe(epochs=1, batch_size=24), model_of().double())
    assert np.isfinite(record.loss).all()
    assert all(p.dtype == torch.float64 for p in model.parameters())


@pytest.mark.parametrize("gradient", ["checkpoint", "adjoint"])
def test_any_gradient_trains_alike(gradient):
    recipe = Recipe(epochs=2, batch_size=24, learning_rate=0.05)
    expected, _ = run(recipe, rtol=1e-6, atol=1e-6)
    record, _ = run(recipe, rtol=1e-6, atol=1e-6, gradient=gradient)
    np.testing.assert_allclose(record.loss, expected.loss, rtol=1e-3)


def test_as_many_labels_as_series_are_needed():
    with pytest.raises(ValueError, match="there are 24 series and 23 labels; give one label per series"):
        train_classifier(model_of(), trends(), LABELS[:-1], Recipe(epochs=1))
