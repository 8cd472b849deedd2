"""Figures."""

from smoothcde.plots.forecast import plot_forecast
from smoothcde.plots.outcome import draw_portrait, plot_outcome
from smoothcde.plots.portrait import Portrait, ViewPortrait, portray

__all__ = ["Portrait", "ViewPortrait", "draw_portrait", "plot_forecast", "plot_outcome", "portray"]
