"""Tables in files: CSV and Parquet in, series, targets and static features out."""

from smoothcde.data.tables.files import (
    PARQUET,
    TableError,
    check_output,
    read_header,
    read_table,
    write_table,
    write_whole,
)
from smoothcde.data.tables.layout import TableLayout, learned_channels, seconds_of
from smoothcde.data.tables.static import StaticEncoder
from smoothcde.data.tables.targets import TASKS, guessed_task, labels_like, target_columns, targets_by_series

__all__ = [
    "PARQUET",
    "TASKS",
    "StaticEncoder",
    "TableError",
    "TableLayout",
    "check_output",
    "guessed_task",
    "labels_like",
    "learned_channels",
    "read_header",
    "read_table",
    "seconds_of",
    "target_columns",
    "targets_by_series",
    "write_table",
    "write_whole",
]
