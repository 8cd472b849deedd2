"""Names of the columns of the tables in `conftest.py`, as `SeriesSet.from_frame` takes them."""

TIDY = {"id": "id", "time": "t", "variable": "v", "value": "y"}
WIDE = {"id": "id", "time": "t"}
