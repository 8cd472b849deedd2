"""Noise on the test series: evaluations and error of paths that smooth and of paths that interpolate."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, FigureBlock, Line, TableBlock
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import QUICK, QUICK_DATA, grid
from smoothcde.reproduce.results import Results, spread_of
from smoothcde.reproduce.trial import Trial

MODELS = ("linear", "cubic", "kernel", "gp", "mvc-kernel", "mvc-gp")


def trials() -> list[Trial]:
    """Three seeds on the smallest data set, one on the others; the trained models of the main comparison."""
    return grid(["UWaveGestureLibrary"], MODELS, measure="noise") + grid(
        ["CharacterTrajectories", "SpokenArabicDigits"], MODELS, seeds=1, measure="noise"
    )


def quick() -> list[Trial]:
    """Two models of the quick comparison."""
    return grid([QUICK_DATA], ("cubic", "mvc-gp"), [QUICK], seeds=1, measure="noise")


def show(results: Results) -> Sequence[Block]:
    """Growth of evaluations, error, and both at the largest noise."""
    data = results.data()
    growth, error, rows = [], [], []
    for group in results.groups:
        curves = results.of(group)
        levels = [point["level"] for point in curves[0]["levels"]]
        grown = [
            _mean(curve["levels"][i]["joint_nfe"] / curve["levels"][0]["joint_nfe"] for curve in curves)
            for i in range(len(levels))
        ]
        wrong = [_mean(100 * (1 - curve["levels"][i]["accuracy"]) for curve in curves) for i in range(len(levels))]
        panel = data.index(group.data)
        growth.append(Line(group.model, levels, grown, panel))
        error.append(Line(group.model, levels, wrong, panel))
        rows.append(
            [group.data, group.model, str(len(curves)), f"{grown[-1]:.2f}", f"{wrong[0]:.1f}", f"{wrong[-1]:.1f}"]
        )
    axis = "noise on the test series"
    heading = ("data", "model", "seeds", "NFE at the most noise over NFE without", "error without, %", "error with, %")
    return [
        FigureBlock("Evaluations under noise", data, growth, axis, ["NFE over NFE without noise"], log="y"),
        FigureBlock("Error under noise", data, error, axis, ["error, %"]),
        TableBlock(
            "At the largest noise", heading, rows, "NFE per batch, one step size for all, as the paper counted."
        ),
    ]


def _mean(values) -> float:
    found = spread_of(values)
    assert found is not None
    return found.mean


EXPERIMENT = Experiment(
    "noise",
    "Robustness to noise",
    "The evaluations of smoothing paths hardly change with noise on the test series, those of interpolants grow; the "
    "error of smoothing paths grows more slowly.",
    "figure 4",
    trials,
    show,
    quick,
)
