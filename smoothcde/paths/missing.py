"""Filling what was not observed by straight lines, for a whole batch at once."""

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from smoothcde.series import SeriesBatch


def previous_observed(mask: Tensor) -> Int[Tensor, "n length channels"]:
    """Index of the latest observation at or before each stamp, -1 where there is none yet."""
    index = torch.arange(mask.shape[1], device=mask.device)[None, :, None]
    return running_maximum(torch.where(mask, index, -1))


def next_observed(mask: Tensor) -> Int[Tensor, "n length channels"]:
    """Index of the earliest observation at or after each stamp, `length` where there is none left."""
    length = mask.shape[1]
    index = torch.arange(length, device=mask.device)[None, :, None]
    return -running_maximum(-torch.where(mask, index, length).flip(1)).flip(1)


def running_maximum(x: Int[Tensor, "n length channels"]) -> Int[Tensor, "n length channels"]:
    """The largest entry so far along the stamps: `cummax`, or what a graph for export can hold in its place."""
    if not torch.compiler.is_exporting():
        return x.cummax(dim=1).values
    reach = 1
    while reach < x.shape[1]:  # each round looks back twice as far
        x = torch.cat([x[:, :reach], torch.maximum(x[:, reach:], x[:, :-reach])], dim=1)
        reach *= 2
    return x


def fill_linear(batch: SeriesBatch) -> Float64[Tensor, "n length channels"]:
    """Values at every stamp: straight lines between a channel's observations, constant before the first and after the
    last, zero where a channel has none. Differentiable in the values.
    """
    if not torch.compiler.is_exporting() and batch.complete:
        return batch.values.to(torch.float64, copy=True)
    length = batch.values.shape[1]
    previous, following = previous_observed(batch.mask), next_observed(batch.mask)
    has_previous, has_following = previous >= 0, following < length
    left = torch.where(has_previous, previous, following).clamp(max=length - 1)
    right = torch.where(has_following, following, previous).clamp(min=0)
    values = batch.values.double()
    times = batch.times[:, :, None].expand_as(values)
    t_left, t_right = times.gather(1, left), times.gather(1, right)
    span = t_right - t_left
    share = torch.where(span > 0, (times - t_left) / torch.where(span > 0, span, 1.0), 0.0)
    x_left, x_right = values.gather(1, left), values.gather(1, right)
    filled = x_left + share * (x_right - x_left)
    return filled * (has_previous | has_following)


def fill_forward(batch: SeriesBatch) -> Float64[Tensor, "n length channels"]:
    """Values at every stamp: the channel's latest observation, zero before its first. Looks back only."""
    previous = previous_observed(batch.mask)
    values = batch.values.double().gather(1, previous.clamp(min=0))
    return torch.where(previous >= 0, values, 0.0)
