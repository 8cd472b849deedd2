"""Why a prediction came out as it did: one page, or figures, for a few series."""

from smoothcde.explain.answer import Answer, SeriesExplanation
from smoothcde.explain.explanation import Explanation
from smoothcde.explain.gather import explain

__all__ = ["Answer", "Explanation", "SeriesExplanation", "explain"]
