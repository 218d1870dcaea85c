"""Cross-validation of k without leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, NotSolvedError, Stop
from sparsemodel.interfaces.numeric import random_numbers
from sparsemodel.numerics.budget import sharing
from sparsemodel.progress import counted
from sparsemodel.selection.choice import HeldOutLosses, chosen_cell, refused_by_test
from sparsemodel.selection.folds import Observed, fold_labels
from sparsemodel.selection.path import PathPoint, Search


@final
@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """Losses on held-out observations for each k."""

    ks: IntArray
    losses: FloatArray
    """Mean held-out loss, shape ``(folds, len(ks), number of ridges)``; nan where a fold's path
    ended before."""
    place: tuple[int, int]
    """Those of the chosen ``k`` and ridge."""
    stop: Stop = Stop.CONVERGED
    """Whether a time limit ended paths early, or Ctrl-C left out folds."""
    refused: str | None = None
    """That the test left ``k = 0`` where another mean is lower by more than its error, in words."""

    @property
    def k(self) -> int:
        """Return the chosen ``k``."""
        return int(self.ks[self.place[0]])

    @property
    def mean(self) -> FloatArray:
        """Return the mean over the folds for each k and ridge; nan where one has no loss."""
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

    Everything is computed in each fold, from the fold's own observations. With
    ``one_standard_error`` the smallest k within one standard error of the best mean is chosen;
    ``k = 0`` unless losses of the observations held out fall from there in a t test at 5 %
    (:func:`~sparsemodel.selection.chosen_cell`), or over the folds where these are given, as groups
    may be, or observations are coupled.

    Parameters
    ----------
    observed
        The problem with each ridge, increasing; each path starts from the one before, too.
    folds
        How many, at least 2 (classes are spread evenly), or an array with the number of the fold
        of each observation, which allows any grouping.

    Raises
    ------
    NotSolvedError
        When time ends before every fold has solutions for two ``k``.

    Notes
    -----
    Each path has an equal share of the time that is left, and ends where it is when that is over.
    What a path did not reach is not followed further in others, and is not chosen. On Ctrl-C the
    folds that were finished are what is chosen by, if there are two. The test over
    observations needs the same candidates in all folds; where they differ it is that over folds.
    """
    labels = fold_labels(observed[0], folds, random_numbers(seed))
    numbers = np.unique(np.concatenate(labels))
    losses = np.full((numbers.size, len(ks), len(observed)), np.nan)
    left, reached, stop = numbers.size * len(observed), [len(ks)], Stop.CONVERGED
    falls: list[tuple[FloatArray, FloatArray]] = []
    for row, number in enumerate(counted(numbers.tolist(), "fold")):
        kept = [part != number for part in labels]
        here = how
        for column, one in enumerate(counted(observed, "ridge") if observed[1:] else observed):
            try:
                with sharing(left):
                    points, _, ended = one.solutions(kept, ks[: reached[-1]], here)
            except KeyboardInterrupt:
                if row < 2:
                    raise
                stop = Stop.INTERRUPTED
                break
            if ended.requested:
                _enough(points, row, numbers.size)
                stop = ended
            left -= 1
            reached.append(len(points))
            losses[row, : len(points), column] = one.held_out_losses(kept, points)
            here = replace(how, near=points)
        if stop is Stop.INTERRUPTED:  # the folds before are what there is
            losses = losses[:row]
            break
        fall = observed[-1].held_out_falls(kept, points) if np.ndim(folds) == 0 else None
        falls += [] if fall is None else [fall]
    # The paths of the first fold may be longer, and their directions those of more candidates.
    same = reached[1] == reached[-1]
    held = None
    if falls and same:
        held = HeldOutLosses.of(falls, observed[0].count * len(losses) / numbers.size)
    known, null = losses[:, : reached[-1]], int(ks[0]) == 0
    place = chosen_cell(known, one_standard_error=one_standard_error, null=null, held=held)
    refused = refused_by_test(known, ks, held=held) if null else None
    return CrossValidation(np.array(ks), losses, place, stop, refused)


def _enough(points: Sequence[PathPoint], fold: int, folds: int) -> None:
    """Raise an error unless a path that was cut short leaves a choice.

    Its first point is there in any case, and may be that of fewer units.
    """
    if len(points) < 2:
        raise NotSolvedError(
            f"Time was up before fold {fold + 1} of {folds} had solutions for two values of k, so "
            "that no two can be compared over all folds. Allow more time, or ask for fewer folds."
        )
