"""Long windows in few numbers: the stamps of a stretch of time, moved onto the nodes of a polynomial."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from smoothcde.paths import chebyshev
from smoothcde.paths.gp_sums import WEIGHT_FLOOR, on_unit_window, sums_over
from smoothcde.series import SeriesBatch

PANELS = 8
"""Panels per window. More of them leave fewer stamps outside whole panels, and have more nodes together."""
_EMPTY = np.iinfo(np.int64).min
_AT_A_TIME = 2**23
"""Numbers of the largest table that is made at a time."""


def panel_nodes(count: int) -> int:
    """Nodes per panel that keep every product of two of `count` polynomials on the window to 1e-11.

    Such products have a degree up to 2 count - 2; they vary fastest at the ends of the window, where a panel sees
    about degree / sqrt(PANELS) of it (measured for 10 to 150 nodes).
    """
    degree = (2 * count - 2) / math.sqrt(PANELS)
    return math.ceil(degree + 4.5 * degree ** (1 / 3) + 3)


class Panels:
    """Sums over the stamps of each panel of time, made once per panel.

    A path's sums A^T P A and A^T P x (see `ObservationSums`) are sums of p_k f(t_k) over polynomials f on the window.
    On a panel, a fixed stretch of absolute time an eighth of the window long, f is known by its values at a few nodes:
    f(t) = sum_m l_m(t) f(node_m). So sum_k p_k f(t_k) = sum_m (sum_k p_k l_m(t_k)) f(node_m): the panel's stamps count
    as if they stood at its nodes, wherever the window has moved meanwhile. The softmax rescales every weight with each
    new stamp, so p is kept in two parts, exp(score - the panel's largest) and the floor of 1.

    Only panels wholly inside a window are used; stamps at its two ends enter one by one. So nothing is ever
    subtracted, and no rounding adds up: a panel is summed when it is first needed, again if one of its stamps changes,
    and dropped as a whole.

    Args:
        series: how many.
        window: length of the windows.
        nodes: of the path with most of them.
        channels: of the series.
        views: with attention; 0 for a path without.
        device: where the sums live.
    """

    def __init__(self, series: int, window: float, nodes: int, channels: int, views: int, device: torch.device):
        self.length, self.nodes = window / PANELS, panel_nodes(nodes)
        self.channels, self.views = channels, views
        self.anchor = 0.0
        self.index = np.full((series, PANELS + 1), _EMPTY)
        # What to sum: precision and pull per channel, for the floor and for each view.
        shape = (series, PANELS + 1, self.nodes, 1 + views, 2, channels)
        self.sums = torch.zeros(shape, dtype=torch.float64, device=device)
        self.peak = torch.zeros(series, PANELS + 1, views, dtype=torch.float64, device=device)

    @staticmethod
    def total_nodes(nodes: int) -> int:
        """Nodes that stand for a window, without the stamps at its ends."""
        return (PANELS - 1) * panel_nodes(nodes)

    def place(self, times: np.ndarray) -> np.ndarray:
        """Number of the panel of each stamp."""
        return np.floor((times - self.anchor) / self.length).astype(np.int64)

    def touch(self, rows: np.ndarray, times: np.ndarray) -> None:
        """Forget the sums of panels in which a stamp is new or different."""
        panel = self.place(times)
        slot = panel % (PANELS + 1)
        outdated = self.index[rows, slot] == panel
        self.index[rows[outdated], slot[outdated]] = _EMPTY

    def sums_of(
        self,
        batch: SeriesBatch,
        rows: np.ndarray,
        times: np.ndarray,
        noise: Tensor,
        scores: Float[Tensor, "n views length"] | None,
    ) -> "PanelSums":
        """The sums over a batch of windows, from panels where there are whole ones.

        Args:
            batch: the windows of some series.
            rows: which series.
            times: of the batch's stamps, absolute.
            noise: sigma, one per view.
            scores: of the stamps; None for a path without attention.
        """
        device, stamped = batch.device, batch.stamped.cpu().numpy()
        start = batch.origin.cpu().numpy()
        end = start + (batch.end - batch.start).cpu().numpy()
        panel = self.place(times)
        # The panel that holds the start is never whole, even if it begins there: no rounding decides who is inside.
        first, behind = self.place(start) + 1, self.place(end)
        inner = stamped & (panel >= first[:, None]) & (panel < behind[:, None])
        wanted = first[:, None] + np.arange(PANELS)
        slot = wanted % (PANELS + 1)
        whole = wanted < behind[:, None]
        self._seal(batch, rows, times, panel - first[:, None], inner, wanted, whole, scores)

        peers = torch.from_numpy(rows).to(device)[:, None], torch.from_numpy(slot).to(device)
        parts, peak = self.sums[peers], self.peak[peers]  # [n, panels, nodes, 1 + views, 2, channels]
        alone = _padded(stamped & ~inner)
        outer = torch.from_numpy(alone[0]).to(device), torch.from_numpy(alone[1]).to(device)
        present = torch.from_numpy(alone[2]).to(device)
        mask = (batch.mask[outer] & present[:, :, None]).double()
        ends = torch.stack([mask, mask * batch.values[outer].double()], dim=2)  # [n, stamps, 2, channels]
        variance = noise[:, None, None, None, None] ** 2
        on_nodes, at_ends = parts[:, :, :, :1], ends[:, :, None]
        if scores is not None:
            observed = batch.observed[:, None]
            scores = scores.double().masked_fill(~observed, -torch.inf)
            normal = torch.logsumexp(scores, dim=2, keepdim=True)  # [n, views, 1]
            normal = torch.where(normal.isfinite(), normal, 0.0)
            share = torch.exp(peak - normal.mT)  # [n, panels, views]
            on_nodes = parts[:, :, :, 1:] * share[:, :, None, :, None, None] + WEIGHT_FLOOR * on_nodes
            weight = torch.exp(scores - normal).mT[outer] + WEIGHT_FLOOR  # [n, stamps, views]
            at_ends = at_ends * weight[:, :, :, None, None]
        on_nodes = on_nodes * torch.from_numpy(whole).to(device)[:, :, None, None, None, None]
        # [views, n, 2, channels, places]
        on_nodes = on_nodes.flatten(1, 2).permute(2, 0, 3, 4, 1) / variance
        at_ends = at_ends.permute(2, 0, 3, 4, 1) / variance

        node = (chebyshev.nodes(self.nodes).to(device) + 1) / 2
        since = torch.from_numpy(wanted * self.length - (start - self.anchor)[:, None]).to(device)
        positions = (since[:, :, None] + node * self.length).flatten(1)
        window = (batch.end - batch.start)[:, None]
        return PanelSums(
            on_unit_window(positions, torch.zeros_like(window), window),
            on_nodes,
            on_unit_window(batch.times[outer], batch.start[:, None], batch.end[:, None]),
            at_ends,
            shared=batch.together,
            aligned=len(rows) > 1 and bool((start == start[0]).all() and (end == end[0]).all()),
        )

    def _seal(self, batch, rows, times, relative, inner, wanted, whole, scores) -> None:
        """Sum the panels that are needed and not there."""
        slot = wanted % (PANELS + 1)
        missing = whole & (self.index[rows[:, None], slot] != wanted)
        if not missing.any():
            return
        device = batch.device
        series, which = np.nonzero(missing)
        number = np.cumsum(missing.reshape(-1)).reshape(missing.shape) - 1
        owner, place = np.nonzero(inner)
        step = relative[owner, place]
        concerned = missing[owner, step]
        owner, place, step = owner[concerned], place[concerned], step[concerned]
        group = number[owner, step]  # increasing, as stamps are
        count = np.bincount(group, minlength=len(series))
        longest = max(int(count.max()), 1)
        rank = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
        where = np.zeros((len(series), longest), dtype=np.int64)
        where[group, rank] = place
        present = np.arange(longest) < count[:, None]
        panel, into_slot = wanted[series, which], slot[series, which]
        position = 2 * ((times[series[:, None], where] - self.anchor) / self.length - panel[:, None]) - 1
        block = max(1, _AT_A_TIME // (longest * (self.nodes + 2 * self.channels * (1 + self.views))))
        for begin in range(0, len(series), block):
            part = slice(begin, begin + block)
            own = torch.from_numpy(series[part]).to(device)[:, None], torch.from_numpy(where[part]).to(device)
            here = torch.from_numpy(present[part]).to(device)
            mask = (batch.mask[own] & here[:, :, None]).double()
            kinds = torch.stack([mask, mask * batch.values[own].double()], dim=2)[:, :, None]
            into = torch.from_numpy(rows[series[part]]).to(device), torch.from_numpy(into_slot[part]).to(device)
            if scores is not None:
                seen = batch.observed[own] & here
                score = scores.mT[own].double().masked_fill(~seen[:, :, None], -torch.inf)
                peak = score.amax(dim=1)
                peak = torch.where(peak.isfinite(), peak, 0.0)
                weight = torch.exp(score - peak[:, None])
                kinds = torch.cat([kinds, kinds * weight[:, :, :, None, None]], dim=2)
                self.peak[into] = peak
            basis = chebyshev.lagrange(torch.from_numpy(position[part]).to(device), self.nodes)
            self.sums[into] = (basis.mT @ kinds.flatten(2)).view(-1, self.nodes, *kinds.shape[2:])
        self.index[rows[series], into_slot] = panel


class PanelSums:
    """The sums of `ObservationSums`, over nodes of whole panels and single stamps at the ends of the windows."""

    def __init__(self, nodes: Tensor, on_nodes: Tensor, stamps: Tensor, at_ends: Tensor, shared: bool, aligned: bool):
        self.nodes, self.on_nodes, self.stamps, self.at_ends = nodes, on_nodes, stamps, at_ends
        self.shared, self.aligned = shared, aligned

    def of(self, count: int, group: list[int]) -> tuple[Tensor, Tensor]:
        """See `ObservationSums`."""
        gram, pull = self._part(self.nodes, self.on_nodes[group], count, self.aligned)
        more_gram, more_pull = self._part(self.stamps, self.at_ends[group], count, False)
        return gram + more_gram, pull + more_pull

    def _part(self, x: Tensor, kinds: Tensor, count: int, aligned: bool) -> tuple[Tensor, Tensor]:
        precision, pulled = kinds.unbind(2)  # [views, n, channels, places] each
        precision = precision[:, :, :1] if self.shared else precision
        gram, pull = sums_over(x[:1] if aligned else x, precision, pulled, count)
        return gram, pull.mT[:, :, None] if self.shared else pull[..., None]


def _padded(flags: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The flagged places of each row, left-aligned: row `[n, 1]`, place `[n, most]`, and whether there is one."""
    count = flags.sum(axis=1)
    most = max(int(count.max(initial=0)), 1)
    # Flagged places first, in their order.
    place = np.argsort(~flags, axis=1, kind="stable")[:, :most]
    return np.arange(len(flags))[:, None], place, np.arange(most) < count[:, None]
