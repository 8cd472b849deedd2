"""The demonstration: smoothing against spline interpolation on spoken vowels, in two minutes on a laptop."""

from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from smoothcde.data import ChannelScaler, load_uea
from smoothcde.models import CDEModel, build_model, matching_hidden, parameter_count
from smoothcde.plots import plot_outcome
from smoothcde.series import SeriesSet
from smoothcde.training import CrossEntropy, Measurement, Recipe, measure_classifier, train

BANDWIDTHS = (0.2, 0.4, 1.4)
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Entry:
    """One trained model with its figures."""

    name: str
    model: CDEModel
    measured: Measurement
    seconds: float

    @property
    def parameters(self) -> int:
        """Trainable numbers."""
        return parameter_count(self.model)


def run_demo(out: Path, epochs: int = 15, seed: int = 0, console: Console | None = None) -> list[Entry]:
    """Train mvc-gp and a natural cubic neural CDE of the same size on JapaneseVowels; print a table, draw a picture."""
    console = console or Console()
    (known, known_labels), (test, test_labels) = load_uea("JapaneseVowels", "train"), load_uea("JapaneseVowels", "test")
    classes = np.unique(known_labels)
    scaler = ChannelScaler.fit(known)
    known, test = scaler.transform(known), scaler.transform(test)
    targets, truth = np.searchsorted(classes, known_labels), np.searchsorted(classes, test_labels)
    console.print(
        f"[bold]JapaneseVowels[/]: {len(known)} series to learn from, {len(test)} to be judged by, "
        f"{known.channels} channels, {known.lengths.min()} to {known.lengths.max()} stamps, {len(classes)} speakers"
    )

    settings = {"channels": known.channels, "outputs": len(classes), "time_scale": known.longest_span}
    settings |= {"rtol": TOLERANCE, "atol": TOLERANCE, "width": 64}
    smooth = _seeded(seed, "mvc-gp", hidden=64, bandwidths=BANDWIDTHS, encoder_width=64, **settings)
    size = parameter_count(smooth)
    hidden = matching_hidden(lambda h: build_model("cubic", hidden=h, **settings), size)
    spline = _seeded(seed, "cubic", hidden=hidden, **settings)

    recipe = Recipe(epochs=epochs, batch_size=54, seed=seed)
    with console.status("Compiling and loading what a first training needs"):
        # On a copy, so that neither model's time pays for what happens once on a machine.
        train(deepcopy(smooth), known[:8], targets[:8], CrossEntropy(), replace(recipe, epochs=1))
    entries = [
        _fit(name, model, known, targets, test, truth, recipe, console)
        for name, model in (("mvc-gp", smooth), ("natural cubic", spline))
    ]
    console.print(_table(entries))
    picture = _draw(entries, test, truth, out)
    console.print(f"Paths, attention and solver steps of one test series: [bold]{picture}[/]")
    return entries


def _seeded(seed: int, name: str, **settings) -> CDEModel:
    torch.manual_seed(seed)
    model = build_model(name, **settings)
    assert isinstance(model, CDEModel)
    return model


def _fit(name, model, series: SeriesSet, targets, test: SeriesSet, truth, recipe: Recipe, console: Console) -> Entry:
    title = f"{name:>13}"
    record = train(model, series, targets, CrossEntropy(), recipe, progress=True, title=title, console=console)
    return Entry(name, model, measure_classifier(model, test, truth), record.seconds)


def _table(entries: list[Entry]) -> Table:
    table = Table(title="Same data, same size, same tolerance")
    for heading in ("model", "test accuracy", "joint NFE", "NFE per row", "training time", "parameters"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for entry in entries:
        measured = entry.measured
        table.add_row(
            entry.name,
            f"{measured.accuracy:.1%}",
            f"{measured.joint_nfe:.0f}",
            f"{measured.row_nfe:.0f}",
            f"{entry.seconds:.1f} s",
            f"{entry.parameters:,}",
        )
    return table


def _draw(entries: list[Entry], test: SeriesSet, truth: np.ndarray, out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    model = entries[0].model
    longest = int(test.lengths.argmax())
    batch = test.batch([longest])
    with torch.no_grad():
        outcome = model.solve(batch)
        rough = entries[1].model.solve(batch).nfe[0]
    probability = torch.softmax(outcome.outputs[0], dim=0)
    title = (
        f"mvc-gp on one test series of JapaneseVowels: speaker {int(probability.argmax()) + 1} with probability "
        f"{float(probability.max()):.2f} (truth: {truth[longest] + 1})\nnatural cubic on the same series: {rough} NFE"
    )
    figure = plot_outcome(model, batch, outcome, title=title)
    picture = out / "demo.png"
    figure.savefig(picture, dpi=130)
    return picture
