"""Predictions on streams: rolling causal windows of many series at once."""

from smoothcde.streaming.predictor import StreamingPredictor

__all__ = ["StreamingPredictor"]
