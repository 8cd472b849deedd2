"""`Explanation`: what a model saw in some series and what it made of it, in the user's own units and time."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from smoothcde.checks import check_known
from smoothcde.explain.answer import SeriesExplanation
from smoothcde.explain.page import render_page
from smoothcde.explain.times import moment_text
from smoothcde.plots import draw_portrait
from smoothcde.storage import replace_file

FIRST_CHANNELS = 4
"""Channels that are drawn until the user picks others."""
MOST_BARS = 12


@dataclass(frozen=True, eq=False)
class Explanation:
    """Explained series; made by `explain`.

    ```python
    explanation = explain(classifier, series, ids=["stay 17"])
    explanation.save("stay-17.html")               # one file, opens anywhere, needs no network
    explanation.figures()["stay 17"].savefig("stay-17.pdf")
    explanation.series[0].portrait.views[0].nfe    # the numbers themselves
    ```

    Attributes:
        title: of the page.
        model: the model's name, such as "mvc-gp".
        series: one entry per series.
        channel_names: the user's name of each channel.
        static_names: the user's name of each static feature.
        dates: whether times are seconds since 1970, to be shown as dates.
    """

    title: str
    model: str
    series: tuple[SeriesExplanation, ...]
    channel_names: tuple[str, ...]
    static_names: tuple[str, ...] = ()
    dates: bool = False

    @property
    def has_path(self) -> bool:
        """Whether the model is driven by a path that can be drawn."""
        return any(entry.portrait.views for entry in self.series)

    @property
    def channel_order(self) -> list[int]:
        """Channels, most often observed first."""
        counts = sum((entry.portrait.counts for entry in self.series), np.zeros(len(self.channel_names), dtype=int))
        return [int(channel) for channel in np.argsort(-counts, kind="stable")]

    def html(self) -> str:
        """The page: one self-contained HTML document, the same for the same explanation."""
        return render_page(
            title=self.title,
            model=self.model,
            series=self.series,
            channel_names=self.channel_names,
            channel_order=self.channel_order,
            first_channels=FIRST_CHANNELS,
            static_names=self.static_names,
            dates=self.dates,
        )

    def save(self, file: str | PathLike[str]) -> Path:
        """Write the page, whole or not at all; its path is returned."""
        target = Path(file)
        if target.is_dir():
            place = target / "page.html"
            raise IsADirectoryError(f"'{target}' is a directory; give the name of a file, such as '{place}'")
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, self.html().encode())
        return target

    def figures(self, channels: Sequence[str] | None = None) -> dict[Hashable, Figure]:
        """A matplotlib figure per series.

        Args:
            channels: names of the channels to draw; the four most often observed without.
        """
        chosen = self.channel_order[:FIRST_CHANNELS] if channels is None else [self._channel(c) for c in channels]
        return {entry.id: self._figure(entry, chosen) for entry in self.series}

    def _channel(self, name: str) -> int:
        check_known("channel", name, self.channel_names)
        return self.channel_names.index(name)

    def _figure(self, entry: SeriesExplanation, channels: list[int]) -> Figure:
        answer, end = entry.answer, moment_text(entry.portrait.origin, entry.portrait.span, self.dates)
        title = f"{self.model} on series {entry.id}, at {end}: {answer.text}"
        title += "" if answer.truth is None else f"; truth: {answer.truth}"
        title += (
            "" if entry.portrait.views else f"\n{self.model} has no path to draw: it reads the observations as such"
        )
        bars = None
        if answer.classification:
            best = np.argsort(-answer.numbers, kind="stable")[:MOST_BARS]
            bars = ([answer.names[i] for i in best], [float(answer.numbers[i]) for i in best])
        return draw_portrait(
            entry.portrait,
            channels,
            channel_names=self.channel_names,
            bars=bars,
            dates=self.dates,
            title=title.replace("$", r"\$"),
        )
