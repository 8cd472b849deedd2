"""Answers of Gaussian process models from what is remembered of their stamps, instead of from scratch."""

import numpy as np
import torch
from torch import Tensor

from smoothcde.models import MultiViewCDE, NeuralCDE, SeriesModel
from smoothcde.paths import GPPath
from smoothcde.paths.gp import LONG_NODES
from smoothcde.series import SeriesBatch
from smoothcde.streaming.history import History
from smoothcde.streaming.panels import Panels
from smoothcde.streaming.scores import RememberedScores

LEAST_STAMPS = 1_000
"""Stamps in all windows together from which remembering pays: below, the solve is nearly all there is to do, and at 315
stamps remembered scores take 2% longer than new ones (benchmarks/streaming.py)."""
STAMPS_PER_NODE = 15.0
"""Stamps in a window per node of its panels from which panels are quicker than the stamps themselves. At 60 they take a
fifth of the time, at 9 half as long again, at 1, with 1,000 series on common stamps, twice as long."""


def has_incremental_form(model: SeriesModel) -> bool:
    """Whether a model's paths are Gaussian process means: "gp", "mv-gp", "mvc-gp"."""
    if isinstance(model, MultiViewCDE):
        return model.smoother == "gp"
    return isinstance(model, NeuralCDE) and model.path == "gp"


class Incremental:
    """A model with what it remembers of each series: scores of stamps, sums of panels.

    Scores are remembered for models with attention. The sums that a path needs are made of the stamps themselves while
    a window holds few, and of `Panels` where it holds many. Posterior, initial state and the solve are always new: the
    start of the window moves.

    Args:
        model: one that `has_incremental_form`.
        history: of the series; with the columns that `RememberedScores` asks for.
        panels: True or False to have it so; None for panels where they are quicker.
    """

    def __init__(self, model: MultiViewCDE | NeuralCDE, history: History, panels: bool | None = None):
        self.model, self.use_panels = model, panels
        attentive = isinstance(model, MultiViewCDE)
        self.scores = RememberedScores(model, history) if attentive else None
        self.counts = model.bandwidths.nodes(history.window)
        series, device = len(history.newest), next(model.parameters()).device
        self._layout = (series, history.window, max(self.counts), model.channels, model.views * attentive, device)
        self.panels: Panels | None = None
        self.anchor = 0.0

    def touch(self, rows: np.ndarray, times: np.ndarray) -> None:
        """Stamps that are new, or whose values have changed."""
        if self.panels is not None:
            self.panels.touch(rows, times)

    def start_panels(self) -> Panels:
        """Panels without any sums yet."""
        self.panels = Panels(*self._layout)
        self.panels.anchor = self.anchor
        return self.panels

    def outputs(self, batch: SeriesBatch, rows: np.ndarray, slots: np.ndarray, times: np.ndarray) -> Tensor:
        """The model's outputs for a batch of windows.

        Args:
            batch: the windows of some series.
            rows: which series.
            slots: `[n, length]`, where the history holds their stamps.
            times: of those, absolute.
        """
        self.model.check(batch)
        scores = None
        if self.scores is not None:
            scores, scored = self.scores.of(batch, rows, slots, times)
            owner, place = np.nonzero(scored)
            self.touch(rows[owner], times[owner, place])
        path = self._path(batch, rows, times, scores)
        beginning = self.model.begin_along(batch, path, None, batch.values.new_zeros(()))
        return self.model.finish(batch, beginning).outputs

    def _path(self, batch: SeriesBatch, rows: np.ndarray, times: np.ndarray, scores: Tensor | None):
        model = self.model
        if not self._many(batch):
            if isinstance(model, MultiViewCDE):
                assert scores is not None
                return model.fit_path(batch, model.attention(scores, batch).to(batch.dtype))
            return model.smooth(batch)[0]
        panels = self.panels or self.start_panels()
        bandwidth = model.bandwidths.values
        noise = torch.as_tensor(model.noise, dtype=torch.float64, device=batch.device).expand(len(bandwidth))
        sums = panels.sums_of(batch, rows, times, noise, scores)
        path = GPPath.of_sums(sums, batch.start, batch.end, bandwidth, nodes=self.counts, dtype=batch.dtype)
        return model.with_counts(path, batch)

    def _many(self, batch: SeriesBatch) -> bool:
        if self.use_panels is not None:
            return self.use_panels
        if max(self.counts) > LONG_NODES:  # such a path is not a single polynomial, and is quicker from its stamps
            return False
        total = Panels.total_nodes(max(self.counts))
        return float(batch.lengths.double().mean()) > STAMPS_PER_NODE * total
