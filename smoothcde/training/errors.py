"""What can go wrong in training, in words."""

from collections.abc import Hashable, Sequence

from smoothcde.series.problems import listed
from smoothcde.solve import SolveError, Status


class TrainingError(ArithmeticError):
    """A loss or gradient that is no number any more; says where. `series_ids` holds every series of that step."""

    def __init__(self, message: str, series_ids: Sequence[Hashable] = ()):
        super().__init__(message)
        self.series_ids = tuple(series_ids)

    @classmethod
    def at(
        cls,
        what: str,
        epoch: int,
        step: int,
        ids: Sequence[Hashable],
        culprits: Sequence[Hashable] = (),
        failure: SolveError | None = None,
    ) -> "TrainingError":
        """At a step of an epoch, both counted from 1.

        Args:
            what: is wrong.
            epoch: when.
            step: when.
            ids: of the series in the step.
            culprits: those of them whose outputs could not be made, if known.
            failure: of the solver, which knows the remedy.
        """
        shown = f"series {listed(culprits, most=20)}" if culprits else f"one of the series {listed(ids, most=20)}"
        remedy = "look for extreme values there, lower learning_rate, or set a smaller clip"
        if failure is not None:
            what = "the solver did not finish"
            remedy = next(status.value for status in failure.solution.status if status is not Status.FINISHED)
        return cls(f"{what} in epoch {epoch}, step {step}, on {shown}; {remedy}", ids)


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: damaged, or of another run."""
