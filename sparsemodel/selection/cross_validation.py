"""Cross-validation of k without leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.interfaces.numeric import random_numbers
from sparsemodel.selection.choice import chosen_place
from sparsemodel.selection.folds import Observed, fold_labels


@final
@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """Losses on held-out observations for each k."""

    ks: IntArray
    losses: FloatArray
    """Mean held-out loss, shape ``(folds, len(ks))``."""
    k: int
    """The chosen one."""

    @property
    def mean(self) -> FloatArray:
        """Return the mean over the folds for each k."""
        return np.asarray(self.losses.mean(axis=0))

    @property
    def standard_error(self) -> FloatArray:
        """Return the standard error of the mean for each k."""
        folds = self.losses.shape[0]
        return np.asarray(self.losses.std(axis=0, ddof=1) / np.sqrt(folds))


def cross_validate(
    observed: Observed,
    ks: Sequence[int],
    *,
    folds: int | Any = 5,
    one_standard_error: bool = False,
    seed: int = 0,
) -> CrossValidation:
    """Return held-out losses of paths that never saw the observations they are tested on.

    Everything is done anew in each fold, from the fold's own observations. With
    ``one_standard_error`` the smallest k within one standard error of the best mean is chosen;
    ``k = 0`` unless the best mean is better by more than a standard error of the difference.

    Parameters
    ----------
    folds
        How many, at least 2 (classes are spread evenly), or an array with the number of the fold
        of each observation, which allows any grouping.
    """
    labels = fold_labels(observed, folds, random_numbers(seed))
    numbers = np.unique(np.concatenate(labels))
    losses = np.empty((numbers.size, len(ks)))
    for row, number in enumerate(numbers):
        kept = [part != number for part in labels]
        losses[row] = observed.held_out_losses(kept, observed.solutions(kept, ks))
    place = chosen_place(losses, one_standard_error=one_standard_error, null=int(ks[0]) == 0)
    return CrossValidation(np.array(ks), losses, int(ks[place]))


__all__ = ["CrossValidation", "cross_validate"]
