"""Gaussian processes on long windows: a posterior mean in panels of time, at a cost linear in stamps and in length."""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float64, Int
from torch import Tensor
from torch.nn.functional import pad

from smoothcde.paths import chebyshev
from smoothcde.paths.block_tridiagonal import solve_blocks
from smoothcde.series import SeriesBatch

SPACING = 0.375
"""Bandwidths between bumps: together they make the kernel to exp(-pi^2 / 2 SPACING^2) = 6e-16 of itself."""
REACH = 16
"""Bumps on either side of a panel that count on it: the next ones, from 6 bandwidths on, are below 1e-15 there."""
BLOCK = 24
"""Bumps per block of the system: at 9 bandwidths from each other, the product of two is below 3e-18 everywhere."""
PER_PANEL = 8
"""Bumps per panel."""
WIDTH = PER_PANEL * SPACING
"""Bandwidths per panel."""
NODES = 26
"""Chebyshev nodes that hold the mean on a panel."""
_NEAR = PER_PANEL + 2 * REACH
"""Bumps that count on a panel."""
_MIDDLES, _SKIPPED = 64, 8
"""Middles of two bumps that count on a panel, half a spacing apart, and how many before them do not."""
_AT_A_TIME = 2**19
"""Numbers of the largest table that is made at a time."""


def panels_over(window: float, bandwidth: float) -> tuple[int, float]:
    """How many panels cover a window, its end included, and their length."""
    count = math.floor(window / (WIDTH * bandwidth)) + 1
    # A window within one panel has it for itself, which float32 thanks with digits.
    return count, min(WIDTH * bandwidth, window * (1 + 1e-9)) if count == 1 and window > 0 else WIDTH * bandwidth


