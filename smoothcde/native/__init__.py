"""The innermost loops in compiled code, for CPUs."""

from smoothcde.native import chebyshev, conv_scores, gp_paths, march, posterior, selective_scan, tanh_field
from smoothcde.native.library import serves, why_not, without_compiled_code
from smoothcde.native.memory import give_back
from smoothcde.native.panels import differentiable
from smoothcde.native.tanh_field import Method, PackedField, StepResult

__all__ = [
    "Method",
    "PackedField",
    "StepResult",
    "chebyshev",
    "conv_scores",
    "differentiable",
    "give_back",
    "gp_paths",
    "march",
    "posterior",
    "selective_scan",
    "serves",
    "tanh_field",
    "why_not",
    "without_compiled_code",
]
