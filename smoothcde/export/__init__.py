"""Trained models as fixed graphs, for places without this library: ONNX files and torch programs."""

from smoothcde.export.graph import ScoringGraph
from smoothcde.export.onnx_file import export_onnx
from smoothcde.export.program import export_torch, graph_inputs, traced

__all__ = ["ScoringGraph", "export_onnx", "export_torch", "graph_inputs", "traced"]
