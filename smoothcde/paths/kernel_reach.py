"""Which observations a kernel path needs to look at: those not so far away that nothing is left of them."""

import math

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from smoothcde.paths.kernels import kernel_named
from smoothcde.paths.missing import next_observed, previous_observed

LONG_SERIES = 500
"""Stamps per series from which looking at some of them only can be quicker."""
MOST_NEAR = 0.25
"""Share of the stamps up to which it is: they have to be gathered for each moment."""
NOTHING_LEFT = 40.0
"""A share of exp(-40) is below what float64 can add to 1, with some digits to spare for derivatives."""


def near_stamps(
    kernel: str,
    stamps: Float64[Tensor, "rows length"],
    seen: Bool[Tensor, "rows length channels"],
    log_weights: Float64[Tensor, "rows length"],
    h: Float64[Tensor, "rows"],
) -> tuple[Int[Tensor, "rows gaps"], int] | None:
    """Where the stamps begin that count between each two neighbours, and how many of them to take; None to take all.

    Let a moment lie between two neighbouring observations a and b of a channel. All that is further from it than the
    nearer of the two by so much that its share is nothing lies outside [a - r, b + r]: there r = h (2 c)^1/2 for the
    Gaussian, c h for the Laplacian, h for a compact kernel, c being the logarithm of what is left, of the number of
    stamps and of how far weights differ. So the gap alone tells which stamps to take, however wide it is.
    """
    length = stamps.shape[1]
    if kernel == "cauchy" or length < LONG_SERIES:
        return None
    anywhere = seen.any(dim=2)
    most = torch.where(anywhere, log_weights, -torch.inf).amax(dim=1)
    least = torch.where(anywhere, log_weights, torch.inf).amin(dim=1)
    depth = NOTHING_LEFT + math.log(length) + (most - least).clamp(min=0.0)
    reach = h if kernel_named(kernel).compact else h * (depth if kernel == "laplacian" else (2 * depth).sqrt())

    # Gap g lies between stamps g - 1 and g; of a channel not seen on one side, the other side decides alone.
    none = torch.full_like(seen[:, :1], length, dtype=torch.long)
    before = torch.cat([none - length - 1, previous_observed(seen)], dim=1)
    after = torch.cat([next_observed(seen), none], dim=1)
    times = stamps[:, :, None].expand(seen.shape)
    left, right = (times.gather(1, index.clamp(0, length - 1)) for index in (before, after))
    has_left, has_right = before >= 0, after < length
    never = ~(has_left | has_right)
    first = torch.where(has_left, left, right).masked_fill(never, torch.inf).amin(dim=2)
    last = torch.where(has_right, right, left).masked_fill(never, -torch.inf).amax(dim=2)
    begin = torch.searchsorted(stamps.contiguous(), first - reach[:, None])
    end = torch.searchsorted(stamps.contiguous(), last + reach[:, None], right=True)
    # Padding repeats the last stamp, and there is nothing to look at.
    behind = (anywhere * torch.arange(1, length + 1, device=stamps.device)).amax(dim=1, keepdim=True)
    end = torch.maximum(torch.minimum(end, behind), begin)
    count = max(1, int((end - begin).max())) if begin.numel() else length
    return None if count > MOST_NEAR * length else (begin.clamp(max=length - count), count)
