"""Figures."""

from smoothcde.plots.outcome import plot_outcome

__all__ = ["plot_outcome"]
