"""Models of the comparison, by class and by name."""

from smoothcde.models.attention import diversity_penalty, largest_similarity, view_similarity
from smoothcde.models.bandwidths import geometric, homogeneous, silverman
from smoothcde.models.build import MODELS, build_model
from smoothcde.models.capacity import matching_hidden, parameter_count
from smoothcde.models.cde import CDEModel, Outcome
from smoothcde.models.fields import TanhField
from smoothcde.models.multiview import MultiViewCDE
from smoothcde.models.neural_cde import NeuralCDE

__all__ = [
    "MODELS",
    "CDEModel",
    "MultiViewCDE",
    "NeuralCDE",
    "Outcome",
    "TanhField",
    "build_model",
    "diversity_penalty",
    "geometric",
    "homogeneous",
    "largest_similarity",
    "matching_hidden",
    "parameter_count",
    "silverman",
    "view_similarity",
]
