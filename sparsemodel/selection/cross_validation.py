"""Cross-validation of k without leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.interfaces.numeric import random_numbers
from sparsemodel.progress import counted
from sparsemodel.selection.choice import Held, chosen_cell
from sparsemodel.selection.folds import Observed, fold_labels
from sparsemodel.selection.path import Search


@final
@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """Losses on held-out observations for each k."""

    ks: IntArray
    losses: FloatArray
    """Mean held-out loss, shape ``(folds, len(ks), number of ridges)``."""
    place: tuple[int, int]
    """Those of the chosen ``k`` and ridge."""

    @property
    def k(self) -> int:
        """Return the chosen ``k``."""
        return int(self.ks[self.place[0]])

    @property
    def mean(self) -> FloatArray:
        """Return the mean over the folds for each k and ridge."""
        return np.asarray(self.losses.mean(axis=0))

    @property
    def standard_error(self) -> FloatArray:
        """Return the standard error of the mean for each k and ridge."""
        folds = self.losses.shape[0]
        return np.asarray(self.losses.std(axis=0, ddof=1) / np.sqrt(folds))


def cross_validate(
    observed: Sequence[Observed],
    ks: Sequence[int],
    how: Search,
    *,
    folds: int | Any = 5,
    one_standard_error: bool = False,
    seed: int = 0,
) -> CrossValidation:
    """Return held-out losses of paths that never saw the observations they are tested on.

    Everything is done anew in each fold, from the fold's own observations. With
    ``one_standard_error`` the smallest k within one standard error of the best mean is chosen;
    ``k = 0`` unless losses of the observations held out fall from there in a t test at 10 %
    (:func:`~sparsemodel.selection.chosen_cell`), or over the folds where these are given, as groups
    may be, or observations are coupled.

    Parameters
    ----------
    observed
        The problem with each ridge; each path starts from the one with the ridge before, too.
    folds
        How many, at least 2 (classes are spread evenly), or an array with the number of the fold
        of each observation, which allows any grouping.
    """
    labels = fold_labels(observed[0], folds, random_numbers(seed))
    numbers = np.unique(np.concatenate(labels))
    losses = np.empty((numbers.size, len(ks), len(observed)))
    falls: list[tuple[FloatArray, FloatArray]] = []
    for row, number in enumerate(counted(numbers.tolist(), "fold")):
        kept = [part != number for part in labels]
        here, fall = how, None
        for column, one in enumerate(counted(observed, "ridge") if observed[1:] else observed):
            points = one.solutions(kept, ks, here)
            losses[row, :, column] = one.held_out_losses(kept, points)
            if np.ndim(folds) == 0 and (more := one.held_out_falls(kept, points)) is not None:
                fall = more if fall is None else (fall[0] + more[0], fall[1])
            here = replace(how, near=points)
        falls += [] if fall is None else [fall]
    place = chosen_cell(
        losses,
        one_standard_error=one_standard_error,
        null=int(ks[0]) == 0,
        held=Held.of(falls, observed[0].count) if falls else None,
    )
    return CrossValidation(np.array(ks), losses, place)
