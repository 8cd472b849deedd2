"""A table that several files of tests read."""

import pytest


@pytest.fixture
def wide(tmp_path):
    file = tmp_path / "wide.csv"
    file.write_text("id,time,hr,sat\n007,0,71,0.97\n007,1.5,NA,0.95\nb,0,64,?\nb,2,,0.99\n")
    return file
