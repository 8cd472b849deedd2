"""Adaptive integration with a step size per row."""

from smoothcde.solve.cost import bandwidth_for, predict_cost
from smoothcde.solve.integrate import integrate
from smoothcde.solve.options import SolverOptions
from smoothcde.solve.plan import StepPlan
from smoothcde.solve.result import Solution, SolveError, Stats, Status
from smoothcde.solve.rows import Rows
from smoothcde.solve.terms import ControlTerm, Field, LogODETerm, ODETerm, Term

__all__ = [
    "ControlTerm",
    "Field",
    "LogODETerm",
    "ODETerm",
    "Rows",
    "Solution",
    "SolveError",
    "SolverOptions",
    "Stats",
    "Status",
    "StepPlan",
    "Term",
    "bandwidth_for",
    "integrate",
    "predict_cost",
]
