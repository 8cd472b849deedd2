"""What discrete models share: a state after each stamp, read at the last stamp up to a moment."""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from smoothcde.models.base import Outcome, SeriesModel
from smoothcde.series import SeriesBatch
from smoothcde.solve import SolverOptions


class RecurrentModel(SeriesModel):
    """A state after each stamp, never knowing later ones; nothing to integrate.

    A moment before the first stamp, or a series without stamps, is read from a state of zeros.
    """

    @abstractmethod
    def states(self, batch: SeriesBatch) -> Float[Tensor, "n length hidden"]:
        """The state after each stamp; what stands at padding is never read."""

    def solve(self, batch: SeriesBatch, times: Any = None, options: SolverOptions | None = None) -> Outcome:
        """Outputs after the last stamp, or after the last one up to each requested moment."""
        self.check(batch)
        states = self.states(batch)
        last = (batch.lengths - 1)[:, None]
        if times is not None:
            stamps = torch.where(batch.stamped, batch.times, torch.inf)
            last = torch.searchsorted(stamps, self.moments(times, batch).contiguous(), right=True) - 1
        read = states.gather(1, last.clamp(min=0)[:, :, None].expand(-1, -1, states.shape[2]))
        read = torch.where((last >= 0)[:, :, None], read, 0.0)
        outputs = self.read(read[:, 0] if times is None else read, batch)
        return Outcome(outputs, outputs.new_zeros(()), np.zeros(len(batch), dtype=np.int64))
