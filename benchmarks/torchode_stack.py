"""MVC-CDE on torchode: a step size per row, rows that are done wait for the slowest."""

import torch
import torchode
from torch import Tensor

from benchmarks.exact_mvc import Counts, ExactMVC


class TorchodeMVC(ExactMVC):
    """`ExactMVC` solved by torchode, a row of its batch per view of a series.

    Gradients go through the steps and not through the choice of their sizes, as in the other entries. Its just-in-time
    compilation is not used: TorchScript, which it builds on, is deprecated in current torch.
    """

    def integrate(self, dual: Tensor, z0: Tensor) -> Tensor:
        """One solve, every row with its own steps."""
        views, n, length, channels = dual.shape
        bandwidth = self.bandwidths[:, None, None]
        coefficients = dual.reshape(views * n, length, channels)

        def derivative(t: Tensor, z: Tensor) -> Tensor:
            distance = (t.view(views, n, 1) - self.times) / bandwidth
            slope = -distance / bandwidth * torch.exp(-0.5 * distance**2)
            dx = torch.bmm(slope.view(views * n, 1, length), coefficients).view(views, n, channels)
            return self.field(z.view(views, n, -1), dx).flatten(0, 1)

        term = torchode.ODETerm(derivative)
        controller = torchode.IntegralController(atol=self.tolerance, rtol=self.tolerance, term=term)
        solver = torchode.AutoDiffAdjoint(
            torchode.Dopri5(term=term), controller, backprop_through_step_size_control=False
        )
        start = self.times[0].expand(views * n)
        problem = torchode.InitialValueProblem(z0.flatten(0, 1), start, self.times[-1].expand(views * n))
        solution = solver.solve(problem)
        if (solution.status != 0).any():
            raise RuntimeError(f"torchode gave up: {solution.status.tolist()}")
        steps = solution.stats["n_steps"].double()
        evaluations = float(solution.stats["n_f_evals"].double().mean())
        # Six evaluations per step; what is beyond them (the choice of the first step) every row needs alike.
        once = evaluations - 6 * float(steps.max())
        self.counts = Counts(6 * float(steps.mean()) + once, evaluations)
        return solution.ys[:, -1].view(views, n, -1)
