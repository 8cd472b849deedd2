"""How to integrate: one frozen set of choices, checked when it is made."""

from dataclasses import dataclass
from typing import Literal

from smoothcde.checks import check_above_zero, check_choice, check_whole
from smoothcde.solve.tableaus import TABLEAUS

StepControl = Literal["row", "sample", "joint"]
Knots = Literal["land", "step_over"]
Gradient = Literal["backprop", "checkpoint", "adjoint"]

_CHOICES = {
    "solver": tuple(TABLEAUS),
    "step_control": ("row", "sample", "joint"),
    "knots": ("land", "step_over"),
    "gradient": ("backprop", "checkpoint", "adjoint"),
}


@dataclass(frozen=True)
class SolverOptions:
    """Choices of a solve.

    Attributes:
        solver: "bosh3", "bs5", "dopri5", "tsit5" or "dopri8"; of the three of order 5, dopri5 is what the paper
            ran, and bs5 takes the fewest evaluations along smoothed paths with a step size per row. (For paths with
            sudden steps, or one step size for all, its estimate is the weakest.)
        rtol: relative tolerance per step.
        atol: absolute tolerance per step.
        step_control: who shares a step size. "row": nobody, each (series, view) pair steps as it needs and leaves when
            done. "sample": the views of a series. "joint": the whole batch, by the RMS over all of it and torchdiffeq's
            controller, as the paper measured; every row then costs what the stiffest costs.
        knots: "land" ends steps on the path's kinks, which keeps the method's order, and keeps to the longest step that
            a smoothed path names. "step_over" ignores both.
        gradient: "backprop" through the accepted steps; "checkpoint", the same numbers in less memory for one more
            forward pass; "adjoint", a second solve backwards in time, equal up to the tolerance.
        max_steps: tried steps per row before it is given up.
    """

    solver: str = "dopri5"
    rtol: float = 1e-3
    atol: float = 1e-3
    step_control: StepControl = "row"
    knots: Knots = "land"
    gradient: Gradient = "backprop"
    max_steps: int = 10_000

    @property
    def classical(self) -> bool:
        """Whether steps are chosen as torchdiffeq chooses them, so that their counts compare: by time, by the embedded
        estimate as it is.
        """
        return self.step_control == "joint" or self.knots == "step_over"

    def __post_init__(self):
        for name, allowed in _CHOICES.items():
            check_choice(name, getattr(self, name), allowed)
        for name in ("rtol", "atol"):
            check_above_zero(
                name, getattr(self, name), "a tolerance must be positive and finite, 1e-3 is a common choice"
            )
        check_whole("max_steps", self.max_steps, 1)
