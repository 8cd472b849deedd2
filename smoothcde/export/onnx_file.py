"""A scoring graph as an ONNX file."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

import torch

from smoothcde.estimators import Predictor
from smoothcde.export.graph import ScoringGraph
from smoothcde.export.program import OUTPUTS, described, example_inputs, traced
from smoothcde.storage import replace_file


def export_onnx(
    predictor: Predictor,
    file: str | PathLike[str],
    *,
    length: int,
    longest: float | None = None,
    together: bool = False,
) -> ScoringGraph:
    """Write a predictor on frozen steps as an ONNX file, which onnxruntime runs with NumPy arrays alone.

    ```python
    export_onnx(predictor.frozen(train), "model.onnx", length=315)
    ```

    The graph takes any number of series at once, in their own units: `values`, `times`, `mask`, `lengths`, `start`,
    `end`, and `static` where the model has static features. It gives `answers` (calibrated probabilities, or targets in
    their own units), `error_ratio` and `outside`. The file's metadata names labels and channels and describes all
    inputs. Tracing takes a minute or two.

    Args:
        predictor: with a plan, see `Predictor.frozen`.
        file: to write, whole or not at all.
        length: stamps per series; shorter ones are padded, longer ones cannot be scored.
        longest: the longest window in time units; the longest of the training by default. Longer ones are `outside`.
        together: channels are always observed together: a mask per stamp, and a quicker graph.

    Returns:
        The graph that was written, which runs in torch as it is.
    """
    if absent := [name for name in ("onnx", "onnxscript") if find_spec(name) is None]:
        raise ImportError(f"ONNX files need {' and '.join(absent)}; install them with: pip install 'smoothcde[export]'")
    import onnx

    graph = ScoringGraph(predictor, length, longest, together)
    with _quiet(), torch.no_grad():
        # onnxruntime optimises the graph when it loads it; the exporter's own optimiser takes minutes on thousands of
        # nodes and gains nothing on top.
        program = torch.onnx.export(
            traced(graph),
            (),
            kwargs=example_inputs(graph),
            dynamo=True,
            optimize=False,
            output_names=list(OUTPUTS),
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    onnx.helper.set_model_props(model, described(predictor, graph))
    model.producer_name = "smoothcde"
    replace_file(Path(file), model.SerializeToString())
    return graph


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter says about packages that nobody needs here."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
