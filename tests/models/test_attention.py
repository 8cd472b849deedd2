"""Attention: weights over what was observed, encoders that see no padding, and how alike the views are."""

import numpy as np
import pytest
import torch
from small_models import LONG, MIDDLE, NOTHING, ONE_OBSERVATION, SHORT, STAMPS_WITHOUT_VALUES, series_of, small_model
from torch import nn

from smoothcde.models import diversity_penalty, largest_similarity, view_similarity
from smoothcde.models.attention import ConvEncoder, QueryAttention, context_width, encoder_features
from smoothcde.training import CrossEntropy, Recipe, train

RAGGED = series_of(LONG, SHORT, MIDDLE, ONE_OBSERVATION, STAMPS_WITHOUT_VALUES, NOTHING)
ATTENTIVE = ["mv-kernel", "mv-gp", "mvc-kernel", "mvc-gp"]


def ragged_batch():
    return RAGGED.batch(dtype=torch.float64)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def conv():
    torch.manual_seed(0)
    return ConvEncoder(features=2, width=4).double()


class TestWeights:
    @pytest.mark.parametrize("name", ATTENTIVE)
    def test_sum_to_one_over_observed_stamps_and_are_zero_elsewhere(self, name):
        batch = ragged_batch()
        weights = small_model(name).solve(batch).attention
        assert weights.shape == (6, 2, 7)
        observed = batch.observed[:, None, :].expand_as(weights)
        assert (weights[~observed] == 0).all()
        assert (weights[observed] > 0).all()
        torch.testing.assert_close(weights[:4].sum(dim=2), torch.ones(4, 2, dtype=torch.float64))

    @pytest.mark.parametrize("name", ATTENTIVE)
    def test_are_all_zero_for_a_series_without_observations(self, name):
        assert (small_model(name).solve(ragged_batch()).attention[4:] == 0).all()

    @pytest.mark.parametrize("name", ATTENTIVE)
    def test_do_not_depend_on_the_rest_of_the_batch(self, name):
        model = small_model(name)
        together = model.solve(ragged_batch()).attention
        for i, length in enumerate(RAGGED.lengths[:5]):
            alone = model.solve(RAGGED.batch([i], dtype=torch.float64)).attention
            torch.testing.assert_close(alone[0], together[i, :, :length])
            assert (together[i, :, length:] == 0).all()

    @pytest.mark.parametrize(("scaled", "divisor"), [(True, np.sqrt(3)), (False, 1.0)])
    def test_are_the_softmax_of_the_papers_equation(self, scaled, divisor):
        batch = ragged_batch()
        torch.manual_seed(0)
        attention = QueryAttention(views=2, width=3, scaled=scaled).double()
        context = normal(6, 7, 3)
        weights = attention(attention.scores(context), batch).detach().numpy()
        queries, observed = attention.queries.detach().numpy(), batch.observed.numpy()
        for i in range(4):
            for view in range(2):
                scores = np.array([queries[view] @ context[i, k].numpy() / divisor for k in range(7)])
                mass = np.where(observed[i], np.exp(scores), 0.0)
                np.testing.assert_allclose(weights[i, view], mass / mass.sum(), rtol=1e-12)

    def test_stay_finite_for_scores_of_any_size(self):
        attention = QueryAttention(views=1, width=1)
        with torch.no_grad():
            attention.queries.fill_(1e6)
        weights = attention(attention.scores(torch.arange(42.0).view(6, 7, 1)), RAGGED.batch())
        assert weights.isfinite().all()

    def test_queries_start_standard_normal(self):
        torch.manual_seed(0)
        queries = QueryAttention(views=8, width=512).queries.detach()
        assert abs(float(queries.mean())) < 0.05
        assert abs(float(queries.std()) - 1) < 0.05

    @pytest.mark.parametrize("name", ["linear", "cubic", "kernel", "gp"])
    def test_models_of_one_plain_path_have_none(self, name):
        assert small_model(name).solve(ragged_batch()).attention is None


class TestConvEncoder:
    def test_is_torchs_convolution_with_replicated_ends(self, conv):
        batch = series_of(LONG).batch(dtype=torch.float64)
        features = normal(1, 7, 2)
        layers = []
        for own in conv.layers:
            layer = nn.Conv1d(own.in_channels, own.out_channels, 3, padding=1, padding_mode="replicate").double()
            layer.load_state_dict(own.state_dict())
            layers += [layer, nn.ReLU()]
        torch.testing.assert_close(conv(features, batch.lengths), nn.Sequential(*layers)(features.mT).mT)

    def test_does_not_see_padding(self, conv):
        batch = ragged_batch()
        features = normal(6, 7, 2)
        together = conv(features, batch.lengths)
        for i, length in enumerate(RAGGED.lengths[:5]):
            alone = conv(features[i : i + 1, :length], RAGGED.batch([i], dtype=torch.float64).lengths)
            torch.testing.assert_close(alone[0], together[i, :length])
        elsewhere = torch.where(batch.stamped[:, :, None], features, 1e6)
        torch.testing.assert_close(conv(elsewhere, batch.lengths)[:5], together[:5])

    def test_takes_a_batch_without_any_stamp(self, conv):
        batch = series_of(NOTHING, NOTHING).batch(dtype=torch.float64)
        assert conv(encoder_features(batch, "values", 1.0), batch.lengths).isfinite().all()


