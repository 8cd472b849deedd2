"""Data sets and what is done to them before a model sees them."""

from smoothcde.data.corrupt import add_noise, drop_stamps, resample, scale_time
from smoothcde.data.ett import load_ett
from smoothcde.data.physionet import PhysioNetSet, read_physionet2012
from smoothcde.data.scale import ChannelScaler
from smoothcde.data.split import split_three
from smoothcde.data.uea import load_uea

__all__ = [
    "ChannelScaler",
    "PhysioNetSet",
    "add_noise",
    "drop_stamps",
    "load_ett",
    "load_uea",
    "read_physionet2012",
    "resample",
    "scale_time",
    "split_three",
]