def panel_coefficients(
    batch: SeriesBatch,
    targets: Float64[Tensor, "n length channels"],
    precision: Float64[Tensor, "views n own length"],
    bandwidth: Float64[Tensor, "views"],
    scale: Float64[Tensor, "views"],
    panels: int,
    length: Float64[Tensor, "views"],
) -> Float64[Tensor, "views n panels nodes channels"]:
    """The posterior mean over each panel, in Chebyshev polynomials.

    The kernel is a sum of products of bumps on a grid s_j = j d, the trapezoidal rule for its own square root:
    k_h(t, t') = sum_j b_j(t) b_j(t') with b_j(t) = (2 / pi)^1/4 (d / h)^1/2 exp(-(t - s_j)^2 / h^2). With B the bumps
    at the observations, the mean is sum_j w_j b_j(t) with (I + B^T P B) w = B^T P x: symmetric, at least the identity,
    and banded, since far bumps share no observation. So a Cholesky factorisation by blocks is stable and linear in the
    length of the window. Nodes and the kernel matrix between them would give blocks as well, but lose seven digits in
    eliminating them.

    b_i(t) b_j(t) depends on t only through its distance from the middle of the two bumps. B^T P B is known by sums of
    p_k exp(-2 (t_k - s)^2 / h^2) over middles s, 64 of them for each observation instead of the square of `_NEAR`.

    Args:
        batch: whose stamps to use.
        targets: the observations less the prior mean, 0 where there is none.
        precision: 1 / Sigma, zero where nothing was observed; one for all channels if they share their stamps.
        bandwidth: of each view. The grid is laid by its value, and its gradient is that of the bumps' widths.
        scale: of the prior.
        panels: of every view.
        length: of the panels of each view; both from `panels_over`.
    """
    views, n = precision.shape[:2]
    device = targets.device
    narrowing = (bandwidth.detach() / bandwidth)[:, None]  # 1, with a gradient
    peak = scale[:, None] * (math.sqrt(2 / math.pi) * SPACING * narrowing) ** 0.5
    middles, pull = _sums(batch, targets, precision, bandwidth.detach(), narrowing, panels)
    blocks = -(-pull.shape[1] // BLOCK)
    middles = pad(middles, (0, 0, _SKIPPED, 2 * BLOCK * blocks - middles.shape[1] - _SKIPPED))
    pull = pad(pull, (0, 0, 0, BLOCK * blocks - pull.shape[1])).unflatten(0, (views, n)) * peak[:, :, None, None]

    # One system per channel, or one with a column per channel if they share their stamps.
    own = middles.shape[-1]
    right = pull.unflatten(3, (own, -1)).movedim(3, 2).reshape(views * n * own, blocks, BLOCK, -1).transpose(0, 1)
    middles = middles.mT.reshape(views, n * own, -1)
    place = torch.arange(BLOCK, device=device)
    diagonal, beside = (
        _products(middles[..., shift:], place + shift - place[:, None], narrowing, peak) for shift in (0, BLOCK)
    )
    diagonal = diagonal + torch.eye(BLOCK, dtype=torch.float64, device=device)
    weights = solve_blocks(diagonal, beside, right)

    weights = weights.transpose(0, 1).reshape(views, n, own, BLOCK * blocks, -1).movedim(2, 3).flatten(3)
    near = weights.unfold(2, _NEAR, PER_PANEL)[:, :, :panels]  # [views, n, panels, channels, near]
    node = (chebyshev.nodes(NODES).to(device) + 1) / 2 * (length / bandwidth.detach())[:, None]
    values = _bumps(node, narrowing) * peak[:, :, None]  # [views, nodes, near]
    return (near @ (chebyshev.transform(NODES).to(device) @ values)[:, None, None].mT).mT


def _products(middles: Tensor, apart: Tensor, narrowing: Tensor, peak: Tensor) -> Tensor:
    """Blocks of B^T P B `[blocks, systems, BLOCK, BLOCK]`, their bumps `apart`, from sums over middles."""
    place = torch.arange(BLOCK, device=middles.device)
    sums = middles.unfold(2, 2 * BLOCK - 1, 2 * BLOCK)[..., place[:, None] + place]
    overlap = torch.exp(-0.5 * (narrowing[:, :, None] * SPACING * apart) ** 2) * peak[:, :, None] ** 2
    return (sums * overlap[:, None, None]).flatten(0, 1).transpose(0, 1)


def _bumps(y: Tensor, narrowing: Tensor) -> Tensor:
    """Those that count on a panel, at `y` bandwidths from its beginning, less their height."""
    grid = (torch.arange(_NEAR, dtype=torch.float64, device=y.device) - REACH + 0.5) * SPACING
    return torch.exp(-((narrowing[..., None] * (y[..., None] - grid)) ** 2))


def _middles(y: Tensor, narrowing: Tensor) -> Tensor:
    """The products of two bumps that count on a panel, at `y` bandwidths from its beginning, less their height."""
    grid = torch.arange(_SKIPPED, _SKIPPED + _MIDDLES, dtype=torch.float64, device=y.device)
    grid = (grid / 2 - REACH + 0.5) * SPACING
    return torch.exp(-2 * (narrowing[..., None] * (y[..., None] - grid)) ** 2)


class _Tiles(NamedTuple):
    """Observations in tiles of equal size, each within one panel: so much is left empty that sums are plain products.

    Attributes:
        panel: of each tile, counted over views, series and panels.
        stamps: which stamps are in it, counted over views, series and stamps; 0 where there is none.
        filled: where there is one.
    """

    panel: Int[Tensor, "tiles"]
    stamps: Int[Tensor, "tiles size"]
    filled: Tensor

    @classmethod
    def of(cls, panel: Int[Tensor, "stamps"], panels: int) -> "_Tiles":
        """Tiles for stamps that come panel by panel."""
        found = torch.bincount(panel, minlength=panels)
        typical = len(panel) / max(1, int((found > 0).sum()))
        size = 2 ** min(8, max(2, round(math.log2(max(1.0, typical)))))
        tiles = (found + size - 1) // size
        owner = torch.repeat_interleave(tiles)
        rank = torch.arange(len(owner), device=panel.device) - (tiles.cumsum(0) - tiles)[owner]
        end = found.cumsum(0)
        stamps = ((end - found)[owner] + rank * size)[:, None] + torch.arange(size, device=panel.device)
        filled = stamps < end[owner][:, None]
        return cls(owner, torch.where(filled, stamps, 0), filled)


def _sums(
    batch: SeriesBatch, targets: Tensor, precision: Tensor, h: Tensor, narrowing: Tensor, panels: int
) -> tuple[Tensor, Tensor]:
    """Sums over observations, of p at middles `[views * n, middles, own]` and of p x at bumps `[..., channels]`.

    Tables of bumps are made for a few tiles at a time, and made again in the backward pass.
    """
    views, n, own, _ = precision.shape
    position = (batch.times - batch.start[:, None]) / (WIDTH * h[:, None, None])  # [views, n, length]
    cell = position.floor().clamp(0, panels - 1)
    y = ((position - cell) * WIDTH).flatten()
    first = torch.arange(views * n, device=h.device)[:, None] * panels
    tiles = _Tiles.of((cell.long().flatten(0, 1) + first).flatten(), views * n * panels)
    view = tiles.panel // max(1, n * panels)

    columns = torch.cat([precision, precision * targets.mT], dim=2).movedim(2, 3).flatten(0, 2)
    columns = columns.index_select(0, tiles.stamps.flatten()).unflatten(0, tiles.stamps.shape) * tiles.filled[..., None]

    # What counts on neighbouring panels overlaps by whole panels: totals are kept in stretches of one panel each.
    stretch = (2 * PER_PANEL, PER_PANEL)
    totals = [
        targets.new_zeros(views * n, panels + near // size - 1, size, count)
        for near, size, count in zip((_MIDDLES, _NEAR), stretch, (own, targets.shape[2]), strict=True)
    ]
    step = max(1, _AT_A_TIME // (_MIDDLES * tiles.stamps.shape[1]))
    tables = (tiles.panel, y[tiles.stamps], narrowing[view], columns)
    for panel, at, narrow, part in zip(*(table.split(step) for table in tables), strict=True):
        found = _PartSums.apply(at, narrow, part, own)
        for total, sums in zip(totals, found, strict=True):
            row, place = panel // panels, panel % panels
            for shift, piece in enumerate(sums.split(total.shape[2], dim=1)):
                total.flatten(0, 1).index_add_(0, row * total.shape[1] + place + shift, piece)
    middles, pull = (total.flatten(1, 2) for total in totals)
    return middles, pull


class _PartSums(torch.autograd.Function):
    """Sums over the stamps of some tiles; their tables are made anew in the backward pass.

    As `torch.utils.checkpoint` would do it, whose first call takes two seconds and 200 MB.
    """

    @staticmethod
    def forward(ctx: Any, at: Tensor, narrowing: Tensor, columns: Tensor, own: int) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(at, narrowing, columns)
        ctx.own = own
        return _part_sums(at, narrowing, columns, own)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[:3]
        at, narrowing, columns = (x.detach().requires_grad_(n) for x, n in zip(ctx.saved_tensors, needed, strict=True))
        with torch.enable_grad():
            sums = _part_sums(at, narrowing, columns, ctx.own)
        wanted = [x for x in (at, narrowing, columns) if x.requires_grad]
        found = iter(torch.autograd.grad(sums, wanted, gradients))
        return *(next(found) if need else None for need in needed), None


def _part_sums(at: Tensor, narrowing: Tensor, columns: Tensor, own: int) -> tuple[Tensor, Tensor]:
    return _middles(at, narrowing).mT @ columns[..., :own], _bumps(at, narrowing).mT @ columns[..., own:]
