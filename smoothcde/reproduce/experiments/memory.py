"""Parameters, and the peak memory of a training step."""

from collections.abc import Sequence

from smoothcde.reproduce.blocks import Block, Cell, TableBlock
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.grid import grid
from smoothcde.reproduce.published import SIZES
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.settings import PAPER_DATA
from smoothcde.reproduce.trial import Trial

MODELS = ("linear", "cubic", "mvc-kernel", "mvc-gp", "mamba")
BATCH = 64


def trials() -> list[Trial]:
    """One training step each, in a process of its own, on random walks of the data's shape."""
    return grid(PAPER_DATA, MODELS, [{"batch_size": BATCH}], seeds=1, measure="memory")


def show(results: Results) -> Sequence[Block]:
    """Parameters and memory beside the paper's."""
    rows = []
    for data in PAPER_DATA:
        for model in MODELS:
            found = results.of(Trial.of(data, model, measure="memory", batch_size=BATCH))
            parameters, megabytes = SIZES[data][model]
            if found:
                own = found[0]
                sized = Cell(f"{own['parameters']:,}", f"{parameters:,}")
                rows.append([data, model, sized, Cell(f"{own['megabytes']:,.0f}", f"{megabytes:,.0f}")])
    note = (
        f"Memory in megabytes: ours is the resident size of a fresh process above its baseline, one step of {BATCH} "
        "series on the CPU; the paper's is of a GPU at its own batch sizes (256, 2048, 512). Ratios between models are "
        "what can be compared."
    )
    return [TableBlock("Size", ("data", "model", "parameters", "peak memory, MB"), rows, note)]


EXPERIMENT = Experiment(
    "memory",
    "Parameters and memory",
    "At equal parameters several views take more memory than one path, and up to fifty times less than Mamba.",
    "table 3",
    trials,
    show,
)