class TestEncoderInputs:
    def test_values_are_filled_by_straight_lines(self):
        batch = series_of(SHORT).batch(dtype=torch.float64)
        filled = encoder_features(batch, "values", 5.0)[0]
        expected = [[1.0, 0.8], [-0.5, 0.8 - 2.2 * 1.5 / 5], [0.25, 0.8 - 2.2 * 1.9 / 5], [0.25, -1.4]]
        torch.testing.assert_close(filled, torch.tensor(expected, dtype=torch.float64))

    def test_mask_and_gap_follow_the_values(self):
        batch = ragged_batch()
        features = encoder_features(batch, "values+mask+gap", time_scale=2.0)
        assert features.shape == (6, 7, context_width(2, "values+mask+gap")) == (6, 7, 5)
        torch.testing.assert_close(features[..., :2], encoder_features(batch, "values", 2.0))
        assert torch.equal(features[..., 2:4], batch.mask.double())
        torch.testing.assert_close(features[1, :4, 4], torch.tensor([0, 1.5, 0.4, 3.1], dtype=torch.float64) / 2)

    @pytest.mark.parametrize("name", ["mv-gp", "mvc-gp"])
    def test_choose_what_attention_depends_on(self, name):
        complete = np.array([[0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0]])
        thinned = complete.copy()
        thinned[0, 1] = np.nan  # on a straight line, so that filling restores it
        batch = series_of((complete, [0, 1, 2, 3]), (thinned, [0, 1, 2, 3])).batch(dtype=torch.float64)
        blind = small_model(name).solve(batch).attention
        torch.testing.assert_close(blind[0], blind[1])
        seeing = small_model(name, encoder_inputs="values+mask+gap").solve(batch).attention
        assert (seeing[0] - seeing[1]).abs().max() > 1e-3

    def test_the_context_never_enters_the_path(self):
        # Queries of zero weigh all stamps alike, whatever the encoder makes of them.
        model = small_model("mvc-gp")
        with torch.no_grad():
            model.attention.queries.zero_()
        batch = ragged_batch()
        path = model.solve(batch).path
        with torch.no_grad():
            for layer in model.encoder.layers:
                layer.weight.normal_()
        torch.testing.assert_close(model.solve(batch).path.coefficients, path.coefficients)


class TestSimilarity:
    weights = torch.softmax(normal(5, 3, 7), dim=2)

    def cosines(self):
        w = self.weights.numpy()
        norm = np.sqrt((w**2).sum(axis=2))
        return np.array(
            [[[w[i, a] @ w[i, b] / norm[i, a] / norm[i, b] for b in range(3)] for a in range(3)] for i in range(5)]
        )

    def test_of_two_views_is_their_cosine(self):
        np.testing.assert_allclose(view_similarity(self.weights), self.cosines(), rtol=1e-12)

    def test_largest_is_the_mean_over_series_of_the_most_alike_pair(self):
        expected = np.mean([max(c[0, 1], c[0, 2], c[1, 2]) for c in self.cosines()])
        np.testing.assert_allclose(largest_similarity(self.weights), expected, rtol=1e-12)

    def test_penalty_is_the_mean_over_pairs_and_series(self):
        expected = np.mean([(c[0, 1] + c[0, 2] + c[1, 2]) / 3 for c in self.cosines()])
        np.testing.assert_allclose(diversity_penalty(self.weights), expected, rtol=1e-12)

    def test_equal_views_are_as_alike_as_can_be(self):
        same = self.weights[:, :1].expand(-1, 3, -1)
        np.testing.assert_allclose([largest_similarity(same), diversity_penalty(same)], 1.0, rtol=1e-12)

    def test_views_of_different_stamps_are_not_alike_at_all(self):
        apart = torch.eye(4)[None]
        assert float(largest_similarity(apart)) == float(diversity_penalty(apart)) == 0

    def test_a_single_view_is_like_no_other(self):
        assert float(largest_similarity(self.weights[:, :1])) == float(diversity_penalty(self.weights[:, :1])) == 0

    def test_stays_finite_with_its_gradient_for_a_series_without_observations(self):
        weights = torch.zeros(2, 3, 4, requires_grad=True)
        diversity_penalty(weights).backward()
        assert weights.grad is not None
        assert weights.grad.isfinite().all()
        assert float(diversity_penalty(weights.detach())) == 0


class TestDiversity:
    def test_enters_the_outcome_as_a_penalty(self):
        outcome = small_model("mvc-gp", diversity=0.3).solve(ragged_batch())
        torch.testing.assert_close(outcome.penalty, 0.3 * diversity_penalty(outcome.attention))
        assert outcome.penalty > 0

    @pytest.mark.parametrize("name", ["linear", "gp", "mvc-gp"])
    def test_is_off_by_default(self, name):
        assert float(small_model(name).solve(ragged_batch()).penalty) == 0

    def test_is_lowered_by_training(self):
        series = RAGGED[:3]
        before, after = [], []

        def similarity(model):
            return float(diversity_penalty(model.smooth(series.batch())[1].detach()))

        for diversity in (0.0, 3.0):
            model = small_model("mvc-gp", torch.float32, diversity=diversity)
            before.append(similarity(model))
            train(model, series, np.arange(3), CrossEntropy(), Recipe(epochs=10, batch_size=3, learning_rate=0.1))
            after.append(similarity(model))
        assert before[0] == before[1]
        assert after[1] < 0.7 * before[1]
        assert after[1] < after[0]


class TestContextAt:
    def test_is_the_context_of_the_whole_series_there(self):
        torch.manual_seed(0)
        encoder = ConvEncoder(3, 8).double()
        features, lengths = torch.randn(4, 9, 3, dtype=torch.float64), torch.tensor([9, 1, 2, 5])
        whole = encoder(features, lengths)
        series, places = (torch.arange(9) < lengths[:, None]).nonzero(as_tuple=True)
        torch.testing.assert_close(encoder.context_at(features, lengths, series, places), whole[series, places])
