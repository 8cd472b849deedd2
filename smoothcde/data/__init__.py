"""Data sets and what is done to them before a model sees them."""

from smoothcde.data.scale import ChannelScaler
from smoothcde.data.uea import load_uea

__all__ = ["ChannelScaler", "load_uea"]
