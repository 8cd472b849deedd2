"""`SeriesBatch`: a padded batch of irregular series as tensors."""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class SeriesBatch:
    """A batch of `n` series, padded to a common `length`.

    Times count from each row's own start, in float64: a float32 Unix stamp would resolve 128 seconds only.

    Attributes:
        values: observations, 0 where `mask` is False.
        times: stamps since the row's start, increasing; padding repeats the row's last stamp.
        mask: True where a value was observed. Padding is never observed.
        lengths: stamps per row.
        start: where each row's window begins, 0 by construction.
        end: where each row's window ends.
        origin: the absolute time of each row's start, so that `times + origin` are the user's stamps.
        static: features that do not change with time, if any.
    """

    values: Float[Tensor, "n length channels"]
    times: Float64[Tensor, "n length"]
    mask: Bool[Tensor, "n length channels"]
    lengths: Int[Tensor, "n"]
    start: Float64[Tensor, "n"]
    end: Float64[Tensor, "n"]
    origin: Float64[Tensor, "n"]
    static: Float[Tensor, "n features"] | None = None

    def __len__(self) -> int:
        return self.values.shape[0]

    @property
    def channels(self) -> int:
        """Channels of the series."""
        return self.values.shape[2]

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.values.device

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the values (times are always float64)."""
        return self.values.dtype

    @property
    def stamped(self) -> Bool[Tensor, "n length"]:
        """True at a row's own stamps, False at padding."""
        return torch.arange(self.values.shape[1], device=self.device) < self.lengths[:, None]

    @property
    def observed(self) -> Bool[Tensor, "n length"]:
        """True at stamps where at least one channel was observed."""
        return self.mask.any(dim=2)

    @cached_property
    def complete(self) -> bool:
        """Whether every channel was observed at every stamp, and no row is padded."""
        return bool(self.mask.all())

    @cached_property
    def together(self) -> bool:
        """Whether all channels were observed at the same stamps."""
        return self.complete or bool((self.mask == self.mask[:, :, :1]).all())

    def select(self, rows) -> "SeriesBatch":
        """The batch of the given rows (indices or a boolean mask), still padded to this batch's length."""
        return replace(self, **{f.name: t[rows] for f in fields(self) if (t := getattr(self, f.name)) is not None})

    def to(self, device=None, dtype: torch.dtype | None = None) -> "SeriesBatch":
        """Move to a device; convert values and static features (never times) to `dtype`."""
        moved = {f.name: t.to(device) for f in fields(self) if (t := getattr(self, f.name)) is not None}
        if dtype is not None:
            moved |= {name: moved[name].to(dtype) for name in ("values", "static") if name in moved}
        return replace(self, **moved)

    def counts(self, scale: float = 1.0) -> "SeriesBatch":
        """The same stamps with, as values, how often each channel was observed so far, times `scale`.

        Joined to a path as further channels it tells a model *when* something was measured, not only what. Every stamp
        of a row counts as observed.
        """
        count = self.mask.to(self.dtype).cumsum(dim=1) * scale
        stamped = self.stamped[:, :, None].expand_as(self.mask)
        return replace(self, values=count * stamped, mask=stamped)
