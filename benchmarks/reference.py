"""What is right: outputs and gradients of a float64 solve at 1e-8, and how far an entry is from them."""

from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks.entries import Entry, Gradients
from benchmarks.paper_stack import PaperMVC
from benchmarks.settings import Work
from smoothcde.solve import SolverOptions

TOLERANCE = 1e-8
TOGETHER = 64
"""Series solved at a time, which bounds memory."""
CHECKED = 4
"""Series on which smoothcde's reference is checked against torchdiffeq and an exact Gaussian process solve."""


@dataclass(frozen=True)
class Errors:
    """Against the reference.

    Attributes:
        largest: of any output.
        rms: of all outputs.
        gradient: norm of the difference of all gradients over the norm of the gradient.
    """

    largest: float
    rms: float
    gradient: float


@dataclass(frozen=True, eq=False)
class Reference:
    """Outputs `[n, classes]` and gradients of the mean cross-entropy."""

    outputs: np.ndarray
    gradients: Gradients

    @classmethod
    def of(cls, work: Work) -> "Reference":
        """By smoothcde with dopri8, each row on its own steps, a part of the series at a time."""
        model = deepcopy(work.model).double()
        options = SolverOptions("dopri8", rtol=TOLERANCE, atol=TOLERANCE)
        model.zero_grad()
        outputs = []
        for chosen in np.array_split(np.arange(len(work.labels)), -(-len(work.labels) // TOGETHER)):
            part = work.part(chosen)
            found = model.solve(part.batch(torch.float64), options=options).outputs
            (cross_entropy(found, torch.as_tensor(part.labels), reduction="sum") / len(work.labels)).backward()
            outputs.append(found.detach().numpy())
        gradients = {name: p.grad.numpy().copy() for name, p in model.named_parameters() if p.grad is not None}
        return cls(np.concatenate(outputs), gradients)

    @classmethod
    def by_torchdiffeq(cls, work: Work) -> "Reference":
        """The same by the paper's stack in float64: a second opinion, for few series."""
        model = PaperMVC(work.setting, work.model).double()
        # Its kernel matrix was made in float32.
        model.times = torch.arange(work.setting.length, dtype=torch.float64)
        model.bandwidths = torch.tensor(work.setting.bandwidths, dtype=torch.float64)
        distance = model.times[:, None] - model.times
        model.gram = torch.exp(-0.5 * (distance / model.bandwidths[:, None, None]) ** 2)
        model.tolerance = TOLERANCE
        outputs = model(work.batch(torch.float64).values)
        cross_entropy(outputs, torch.as_tensor(work.labels)).backward()
        gradients = {name: g.numpy() for name, g in model.gradients().items() if g is not None}
        return cls(outputs.detach().numpy(), gradients)

    def errors_of(self, outputs: np.ndarray, gradients: Gradients) -> Errors:
        """How far off outputs and gradients are."""
        if set(gradients) != set(self.gradients):
            raise ValueError(f"gradients are missing or unknown: {sorted(set(gradients) ^ set(self.gradients))}")
        off = np.abs(outputs.astype(np.float64) - self.outputs)
        apart = sum(float(np.sum((gradients[name] - g) ** 2)) for name, g in self.gradients.items())
        size = sum(float(np.sum(g**2)) for g in self.gradients.values())
        return Errors(float(off.max()), float(np.sqrt(np.mean(off**2))), float(np.sqrt(apart / size)))


def check_reference(work: Work) -> dict[str, float]:
    """smoothcde's reference against torchdiffeq's on a few series; both are far inside every tolerance asked for."""
    few = work.part(np.arange(min(CHECKED, len(work.labels))))
    ours, theirs = Reference.of(few), Reference.by_torchdiffeq(few)
    found = theirs.errors_of(ours.outputs, ours.gradients)
    assert found.largest < 1e-5, f"the references disagree by {found.largest} in an output"
    assert found.gradient < 1e-5, f"the references' gradients disagree by {found.gradient}"
    return asdict(found)


def compare(entry: Entry, reference: Reference) -> dict[str, Any]:
    """Errors and counts of an entry, with the assertion that it does the work it is timed for."""
    outputs = entry.infer()
    counts = entry.counts()
    errors = reference.errors_of(outputs, entry.gradients())
    scale = float(np.sqrt(np.mean(reference.outputs**2)))
    assert errors.rms < 0.02 * scale, f"outputs are {errors.rms} off in the mean square, of {scale}"
    assert errors.gradient < 0.1, f"gradients are {errors.gradient:.1%} off"
    evaluations = {"needed": counts.needed, "computed": counts.computed, "backward": entry.counts().backward}
    return {"errors": asdict(errors), "evaluations": evaluations}
