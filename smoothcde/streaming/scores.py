"""Attention scores that are remembered: only stamps whose surroundings changed are scored again."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from smoothcde.models import MultiViewCDE
from smoothcde.models.attention import context_width
from smoothcde.series import SeriesBatch
from smoothcde.streaming.history import History

REACH = 2
"""Stamps to each side that a score looks at: two convolutions of width 3."""


class RememberedScores:
    """The scores of a model with several views, kept beside the stamps they belong to.

    A score is a function of the encoder's inputs at its own stamp and at `REACH` stamps to either side; those beyond
    an end of the window repeat the end. So each stamp remembers its inputs, and is scored again if these or a
    neighbour's differ from what they were, or if it stands at an end of the window and did not before, or the other way
    round. Inputs are compared, not derived: a missing value that is filled from far away is noticed too.
    """

    def __init__(self, model: MultiViewCDE, history: History):
        self.model, self.history = model, history
        self.reach = 0 if model.encoder is None else REACH
        # The first stamp of the window that each series was last scored in.
        self.edge = np.full(len(history.newest), np.nan)

    @staticmethod
    def columns(model: MultiViewCDE) -> dict[str, tuple[int, type]]:
        """What a history must hold for it."""
        weights = next(model.parameters())
        kind = np.float64 if weights.dtype == torch.float64 else np.float32
        inputs = context_width(model.channels, model.encoder_inputs)
        return {"inputs": (inputs, kind), "scores": (model.views, kind)}

    def of(
        self, batch: SeriesBatch, rows: np.ndarray, slots: np.ndarray, times: np.ndarray
    ) -> tuple[Float[Tensor, "n views length"], np.ndarray]:
        """Scores of a batch, and which of its stamps had to be scored, `[n, length]`.

        Args:
            batch: the windows of some series.
            rows: which series.
            slots: `[n, length]`, where the history holds their stamps.
            times: of those, absolute.
        """
        inputs = self.model.features(batch)
        kept_inputs, kept_scores = (self.history.columns[name] for name in ("inputs", "scores"))
        before = torch.from_numpy(kept_inputs[rows[:, None], slots]).to(inputs.device)
        near = 8 * torch.finfo(inputs.dtype).eps * (1 + before.abs())
        changed = ~((inputs - before).abs() <= near).all(dim=2)  # NaN, for what is new, is never near
        changed = changed.cpu().numpy()
        stamped = batch.stamped.cpu().numpy()
        if self.reach:
            changed |= times < self.edge[rows, None]
        changed &= stamped
        stale = changed.copy()
        for shift in range(1, self.reach + 1):
            stale[:, shift:] |= changed[:, :-shift]
            stale[:, :-shift] |= changed[:, shift:]
        moved = times[:, 0] != self.edge[rows]
        stale[moved, : self.reach] = True
        stale &= stamped
        # An empty window scores nothing: what was scored at the edge before still is.
        self.edge[rows] = np.where(stamped[:, 0], times[:, 0], self.edge[rows])

        scores = kept_scores[rows[:, None], slots]
        series, places = np.nonzero(stale)
        if len(series):
            scores[series, places] = self._scored(inputs, batch.lengths, series, places)
            kept_scores[rows[series], slots[series, places]] = scores[series, places]
            fresh = inputs.cpu().numpy()[series, places]
            kept_inputs[rows[series], slots[series, places]] = fresh
        scores[~stamped] = 0.0
        return torch.from_numpy(scores).to(inputs.device).mT, stale

    def _scored(self, inputs: Tensor, lengths: Tensor, series: np.ndarray, places: np.ndarray) -> np.ndarray:
        # Stamp by stamp the first convolution is computed three times over: worth it for fewer than half.
        if self.model.encoder is None or 2 * len(series) > int(lengths.sum()):
            return self.model.scores_of(inputs, lengths).mT.cpu().numpy()[series, places]
        index = torch.from_numpy(series).to(inputs.device), torch.from_numpy(places).to(inputs.device)
        context = self.model.encoder.context_at(inputs, lengths, *index)
        return self.model.attention.scores(context[None])[0].mT.cpu().numpy()
