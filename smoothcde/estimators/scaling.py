"""Standardisation of plain columns: static features and regression targets."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class ColumnScaler:
    """(x - mean) / scale per column; a column that never varies is only centred."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, columns: np.ndarray) -> "ColumnScaler":
        """Statistics of `[n, columns]`."""
        mean, scale = columns.mean(axis=0), columns.std(axis=0)
        # A constant column has a spread of rounding size, not exactly zero.
        return cls(mean, np.where(scale > 1e-12 * np.maximum(np.abs(mean), 1e-300), scale, 1.0))

    def transform(self, columns: np.ndarray) -> np.ndarray:
        """Standardised columns."""
        return (columns - self.mean) / self.scale

    def inverse(self, columns: np.ndarray) -> np.ndarray:
        """Columns in their own units."""
        return columns * self.scale + self.mean
