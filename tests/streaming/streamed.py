"""Streams beside a plain record of all that was sent, from which the offline answer is made."""

from typing import Any

import numpy as np
import torch

from smoothcde import ChannelScaler, Predictor, SeriesSet, StreamingPredictor, build_model


def small_predictor(name: str = "mvc-gp", *, channels: int = 2, double: bool = True, **settings: Any) -> Predictor:
    """An untrained classifier of three classes: what is asked of a stream does not depend on training."""
    views = [0.2, 0.5] if name.startswith("mv") else [0.2]
    chosen = {"hidden": 6, "width": 6, "time_channel": True, "rtol": 1e-2, "atol": 1e-2, "noise": 0.1}
    if name in ("gru", "gru-d", "ode-rnn"):
        chosen = {"hidden": 6}
    if name.startswith("mv"):
        chosen |= {"encoder_width": 6}
    architecture = {"name": name, "channels": channels, "outputs": 3, "time_scale": 10.0, "bandwidths": views}
    architecture |= chosen | settings
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build_model(**architecture)
    names = tuple(f"channel {c}" for c in range(channels))
    scaler = ChannelScaler(np.linspace(-0.5, 0.5, channels), np.linspace(1.0, 2.0, channels))
    return Predictor(
        task="classification",
        architecture=architecture,
        model=model.double() if double else model,
        scaler=scaler,
        channel_names=names,
        labels=np.array(["a", "b", "c"]),
        temperature=1.7,
    )


class Recorded:
    """A stream, and everything it was told."""

    def __init__(self, predictor: Predictor, window: float, series: int = 1, panels: bool | None = None, **settings):
        self.predictor = predictor
        self.stream = StreamingPredictor(predictor, window, series, **settings)
        if panels is not None:
            assert self.stream._incremental is not None
            self.stream._incremental.use_panels = panels
        self.told: list[list[tuple[float, np.ndarray]]] = [[] for _ in range(series)]

    def update(self, times, values, rows) -> None:
        self.stream.update(times, values, rows)
        for time, value, row in zip(times, values, rows, strict=True):
            self.told[row].append((float(time), np.asarray(value, dtype=np.float64)))

    def newest(self) -> np.ndarray:
        return np.array([max(time for time, _ in told) for told in self.told])

    def offline(self, at=None) -> SeriesSet:
        """The set of series that somebody would make of it all afterwards."""
        at = self.newest() if at is None else np.broadcast_to(at, len(self.told))
        ordered = [sorted(told, key=lambda entry: entry[0]) for told in self.told]  # stable: equal stamps as sent
        channels = len(self.predictor.channel_names)
        values = [np.array([v for _, v in told]).reshape(-1, channels).T for told in ordered]
        times = [[time for time, _ in told] for told in ordered]
        # Stamps the stream has let go may be duplicates of nothing: policies apply within what was sent.
        everything = SeriesSet.from_arrays(
            values, times, duplicates=self.stream.duplicates, channel_names=self.predictor.channel_names
        )
        return everything.with_window(end=at, history=self.stream.window)

    def difference(self, at=None) -> float:
        """The largest difference of any output to the offline one."""
        want = self.predictor.outputs(self.offline(at))
        return float(np.abs(self.stream.outputs(at) - want).max())
