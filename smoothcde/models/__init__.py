"""Models of the comparison, by class and by name."""

from smoothcde.models.attention import diversity_penalty, largest_divergence, largest_similarity, view_similarity
from smoothcde.models.bandwidths import geometric, homogeneous, silverman
from smoothcde.models.base import Outcome, SeriesModel
from smoothcde.models.build import MODELS, build_model
from smoothcde.models.capacity import matching_hidden, parameter_count
from smoothcde.models.cde import CDEModel
from smoothcde.models.fields import TanhField
from smoothcde.models.forecast import FORECASTERS, ForecastModel, build_forecaster
from smoothcde.models.frozen import FrozenModel, FrozenOutcome
from smoothcde.models.gru import GRUModel
from smoothcde.models.gru_d import GRUDModel
from smoothcde.models.linear_forecaster import LinearForecaster
from smoothcde.models.log_ncde import LogNCDE
from smoothcde.models.low_rank import LowRankField
from smoothcde.models.mamba import MambaModel
from smoothcde.models.multiview import MultiViewCDE
from smoothcde.models.neural_cde import NeuralCDE
from smoothcde.models.ode_rnn import ODERNN
from smoothcde.models.revin import RevIN

__all__ = [
    "FORECASTERS",
    "MODELS",
    "ODERNN",
    "CDEModel",
    "ForecastModel",
    "FrozenModel",
    "FrozenOutcome",
    "GRUDModel",
    "GRUModel",
    "LinearForecaster",
    "LogNCDE",
    "LowRankField",
    "MambaModel",
    "MultiViewCDE",
    "NeuralCDE",
    "Outcome",
    "RevIN",
    "SeriesModel",
    "TanhField",
    "build_forecaster",
    "build_model",
    "diversity_penalty",
    "geometric",
    "homogeneous",
    "largest_divergence",
    "largest_similarity",
    "matching_hidden",
    "parameter_count",
    "silverman",
    "view_similarity",
]
