"""Which (series, view) pairs are being integrated."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a solve, view-major: row = view * samples + sample. Rows leave as they finish; their order stays.

    Fields get it with every call, so that those with parameters per view know which slice of the batch is whose: by
    `sizes`, which holds for frozen plans too.

    Attributes:
        samples: series in the whole batch.
        views: views of each series.
        index: the rows present, increasing.
    """

    samples: int
    views: int
    index: np.ndarray

    @classmethod
    def all(cls, rows: int, views: int = 1) -> "Rows":
        """Every row of a batch."""
        if views < 1 or rows % views:
            raise ValueError(f"{rows} rows cannot be {views} views of equally many series; rows must be views * series")
        return cls(rows // views, views, np.arange(rows))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Rows present of each view: the lengths of the contiguous slices that a batch is made of."""
        if len(self.index) == self.samples * self.views:
            return (self.samples,) * self.views
        edges = np.searchsorted(self.index, np.arange(self.views + 1) * self.samples)
        return tuple(np.diff(edges).tolist())

    def keep(self, positions: np.ndarray) -> "Rows":
        """The rows at the given positions of this set."""
        return Rows(self.samples, self.views, self.index[positions])


@dataclass(frozen=True, eq=False)
class ViewRows(Rows):
    """All rows of neighbouring views, `first` to before `last`.

    For frozen plans, whose graph may leave the number of series open: `sizes` tells who is there, `index` is empty.

    Attributes:
        first: of the views present.
        last: behind the views present.
    """

    index: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    first: int = 0
    last: int = 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """All series for each view present, none for the others."""
        return tuple(self.samples if self.first <= view < self.last else 0 for view in range(self.views))
