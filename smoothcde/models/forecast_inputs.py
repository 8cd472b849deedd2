"""What a forecaster makes of its windows before an encoder reads them."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from smoothcde.series import SeriesBatch


def carried_on(batch: SeriesBatch, step: float) -> SeriesBatch:
    """Every channel keeps its last value up to the end of its window, as if it were observed.

    Values are carried to the stamps behind a channel's last observation, and to stamps that are added where the window
    goes on without any: its end, and whole steps before it. Otherwise a Gaussian process would return to its mean, and
    a feed that fell silent would look like one that fell. A channel without any observation stays unobserved.
    """
    latest = batch.times[:, -1]  # padding repeats it
    silent = torch.where(batch.lengths > 0, (batch.end - latest) / step, 0.0)
    added = (silent - 0.5).ceil().clamp(min=0).long()  # none within half a step of the latest stamp
    lengths = batch.lengths + added
    more = max(int(lengths.max()) - batch.times.shape[1], 0) if len(batch) else 0
    place = torch.arange(batch.times.shape[1] + more, device=batch.device)
    latest = torch.where(added > 0, batch.end, latest)[:, None]
    before = latest - (lengths[:, None] - 1 - place).clamp(min=0) * step
    longer = replace(
        batch,
        values=pad(batch.values, (0, 0, 0, more)),
        times=torch.where(pad(batch.stamped, (0, more)), pad(batch.times, (0, more)), before),
        mask=pad(batch.mask, (0, 0, 0, more)),
        lengths=lengths,
    )
    place = place[:, None]
    last = torch.where(longer.mask, place, -1).amax(dim=1, keepdim=True)
    carried = longer.stamped[:, :, None] & (last >= 0) & (place > last)
    values = torch.where(carried, longer.values.gather(1, last.clamp(min=0)), longer.values)
    return replace(longer, values=values, mask=longer.mask | carried)


def channel_by_channel(batch: SeriesBatch) -> SeriesBatch:
    """Every channel of every series as a series of one channel, those of the first series first."""

    def repeated(tensor: Tensor) -> Tensor:
        return tensor.repeat_interleave(batch.channels, dim=0)

    return SeriesBatch(
        values=batch.values.mT.flatten(0, 1)[:, :, None],
        times=repeated(batch.times),
        mask=batch.mask.mT.flatten(0, 1)[:, :, None],
        lengths=repeated(batch.lengths),
        start=repeated(batch.start),
        end=repeated(batch.end),
        origin=repeated(batch.origin),
    )


def with_phases(batch: SeriesBatch, periods: Sequence[float]) -> SeriesBatch:
    """Sine and cosine of each cycle's phase as further channels, known at every stamp."""
    if not periods:
        return batch
    now = (batch.times + batch.origin[:, None])[:, :, None]
    angle = 2 * torch.pi * (now / now.new_tensor(list(periods)))
    phases = torch.cat([angle.sin(), angle.cos()], dim=2).to(batch.dtype) * batch.stamped[:, :, None]
    known = batch.stamped[:, :, None].expand_as(phases)
    return replace(batch, values=torch.cat([batch.values, phases], 2), mask=torch.cat([batch.mask, known], 2))
