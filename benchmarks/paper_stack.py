"""MVC-CDE as its authors ran it: batched exact Gaussian process solve, torchdiffeq, one step size for the batch."""

from typing import Literal

import torch
from torch import Tensor
from torchdiffeq import odeint, odeint_adjoint

from benchmarks.exact_mvc import ExactMVC
from benchmarks.settings import Setting
from smoothcde.models import MultiViewCDE


class PaperMVC(ExactMVC):
    """`ExactMVC` solved by torchdiffeq.

    The adjoint is told of the path's coefficients beside the field's parameters: without them it would leave out the
    gradient of encoder and queries that goes through the path, and be less work. Its error norm leaves parameters out
    ("seminorm"), which saves steps.
    """

    def __init__(self, setting: Setting, model: MultiViewCDE, gradient: Literal["backprop", "adjoint"] = "backprop"):
        super().__init__(setting, model)
        self.gradient: str = gradient

    def integrate(self, dual: Tensor, z0: Tensor) -> Tensor:
        """One solve of all rows."""
        self.begin_counting()

        def derivative(t: Tensor, z: Tensor) -> Tensor:
            self.count()
            return self.field(z, torch.einsum("vl,vnlc->vnc", self.kernel(t)[1], dual))

        window = torch.stack([self.times[0], self.times[-1]])
        how = {"rtol": self.tolerance, "atol": self.tolerance, "method": "dopri5"}
        if self.gradient == "backprop":
            return odeint(derivative, z0, window, **how)[-1]
        parameters = (*self.field_parameters(), dual)
        states = odeint_adjoint(
            derivative, z0, window, adjoint_params=parameters, adjoint_options={"norm": "seminorm"}, **how
        )
        self.end_counting()
        return states[-1]
