"""Figures that the paper prints, by table; mean and deviation where it gives both.

Source: Serov, Kuleshov, Zaytsev: Efficient Neural Controlled Differential Equations via Attentive Kernel Smoothing.
"""

from collections.abc import Mapping
from typing import NamedTuple

Pair = tuple[float, float]


class MainLine(NamedTuple):
    """A line of the main comparison (table 2): accuracy in per cent, seconds, evaluations per batch."""

    accuracy: Pair
    seconds: Pair
    nfe: Pair | None


MAIN: Mapping[str, Mapping[str, MainLine]] = {
    "CharacterTrajectories": {
        "linear": MainLine((90.59, 1.47), (129.02, 1.63), (347.00, 13.49)),
        "cubic": MainLine((91.89, 0.47), (100.22, 0.44), (239.00, 4.69)),
        "ode-rnn": MainLine((74.65, 4.07), (333.62, 23.88), (1953.03, 317.93)),
        "gru-d": MainLine((93.17, 0.78), (10.56, 0.39), None),
        "log-ncde": MainLine((90.87, 0.89), (163.57, 1.96), (839.86, 26.51)),
        "mamba": MainLine((96.64, 1.24), (31.16, 0.13), None),
        "kernel": MainLine((89.20, 2.26), (49.53, 2.24), (165.63, 4.23)),
        "gp": MainLine((88.15, 0.42), (46.41, 1.61), (169.23, 2.06)),
        "mv-kernel": MainLine((89.93, 0.73), (50.31, 2.78), (190.49, 10.77)),
        "mv-gp": MainLine((92.97, 1.74), (46.20, 1.65), (206.60, 5.60)),
        "mvc-kernel": MainLine((91.71, 1.40), (51.65, 1.63), (209.34, 15.26)),
        "mvc-gp": MainLine((95.07, 0.49), (22.63, 0.48), (95.17, 7.41)),
    },
    "SpokenArabicDigits": {
        "linear": MainLine((89.44, 0.93), (120.51, 1.29), (1119.00, 42.00)),
        "cubic": MainLine((88.70, 1.03), (42.74, 0.84), (339.00, 7.35)),
        "ode-rnn": MainLine((68.47, 2.62), (53.29, 4.81), (1359.20, 170.47)),
        "gru-d": MainLine((96.57, 0.13), (2.02, 0.09), None),
        "log-ncde": MainLine((86.81, 0.54), (11.32, 0.16), (215.80, 9.23)),
        "mamba": MainLine((96.82, 0.94), (44.82, 16.73), None),
        "kernel": MainLine((96.32, 0.61), (14.27, 0.58), (187.00, 5.10)),
        "gp": MainLine((96.12, 0.33), (11.73, 0.46), (181.40, 5.37)),
        "mv-kernel": MainLine((97.11, 0.27), (19.59, 0.68), (195.40, 6.54)),
        "mv-gp": MainLine((97.52, 0.39), (13.61, 0.48), (187.00, 7.21)),
        "mvc-kernel": MainLine((97.34, 0.46), (19.12, 0.56), (191.40, 9.94)),
        "mvc-gp": MainLine((98.28, 0.29), (7.32, 0.15), (95.40, 0.89)),
    },
    "UWaveGestureLibrary": {
        "linear": MainLine((86.82, 4.22), (134.34, 2.17), (2068.20, 151.75)),
        "cubic": MainLine((85.68, 3.47), (81.78, 5.36), (1042.20, 116.76)),
        "ode-rnn": MainLine((37.95, 2.06), (205.21, 1.27), (4397.20, 2.68)),
        "gru-d": MainLine((78.86, 2.62), (5.74, 0.11), None),
        "log-ncde": MainLine((70.91, 6.36), (34.87, 0.53), (753.80, 25.60)),
        "mamba": MainLine((80.23, 8.26), (17.47, 0.08), None),
        "kernel": MainLine((88.41, 2.59), (14.84, 0.80), (236.60, 6.84)),
        "gp": MainLine((91.14, 1.87), (8.69, 0.25), (170.60, 5.37)),
        "mv-kernel": MainLine((89.77, 3.31), (17.97, 1.79), (320.60, 23.08)),
        "mv-gp": MainLine((92.95, 1.24), (17.19, 1.20), (359.00, 23.62)),
        "mvc-kernel": MainLine((90.00, 2.03), (19.87, 1.78), (453.80, 38.28)),
        "mvc-gp": MainLine((95.39, 0.28), (12.29, 0.27), (218.60, 10.04)),
    },
}

SMOOTHING_SPLINE: Mapping[str, Pair] = {
    "CharacterTrajectories": (90.80, 0.89),
    "SpokenArabicDigits": (96.81, 0.34),
    "UWaveGestureLibrary": (85.45, 4.85),
}

SIZES: Mapping[str, Mapping[str, tuple[int, float]]] = {
    "CharacterTrajectories": {
        "linear": (325_704, 152.37),
        "cubic": (325_704, 155.06),
        "mvc-kernel": (326_040, 160.12),
        "mvc-gp": (326_040, 375.26),
        "mamba": (326_820, 8_478.39),
    },
    "SpokenArabicDigits": {
        "linear": (753_686, 485.73),
        "cubic": (753_686, 510.18),
        "mvc-kernel": (986_510, 1_070.26),
        "mvc-gp": (753_933, 1_075.16),
        "mamba": (754_738, 62_323.94),
    },
    "UWaveGestureLibrary": {
        "linear": (253_096, 140.07),
        "cubic": (253_096, 143.29),
        "mvc-kernel": (319_884, 286.04),
        "mvc-gp": (252_683, 1_710.11),
        "mamba": (249_488, 25_224.74),
    },
}
"""Parameters, and peak memory of the paper's GPU in megabytes (table 3)."""

