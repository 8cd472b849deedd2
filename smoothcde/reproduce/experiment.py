"""An experiment: which trials it needs, and what it shows of their results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from smoothcde.reproduce.blocks import Block
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.trial import Trial


def _nothing() -> list[Trial]:
    return []


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes:
        name: as `smoothcde reproduce` takes it.
        title: of its section on the page.
        claim: what the paper says about it, in a sentence or two; or what this is, if it is not in the paper.
        source: where in the paper; empty if nowhere.
        trials: the fixed grid, in the order of running: what matters most first.
        show: tables and figures of what is known so far.
        quick: a small grid that anybody can run in minutes, without any download.
    """

    name: str
    title: str
    claim: str
    source: str
    trials: Callable[[], Sequence[Trial]]
    show: Callable[[Results], Sequence[Block]]
    quick: Callable[[], Sequence[Trial]] = field(default=_nothing)
