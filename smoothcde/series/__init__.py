"""What users hand in (`SeriesSet`) and what models eat (`SeriesBatch`)."""

from smoothcde.series.batch import SeriesBatch
from smoothcde.series.problems import SeriesError
from smoothcde.series.rolling import Rolling
from smoothcde.series.set import SeriesSet

__all__ = ["Rolling", "SeriesBatch", "SeriesError", "SeriesSet"]
