"""Single smoothed paths over the whole range of bandwidths."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, FigureBlock, Line, TableBlock
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial

BANDWIDTHS = (0.05, 0.1, 0.2, 0.6, 1.4, 4.0, 9.0, 0.02, 0.01)
"""The costly ones last."""


def trials() -> list[Trial]:
    """Kernel and Gaussian process on the smallest data set, one seed."""
    return grid(["UWaveGestureLibrary"], ("gp", "kernel"), [{"bandwidths": (h,)} for h in BANDWIDTHS], seeds=1)


def show(results: Results) -> Sequence[Block]:
    """Error, evaluations and time against the bandwidth."""
    lines, rows = [], []
    for model in ("gp", "kernel"):
        groups = sorted(
            (group for group in results.groups if group.model == model),
            key=lambda group: dict(group.changes)["bandwidths"],
        )
        scales = [dict(group.changes)["bandwidths"][0] for group in groups]
        wrong = [100 * (1 - (results.mean(group, "accuracy") or 0)) for group in groups]
        nfe = [results.mean(group, "joint_nfe") or 0 for group in groups]
        seconds = [results.mean(group, "train_seconds") or 0 for group in groups]
        lines += [Line(model, scales, wrong, 0), Line(model, scales, nfe, 1), Line(model, scales, seconds, 2)]
        rows += [
            [model, f"{h:g}", f"{100 - e:.2f}", f"{n:.0f}", f"{s:.0f}"]
            for h, e, n, s in zip(scales, wrong, nfe, seconds, strict=True)
        ]
    panels = ("error", "evaluations", "time")
    return [
        FigureBlock(
            "One path, any bandwidth",
            panels,
            lines,
            "bandwidth over length",
            ["error, %", "NFE per batch", "training, s"],
            "x",
        ),
        TableBlock("By bandwidth", ("model", "bandwidth", "accuracy, %", "NFE per batch", "training, s"), rows),
    ]


EXPERIMENT = Experiment(
    "landscape",
    "Single paths, bandwidth by bandwidth",
    "Single smoothed paths vary much in accuracy with the bandwidth.",
    "figure 7",
    trials,
    show,
)
