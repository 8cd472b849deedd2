"""ETT: load and oil temperature of electricity transformers (Zhou et al., "Informer", 2021)."""

import pandas as pd

from smoothcde.checks import check_known
from smoothcde.data.known import KNOWN
from smoothcde.series import SeriesSet
from smoothcde.series.frames import column_of

NAMES = ("ETTm1", "ETTm2", "ETTh1", "ETTh2")
CHANNELS = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
"""Six loads and, last, the oil temperature."""


def load_ett(name: str = "ETTm1") -> SeriesSet:
    """One recording of seven channels, its times in seconds since 1970; 15 minutes apart in ETTm1 and ETTm2.

    Looked for as `ETT/<name>.csv` below the data folder.
    """
    check_known("recording", name, NAMES)
    file = KNOWN[name].located() / f"{name}.csv"
    frame = pd.read_csv(file)
    if absent := [column for column in ("date", *CHANNELS) if column not in frame.columns]:
        raise ValueError(f"'{file}' has no column {', '.join(absent)}; is it the file of {KNOWN[name].source}?")
    seconds = (pd.to_datetime(column_of(frame, "date")) - pd.Timestamp(0)).dt.total_seconds()
    values = frame[list(CHANNELS)].to_numpy(dtype=float).T
    return SeriesSet.from_arrays([values], [seconds.to_numpy()], ids=[name], channel_names=CHANNELS)
