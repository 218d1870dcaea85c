"""How stable a support is when half of the observations are left out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from sparsemodel.interfaces import FloatArray, NotSolvedError
from sparsemodel.interfaces.numeric import random_numbers, whole_number
from sparsemodel.numerics.budget import budget
from sparsemodel.progress import counted
from sparsemodel.selection.folds import Observed, halves
from sparsemodel.selection.path import Search


def selection_frequencies(
    observed: Observed, ks: Sequence[int], how: Search, *, resamples: int, seed: int
) -> FloatArray:
    """Return how often each coordinate is chosen for each k, shape ``(len(ks), p)``.

    Each half has an equal share of the time that is left. Shares are those of the halves that
    reached ``k``; nan where none did. Ctrl-C leaves out the halves that are not finished.

    Random halves of the observations and their complements are solved in turn (complementary
    pairs: Shah and Samworth, JRSS B 2013, after Meinshausen and Buehlmann, JRSS B 2010).
    """
    resamples = whole_number(resamples, where="resamples", minimum=2)
    chosen, reached = np.zeros((len(ks), 0)), np.zeros((len(ks), 1))
    drawn = halves(observed, resamples, random_numbers(seed))
    for kept, number in zip(drawn, counted(range(resamples), "half"), strict=True):
        if number and budget().over():
            break  # a half is followed whole, or not at all
        try:
            points, _, ended = observed.solutions(kept, ks, how)
        except KeyboardInterrupt:
            if not reached.any():
                raise
            said = f"Stopped by Ctrl-C: the shares are those of {number} of {resamples} halves."
            warnings.warn(said, stacklevel=5)  # past what `asked` puts around methods
            break
        if ended.requested and len(points) < 2:
            continue  # the first point is there in any case, and may be that of fewer units
        nonzero = np.array([point.x.reshape(len(point.x), -1).any(axis=1) for point in points])
        chosen = chosen if chosen.size else np.zeros((len(ks), nonzero.shape[1]))
        chosen[: len(points)] += nonzero
        reached[: len(points)] += 1.0
    if not reached.any():
        raise NotSolvedError(
            f"Time was up before one of {resamples} halves had solutions for two values of k. "
            "Allow more time, or ask for fewer halves (resamples=)."
        )
    return np.where(reached > 0.0, chosen / np.maximum(reached, 1.0), np.nan)
