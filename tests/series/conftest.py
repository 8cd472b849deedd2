"""Tables and series that several files of tests read."""

import numpy as np
import pandas as pd
import pytest

from smoothcde.series import SeriesSet


@pytest.fixture
def stays() -> pd.DataFrame:
    """Two stays, rows out of order, a text column besides."""
    return pd.DataFrame(
        {
            "id": ["ann", "bob", "ann", "ann"],
            "t": [2.0, 7.0, 0.0, 1.0],
            "pulse": [72, 64, 70, 71],
            "oxygen": [np.nan, 0.97, 0.99, 0.98],
            "note": ["ok", "", "", ""],
        }
    )


@pytest.fixture
def events() -> pd.DataFrame:
    """The same two stays, an observation per row."""
    return pd.DataFrame(
        {
            "id": ["ann", "ann", "ann", "ann", "ann", "bob", "bob"],
            "t": [2.0, 0.0, 0.0, 1.0, 1.0, 7.0, 7.0],
            "v": ["pulse", "pulse", "oxygen", "pulse", "oxygen", "oxygen", "pulse"],
            "y": [72.0, 70.0, 0.99, 71.0, 0.98, 0.97, 64.0],
        }
    )


@pytest.fixture
def three() -> SeriesSet:
    """Three series of 3, 0 and 2 stamps."""
    return SeriesSet.from_arrays(
        [np.array([[1.0, 2.0, 3.0]]), np.zeros((1, 0)), np.array([[4.0, 5.0]])],
        [[10.0, 11.0, 15.0], [], [2.0, 4.0]],
        ids=["a", "b", "c"],
        static=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    )