DIVERSITY: Mapping[tuple[str, float], tuple[Pair, Pair]] = {
    ("mv-gp", 0.0): ((0.383, 0.045), (86.36, 1.45)),
    ("mv-gp", 0.1): ((0.120, 0.021), (80.68, 1.82)),
    ("mvc-gp", 0.0): ((0.222, 0.033), (92.05, 1.12)),
    ("mvc-gp", 0.1): ((0.069, 0.014), (87.50, 1.55)),
}
"""Largest cosine and accuracy on UWaveGestureLibrary by weight of the penalty (table 4)."""

DROPPED: Mapping[tuple[str, str, float], Pair] = {
    ("CharacterTrajectories", "gru-d", 0.3): (73.18, 0.65),
    ("CharacterTrajectories", "gru-d", 0.5): (72.45, 0.82),
    ("CharacterTrajectories", "mvc-gp", 0.3): (91.61, 0.55),
    ("CharacterTrajectories", "mvc-gp", 0.5): (89.86, 0.71),
    ("SpokenArabicDigits", "gru-d", 0.3): (92.95, 0.24),
    ("SpokenArabicDigits", "gru-d", 0.5): (91.07, 0.31),
    ("SpokenArabicDigits", "mvc-gp", 0.3): (97.33, 0.35),
    ("SpokenArabicDigits", "mvc-gp", 0.5): (96.59, 0.42),
    ("UWaveGestureLibrary", "gru-d", 0.3): (75.59, 1.85),
    ("UWaveGestureLibrary", "gru-d", 0.5): (69.45, 2.74),
    ("UWaveGestureLibrary", "mvc-gp", 0.3): (86.36, 0.84),
    ("UWaveGestureLibrary", "mvc-gp", 0.5): (84.09, 1.12),
}
"""Accuracy with dropped stamps (table 6)."""

SPEECH: Mapping[tuple[str, float], tuple[Pair, Pair, float]] = {
    ("cubic", 0.3): ((73.31, 2.10), (425.0, 18.0), 16_131.0),
    ("linear", 0.3): ((74.19, 2.45), (838.0, 25.0), 6_124.0),
    ("mvc-gp", 0.3): ((90.44, 1.15), (236.0, 15.0), 1_882.0),
    ("cubic", 0.5): ((73.44, 2.41), (378.0, 14.0), 14_127.0),
    ("linear", 0.5): ((74.37, 1.85), (743.0, 20.0), 7_696.0),
    ("mvc-gp", 0.5): ((89.87, 0.85), (164.0, 12.0), 1_598.0),
}
"""Speech Commands with dropped stamps: accuracy, evaluations per batch, seconds (table 5)."""

ORDERS: Mapping[tuple[str, str], tuple[Pair, Pair, Pair]] = {
    ("linear", "dopri5"): ((86.59, 4.43), (128.0, 5.0), (2077.0, 71.0)),
    ("linear", "bosh3"): ((85.12, 2.80), (320.0, 14.0), (4150.0, 115.0)),
    ("linear", "dopri8"): ((82.95, 3.10), (1103.0, 45.0), (19672.0, 415.0)),
    ("cubic", "dopri5"): ((89.09, 3.65), (75.0, 3.0), (1075.0, 78.0)),
    ("cubic", "bosh3"): ((88.64, 2.15), (192.0, 8.0), (2322.0, 85.0)),
    ("cubic", "dopri8"): ((81.82, 4.25), (278.0, 11.0), (4449.0, 125.0)),
    ("mvc-gp", "dopri5"): ((95.39, 0.28), (12.29, 0.27), (218.0, 10.0)),
    ("mvc-gp", "bosh3"): ((93.18, 0.75), (19.93, 0.85), (108.0, 6.0)),
    ("mvc-gp", "dopri8"): ((89.77, 1.20), (25.51, 1.15), (393.0, 18.5)),
}
"""UWaveGestureLibrary by solver: accuracy, seconds, evaluations per batch (tables 7 and 8)."""

PEMS: Mapping[str, tuple[Pair, Pair | None, float]] = {
    "linear": ((63.64, 0.9), (6383.0, 159.0), 13_049.0),
    "cubic": ((67.05, 1.4), (1163.0, 97.0), 5_934.0),
    "mamba": ((71.59, 1.1), None, 41.0),
    "mvc-gp": ((84.09, 0.8), (225.0, 12.0), 1_679.0),
}
"""PEMS-SF: accuracy, evaluations per batch, seconds (table 9)."""

FORECASTING: Mapping[str, tuple[Pair, Pair]] = {
    "gru": ((0.476, 0.007), (33.0, 3.0)),
    "cubic": ((0.487, 0.004), (625.0, 18.0)),
    "mvc-gp": ((0.428, 0.009), (248.0, 25.0)),
}
"""ETTm1 with 30% dropped: squared error and seconds (table 1)."""
