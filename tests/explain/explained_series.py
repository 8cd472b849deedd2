"""Small predictors and the irregular series that the explanations' tests share."""

import json
from html.parser import HTMLParser
from typing import Any

import numpy as np
import torch

from smoothcde.data import ChannelScaler
from smoothcde.estimators import Predictor
from smoothcde.estimators.scaling import ColumnScaler
from smoothcde.models import build_model
from smoothcde.series import SeriesSet

nan = np.nan
CHANNELS = ("heart rate", "oxygen", "never measured")
VALUES = [
    [[71.0, nan, 88.0, 90.0, 74.0], [0.97, 0.95, nan, nan, 0.93], [nan] * 5],
    [[64.0, 66.0, nan], [0.99, nan, 0.98], [nan] * 3],
    np.ones((3, 0)),
    [[80.0], [nan], [nan]],
]
TIMES = [[100.0, 101.5, 102.0, 103.0, 110.0], [3.0, 4.0, 6.0], [], [50.0]]
IDS = ("ward 1", 17, "empty", "brief")
SERIES = SeriesSet.from_arrays(VALUES, TIMES, ids=IDS, channel_names=CHANNELS, static=[[64.0], [31.0], [50.0], [8.0]])
WITHOUT_PATH = ("ode-rnn", "gru-d", "gru", "mamba")


def small_predictor(
    name: str = "mvc-gp",
    series: SeriesSet = SERIES,
    task: str = "classification",
    time_scale: float = 10.0,
    **given: Any,
):
    """An untrained predictor with weights that say something: two views where it can have several."""
    torch.manual_seed(0)
    architecture: dict[str, Any] = {"name": name, "channels": series.channels, "outputs": 2, "time_scale": time_scale}
    architecture |= {"hidden": 4, "static": 0 if series.static is None else series.static.shape[1]}
    architecture["bandwidths"] = (0.2, 0.6) if name.startswith("mv") else (0.2,)
    model = build_model(**architecture)
    answers: dict[str, Any] = {"labels": np.array(["goes home", "stays"])}
    if task == "regression":
        answers = {
            "targets": ColumnScaler(np.array([5.0, -1.0]), np.array([2.0, 0.5])),
            "target_names": ("days", "dose"),
        }
    fields = {
        "scaler": ChannelScaler.fit(series),
        "channel_names": series.channel_names,
        "static_names": series.static_names,
        "static_scaler": None if series.static is None else ColumnScaler.fit(series.static),
    }
    return Predictor(task, architecture, model, **(fields | answers | given))  # type: ignore[arg-type]


class Document(HTMLParser):
    """The elements of a page, each with its attributes and own text; complains of tags that do not match."""

    EMPTY = ("meta", "input", "br", "hr", "link", "img")

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[dict[str, Any]] = []
        self._open: list[dict[str, Any]] = []
        self.feed(page)
        self.close()
        assert not self._open, f"never closed: {[e['tag'] for e in self._open]}"

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", "inside": [e["tag"] for e in self._open], **dict(attrs)}
        self.elements.append(element)
        if tag not in self.EMPTY:
            self._open.append(element)

    def handle_endtag(self, tag):
        if tag in self.EMPTY:
            return
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1]["tag"] == tag, f"</{tag}> closes <{self._open[-1]['tag']}>"
        self._open.pop()

    def handle_data(self, text):
        if self._open:
            self._open[-1]["text"] += text

    def all(self, tag: str, **attributes: str) -> list[dict[str, Any]]:
        """Elements of a kind."""
        return [
            e
            for e in self.elements
            if e["tag"] == tag and all(e.get(k.rstrip("_")) == v for k, v in attributes.items())
        ]

    def data(self) -> Any:
        """The numbers of the page; NaN and infinities are no JSON."""

        def refuse(token: str):
            raise AssertionError(f"{token} is no JSON")

        (element,) = self.all("script", id="data")
        return json.loads(element["text"], parse_constant=refuse)
