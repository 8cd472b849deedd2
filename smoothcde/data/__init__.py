"""Data sets and what is done to them before a model sees them."""

from smoothcde.data.corrupt import add_noise, drop_stamps, resample, scale_time
from smoothcde.data.download import DownloadError, fetch
from smoothcde.data.ett import load_ett
from smoothcde.data.known import KNOWN, KnownData, data_folder
from smoothcde.data.mfcc import MFCC
from smoothcde.data.physionet import PhysioNetSet, read_physionet2012
from smoothcde.data.scale import ChannelScaler
from smoothcde.data.speech import load_speech_commands, load_spoken_digits
from smoothcde.data.split import split_three
from smoothcde.data.uea import load_uea

__all__ = [
    "KNOWN",
    "MFCC",
    "ChannelScaler",
    "DownloadError",
    "KnownData",
    "PhysioNetSet",
    "add_noise",
    "data_folder",
    "drop_stamps",
    "fetch",
    "load_ett",
    "load_speech_commands",
    "load_spoken_digits",
    "load_uea",
    "read_physionet2012",
    "resample",
    "scale_time",
    "split_three",
]
