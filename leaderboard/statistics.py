"""Means with bootstrap intervals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Interval", "bootstrap_mean"]

_RESAMPLES = 10_000
_BLOCK = 2_000_000  # draws held at once


class Interval(NamedTuple):
    """A mean with its interval, and the number of values it was taken over."""

    mean: float
    low: float
    high: float
    number: int


def bootstrap_mean(
    values: Sequence[float | None], *, seed: int, confidence: float = 0.95
) -> Interval | None:
    """Return the mean with a percentile bootstrap interval (Efron & Tibshirani 1993, ch. 13).

    Values that are None could not be computed and are left out; the result is None if no value
    is left. 10,000 resamples; the same values and seed give the same interval.
    """
    known = np.array([value for value in values if value is not None], dtype=float)
    if not known.size:
        return None
    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK // known.size)
    means = [
        known[generator.integers(known.size, size=(min(rows, _RESAMPLES - done), known.size))].mean(
            axis=1
        )
        for done in range(0, _RESAMPLES, rows)
    ]
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return Interval(float(known.mean()), float(low), float(high), int(known.size))
