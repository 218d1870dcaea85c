"""How stable a support is when half of the observations are left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsemodel.interfaces import FloatArray
from sparsemodel.interfaces.numeric import random_numbers, whole_number
from sparsemodel.progress import counted
from sparsemodel.selection.folds import Observed, halves
from sparsemodel.selection.path import Search


def selection_frequencies(
    observed: Observed, ks: Sequence[int], how: Search, *, resamples: int = 50, seed: int = 0
) -> FloatArray:
    """Return how often each coordinate is chosen for each k, shape ``(len(ks), p)``.

    Random halves of the observations and their complements are solved in turn (complementary
    pairs: Shah and Samworth, JRSS B 2013, after Meinshausen and Buehlmann, JRSS B 2010).
    """
    resamples = whole_number(resamples, where="resamples", minimum=2)
    chosen: FloatArray = np.zeros(())
    drawn = halves(observed, resamples, random_numbers(seed))
    for kept, _ in zip(drawn, counted(range(resamples), "half"), strict=True):
        nonzero = np.array([point.x != 0.0 for point in observed.solutions(kept, ks, how).points])
        chosen = chosen + (nonzero if nonzero.ndim == 2 else nonzero.any(axis=2))
    return chosen / resamples
