"""Scores of the convolutional encoder in compiled code equal torch's own convolutions, gradients included."""

import copy

import pytest
import torch
from torch import nn

from smoothcde.models.attention import ConvEncoder, QueryAttention, compiled_scores

# Series, stamps, features, width, views: multiples of a tile and not, several pieces of a series and the reverse.
SHAPES = [(5, 40, 3, 128, 3), (7, 9, 2, 20, 2), (3, 1000, 5, 64, 4), (4, 1, 1, 10, 1), (60, 33, 13, 32, 3)]


def parts(features, width, views):
    torch.manual_seed(0)
    return ConvEncoder(features, width), QueryAttention(views, width)


def by_convolutions(encoder, attention, features, lengths):
    """Series by series, by torch's own convolution with replicated ends, in float64."""
    encoder, attention = copy.deepcopy(encoder).double(), copy.deepcopy(attention).double()
    scores = []
    for series, length in zip(features.double(), lengths.tolist(), strict=True):
        x = series[:length].T[None]
        for layer in encoder.layers:
            x = torch.relu(layer(nn.functional.pad(x, (1, 1), mode="replicate"))) if length else x
        own = attention.scores(x.mT)[0] if length else features.new_zeros(len(attention.queries), 0).double()
        scores.append(nn.functional.pad(own, (0, features.shape[1] - length)))
    return torch.stack(scores), [*encoder.parameters(), attention.queries]


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_and_their_gradients_are_those_of_torchs_convolutions(shape):
    series, stamps, inputs, width, views = shape
    encoder, attention = parts(inputs, width, views)
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(series, stamps, inputs, generator=generator)
    lengths = torch.randint(0, stamps + 1, (series,), generator=generator)
    lengths[0] = stamps
    found = compiled_scores(encoder, attention, features, lengths)
    expected, weights = by_convolutions(encoder, attention, features, lengths)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=3e-6)
    g = torch.randn(found.shape, generator=generator)
    ours = torch.autograd.grad(found, [*encoder.parameters(), attention.queries], g)
    theirs = torch.autograd.grad(expected, weights, g.double())
    for one, other in zip(ours, theirs, strict=True):
        assert float((one - other).abs().max()) <= 3e-6 * max(1.0, float(other.abs().max()))


def test_second_derivatives_are_those_of_torch():
    encoder, attention = parts(2, 6, 2)
    features, lengths = torch.randn(3, 8, 2, generator=torch.Generator().manual_seed(1)), torch.tensor([8, 3, 1])

    def curvature(scores, weights):
        first = torch.autograd.grad(scores.square().sum(), weights, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), weights)

    found = curvature(
        compiled_scores(encoder, attention, features, lengths), [*encoder.parameters(), attention.queries]
    )
    for one, other in zip(found, curvature(*by_convolutions(encoder, attention, features, lengths)), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


def test_a_series_does_not_depend_on_its_neighbours_to_the_last_bit():
    encoder, attention = parts(3, 32, 2)
    features, lengths = torch.randn(9, 70, 3, generator=torch.Generator().manual_seed(1)), torch.arange(62, 71)
    with torch.no_grad():
        together = compiled_scores(encoder, attention, features, lengths)
        alone = [compiled_scores(encoder, attention, features[i : i + 1], lengths[i : i + 1]) for i in range(9)]
    assert torch.equal(torch.cat(alone), together)


def test_features_that_want_a_gradient_are_left_to_torch():
    encoder, attention = parts(3, 32, 2)
    features = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(1), requires_grad=True)
    assert compiled_scores(encoder, attention, features, torch.tensor([5, 5])) is None
