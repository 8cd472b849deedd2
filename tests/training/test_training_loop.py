"""Training: the loss goes down, a seed repeats a run, the best epoch stays, and what happened is written down."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_training import LABELS, model_of, run, trends, weights_of

from smoothcde.models.forecast import build_forecaster
from smoothcde.series import SeriesSet
from smoothcde.solve import SolveError
from smoothcde.training import CrossEntropy, ForecastError, Recipe, SquaredError, TrainingError, make_fabric, train


def same(one, two):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_lowers_the_loss():
    record, _ = run(Recipe(epochs=12, batch_size=24, learning_rate=0.05), name="mvc-gp")
    assert [row["epoch"] for row in record.epochs] == list(range(1, 13))
    assert record.loss[-1] < 0.5 * record.loss[0]
    assert all(nfe > 0 for nfe in record.nfe)
    assert record.best_epoch == 12
    assert record.seconds >= sum(row["seconds"] for row in record.epochs) * 0.999 > 0


def test_the_same_seed_repeats_a_run_exactly():
    recipe = Recipe(epochs=2, batch_size=8, seed=3, dropout=0.4)
    (first, one), (second, two) = run(recipe), run(recipe)
    assert first.loss == second.loss
    assert same(one, two)


def test_another_seed_is_another_order_and_hides_other_stamps():
    recipe = Recipe(epochs=2, batch_size=8, seed=3)
    assert run(recipe)[0].loss != run(replace(recipe, seed=4))[0].loss
    whole = Recipe(epochs=2, batch_size=24, dropout=0.5)
    assert run(whole)[0].loss[0] != run(replace(whole, seed=4))[0].loss[0]


def test_training_does_not_touch_the_global_random_state():
    model = model_of("gru")
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    run(Recipe(epochs=1), model)
    assert torch.equal(torch.rand(3), expected)


def test_every_series_is_seen_once_per_epoch(monkeypatch):
    seen = []
    batch = SeriesSet.batch
    monkeypatch.setattr(
        SeriesSet, "batch", lambda self, chosen, **how: seen.append(self.ids) or batch(self, chosen, **how)
    )
    run(Recipe(epochs=2, batch_size=10))
    assert [len(ids) for ids in seen] == [8, 8, 8] * 2
    for epoch in (seen[:3], seen[3:]):
        assert sorted(sum(epoch, ())) == sorted(trends().ids)


def test_an_epoch_of_a_given_size_sees_so_many_series_and_others_each_time(monkeypatch):
    seen = []
    batch = SeriesSet.batch
    monkeypatch.setattr(
        SeriesSet, "batch", lambda self, chosen, **how: seen.append(self.ids) or batch(self, chosen, **how)
    )
    record, _ = run(Recipe(epochs=3, batch_size=5, epoch_size=10))
    assert [len(ids) for ids in seen] == [5] * 6
    epochs = [set(seen[k] + seen[k + 1]) for k in (0, 2, 4)]
    assert all(len(epoch) == 10 for epoch in epochs)
    assert len(set.union(*epochs)) > 10
    # The loss of an epoch is the mean over what it saw: near log 3 for three classes before anything is learnt.
    assert record.loss[0] == pytest.approx(np.log(3), rel=0.3)
    assert sum(seen[:3], ()) != sum(seen[3:], ())


def test_each_step_is_reported():
    told = []
    record, _ = run(Recipe(epochs=2, batch_size=8), name="mvc-gp", on_step=lambda *step: told.append(step))
    assert [step[:2] for step in told] == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    for epoch, row in enumerate(record.epochs, start=1):
        np.testing.assert_allclose(row["loss"], np.mean([loss for e, _, loss, _ in told if e == epoch]))
        np.testing.assert_allclose(row["nfe"], np.mean([nfe for e, _, _, nfe in told if e == epoch]))


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
    expected, _ = run(recipe, model_of(rtol=1e-6, atol=1e-6))
    record, _ = run(recipe, model_of(rtol=1e-6, atol=1e-6, gradient=gradient))
    np.testing.assert_allclose(record.loss, expected.loss, rtol=1e-3)


def test_micro_batches_take_the_same_steps():
    recipe = Recipe(epochs=3, batch_size=11, learning_rate=0.05, dropout=0.3, precision="64-true")
    made, validation = [], (trends(seed=1), LABELS)
    for size in (None, 4):
        model, sizes = model_of("mvc-gp", bandwidths=(0.1, 0.3), diversity=0.1), []
        solve = model.solve
        model.solve = lambda batch, solve=solve, sizes=sizes: (sizes.append(len(batch)), solve(batch))[1]
        record, _ = run(replace(recipe, micro_batch=size), model, validation=validation)
        made.append((record, weights_of(model), max(sizes)))
    (whole, expected, most), (parts, weights, fewest) = made
    assert (most, fewest) == (8, 4)  # validation takes micro-batches, too
    np.testing.assert_allclose(parts.loss, whole.loss, rtol=1e-6)  # reported in single precision
    for name, tensor in weights.items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-6, atol=1e-9)


def test_mixed_precision_trains_and_keeps_weights_in_float32():
    record, model = run(Recipe(epochs=8, batch_size=24, learning_rate=0.05, precision="bf16-mixed"), name="mvc-gp")
    exact, _ = run(Recipe(epochs=8, batch_size=24, learning_rate=0.05), name="mvc-gp")
    assert all(p.dtype == torch.float32 for p in model.parameters())
    assert record.loss != exact.loss
    np.testing.assert_allclose(record.loss[0], exact.loss[0], rtol=0.02)
    assert record.loss[-1] < 0.7 * record.loss[0]


def test_double_precision_can_be_asked_for():
    _, model = run(Recipe(epochs=1, precision="64-true"), validation=(trends(), LABELS))
    assert all(p.dtype == torch.float64 for p in model.parameters())


def test_a_fabric_of_ones_own_is_used():
    _, model = run(Recipe(epochs=1), fabric=make_fabric("cpu", "64-true"))
    assert all(p.dtype == torch.float64 for p in model.parameters())


@pytest.mark.parametrize(("optimizer", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
def test_the_optimiser_is_torchs_own(optimizer, kind):
    recipe = Recipe(epochs=3, batch_size=24, optimizer=optimizer, schedule="constant", weight_decay=0.1, clip=None)
    _, model = run(recipe)
    expected = model_of("gru")
    oracle = kind(expected.parameters(), recipe.learning_rate, weight_decay=0.1)
    for _ in range(3):
        oracle.zero_grad()
        torch.nn.functional.cross_entropy(expected(trends().batch()), torch.as_tensor(LABELS)).backward()
        oracle.step()
    for a, b in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_gradients_are_clipped_to_the_norm_asked_for():
    recipe = Recipe(epochs=1, batch_size=24, clip=1e-3)
    _, model = run(recipe)
    gradients = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert float(gradients.norm()) == pytest.approx(1e-3, rel=1e-3)


class TestWeights:
    def test_a_series_without_weight_has_no_say(self):
        weights = (LABELS > 0).astype(float)
        _, model = run(Recipe(epochs=1, batch_size=24), weights=weights)
        some = LABELS > 0
        other = model_of("gru")
        train(other, trends()[some], LABELS[some], CrossEntropy(), Recipe(epochs=1, batch_size=16))
        for a, b in zip(model.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)

    def test_only_their_ratios_matter(self):
        weights = np.linspace(1, 2, 24)
        one, two = (run(Recipe(epochs=1), weights=scale * weights)[0].loss for scale in (1, 50))
        np.testing.assert_allclose(one, two, rtol=1e-6)

    @pytest.mark.parametrize("wrong", [-np.ones(24), np.zeros(24), np.full(24, np.nan)])
    def test_they_are_checked(self, wrong):
        with pytest.raises(ValueError, match="training weights must be finite, none below 0 and not all 0"):
            run(Recipe(epochs=1), weights=wrong)
        with pytest.raises(ValueError, match="validation weights must be finite"):
            run(Recipe(epochs=1), validation=(trends(), LABELS, wrong))

    def test_there_is_one_per_series(self):
        with pytest.raises(ValueError, match=r"training weights have shape \(3,\); give one number per series \(24\)"):
            run(Recipe(epochs=1), weights=np.ones(3))


class TestValidation:
    def test_the_best_epochs_weights_stay(self):
        kept, model = [], model_of("gru")
        recipe = Recipe(epochs=8, batch_size=24, learning_rate=0.2, schedule="constant", clip=None)
        others = trends(seed=1), np.roll(LABELS, 1)  # labels that training makes worse
        record, _ = run(recipe, model, validation=others, on_step=lambda *step: kept.append(weights_of(model)))
        scores = [(row["validation_accuracy"], -row["validation_loss"]) for row in record.epochs]
        assert scores.index(max(scores)) + 1 == record.best_epoch < 8
        assert all(torch.equal(kept[record.best_epoch - 1][name], value) for name, value in weights_of(model).items())

    def test_the_loss_can_be_what_selects(self):
        recipe = Recipe(epochs=8, batch_size=24, learning_rate=0.2, select="loss")
        record, _ = run(recipe, validation=(trends(seed=1), np.roll(LABELS, 1)))
        losses = [row["validation_loss"] for row in record.epochs]
        assert losses.index(min(losses)) + 1 == record.best_epoch

    def test_its_figures_are_those_of_the_model(self):
        others, weights = trends(seed=1), np.linspace(0, 1, 24)
        record, model = run(Recipe(epochs=1, batch_size=10), validation=(others, LABELS, weights))
        with torch.no_grad():
            outputs = model.eval()(others.batch())
        right = (outputs.argmax(dim=1).numpy() == LABELS) @ weights / weights.sum()
        loss = torch.nn.functional.cross_entropy(outputs, torch.as_tensor(LABELS), reduction="none").numpy()
        assert record.epochs[0]["validation_accuracy"] == pytest.approx(right)
        assert record.epochs[0]["validation_loss"] == pytest.approx(loss @ weights / weights.sum(), rel=1e-5)

    def test_patience_ends_the_run(self):
        recipe = Recipe(epochs=30, batch_size=24, learning_rate=0.2, schedule="constant", patience=3)
        record, _ = run(recipe, validation=(trends(seed=1), np.roll(LABELS, 1)))
        assert record.stopped
        assert len(record.epochs) == record.best_epoch + 3 < 30

    def test_without_it_patience_has_nothing_to_wait_for(self):
        record, _ = run(Recipe(epochs=3, patience=1))
        assert not record.stopped
        assert len(record.epochs) == 3


def test_numbers_can_be_the_target():
    slopes = np.stack([LABELS - 1.0, 2.0 - LABELS], axis=1)
    recipe = Recipe(epochs=40, batch_size=24, learning_rate=0.05)
    with pytest.raises(ValueError, match="there are 24 training series and 2 targets"):
        train(model_of("gru", outputs=2), trends(), slopes[:2], SquaredError(), recipe)
    model = model_of("gru", outputs=2)
    record = train(model, trends(), slopes, SquaredError(), recipe, validation=(trends(seed=1), slopes))
    assert record.epochs[-1]["validation_r2"] > 0.8


class TestNumbersThatAreNone:
    def test_the_sentence_names_epoch_step_and_series(self):
        targets = LABELS.astype(float)
        targets[5] = 1e30  # its square is beyond float32
        model = model_of("gru", outputs=1)
        before = weights_of(model)
        words = "the loss is inf in epoch 1, step 1, on one of the series s.*; look for extreme values there, lower"
        with pytest.raises(TrainingError, match=words) as raised:
            train(model, trends(), targets, SquaredError(), Recipe(epochs=1, batch_size=24))
        assert set(raised.value.series_ids) == set(trends().ids)
        assert all(torch.equal(before[name], value) for name, value in weights_of(model).items())

    def test_only_the_batch_in_question_is_named(self):
        targets = LABELS.astype(float)
        targets[5] = 1e30
        with pytest.raises(TrainingError, match=r"in epoch 1, step [123], on one of") as raised:
            train(model_of("gru", outputs=1), trends(), targets, SquaredError(), Recipe(epochs=1, batch_size=8))
        assert "s5" in raised.value.series_ids
        assert len(raised.value.series_ids) == 8

    def test_a_gradient_that_is_none_is_told_too(self):
        model = model_of("gru")
        next(model.parameters()).register_hook(lambda gradient: gradient * torch.nan)
        with pytest.raises(TrainingError, match="the gradient is not finite in epoch 1, step 1, on one of the series"):
            run(Recipe(epochs=1), model)

    def test_a_solve_that_fails_names_its_series(self):
        values = [[np.linspace(0, 1, 12)] for _ in LABELS]
        values[5][0] = 500 * np.sin(40 * values[5][0])
        series = SeriesSet.from_arrays(values, ids=[f"patient {i}" for i in range(24)])
        with pytest.raises(
            TrainingError, match="did not finish in epoch 1, step 1, on series patient 5; The step limit"
        ) as raised:
            train(model_of("linear", max_steps=40), series, LABELS, CrossEntropy(), Recipe(epochs=1, batch_size=24))
        assert isinstance(raised.value.__cause__, SolveError)
        assert len(raised.value.series_ids) == 24


def test_as_many_labels_as_series_are_needed():
    with pytest.raises(ValueError, match="there are 24 training series and 23 targets; give one per series"):
        train(model_of("gru"), trends(), LABELS[:-1], CrossEntropy(), Recipe(epochs=1))
    with pytest.raises(ValueError, match="there are 24 validation series and 2 targets"):
        run(Recipe(epochs=1), validation=(trends(), LABELS[:2]))
    with pytest.raises(ValueError, match="there are no series to train on"):
        train(model_of("gru"), trends()[:0], LABELS[:0], CrossEntropy(), Recipe(epochs=1))


def test_a_validation_that_cannot_be_solved_names_its_series():
    values = [[np.linspace(0, 1, 12)] for _ in LABELS]
    values[5][0] = 500 * np.sin(40 * values[5][0])
    others = SeriesSet.from_arrays(values, ids=[f"patient {i}" for i in range(24)])
    with pytest.raises(TrainingError, match="did not finish in epoch 1, step 3, on series patient 5; The step limit"):
        run(Recipe(epochs=1, batch_size=8), model_of("linear", max_steps=40), validation=(others, LABELS))


def test_patience_that_ends_with_the_last_epoch_has_stopped_nothing():
    recipe = Recipe(epochs=2, batch_size=24, patience=1, learning_rate=1e-12, schedule="constant", weight_decay=0.0)
    record = train(model_of("gru"), trends(), LABELS, CrossEntropy(), recipe, validation=(trends(), LABELS))
    assert len(record.epochs) == 2
    assert not record.stopped


def test_channels_read_one_by_one_still_name_the_series_that_failed():
    values = [np.zeros((3, 10)) + np.linspace(0, 1, 10) for _ in range(6)]
    values[1][0] = 3.0 * np.array([1.0, -1.0] * 5)
    series = SeriesSet.from_arrays(values, ids=[f"s{i}" for i in range(6)])
    sizes = {"channels": 3, "horizon": 2, "context": 10, "time_scale": 9.0, "independent": True, "hidden": 6}
    model = build_forecaster("linear", **sizes, max_steps=12, rtol=1e-5, atol=1e-5)
    with pytest.raises(TrainingError, match=r"on series s1\b"):
        train(model, series, np.zeros((6, 2, 3)), ForecastError(), Recipe(epochs=1, batch_size=6))
