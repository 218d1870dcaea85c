"""Cross-validation of k without leaks, and subsets of observations by weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.compiler import Facts, reduce_form
from sparsemodel.interfaces import (
    BoolArray,
    DataError,
    FloatArray,
    IntArray,
    SparseRegression,
    Term,
)
from sparsemodel.interfaces.numeric import random_numbers, shown
from sparsemodel.numerics import RegressionObjective, margins
from sparsemodel.selection.path import PathPoint, solve_path

_IN_EVERY_FIT = -1


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
    form: SparseRegression,
    ks: Sequence[int],
    *,
    folds: int | Any = 5,
    one_standard_error: bool = True,
    seed: int = 0,
) -> CrossValidation:
    """Return held-out losses of paths that never saw the observations they are tested on.

    Everything is done anew in each fold, centring and scaling included. With
    ``one_standard_error`` the smallest k within one standard error of the best mean is chosen.

    Parameters
    ----------
    folds
        How many, at least 2 (classes are spread evenly), or an array with the number of the fold
        of each observation, which allows any grouping.

    Notes
    -----
    A term of a single row, such as ``mu @ w``, is part of the model: it counts in every fit and in
    no held-out loss.
    """
    labels = _fold_labels(
        form,
        folds,
        random_numbers(seed),
    )
    numbers = np.unique(np.concatenate(labels))
    numbers = numbers[numbers != _IN_EVERY_FIT]
    losses = np.empty((numbers.size, len(ks)))
    for row, number in enumerate(numbers):
        out = [part == number for part in labels]
        points = _path_on(form, [~mask for mask in out], ks)
        losses[row] = [held_out_loss(form, out, point) for point in points]
    mean = losses.mean(axis=0)
    best = int(np.argmin(mean))
    if one_standard_error:
        error = float(losses[:, best].std(ddof=1) / np.sqrt(numbers.size))
        best = int(np.flatnonzero(mean <= mean[best] + error)[0])
    return CrossValidation(np.array(ks), losses, int(ks[best]))


def _path_on(form: SparseRegression, kept: list[BoolArray], ks: Sequence[int]) -> list[PathPoint]:
    part = on_observations(form, kept)
    return solve_path(part, reduce_form(part, Facts(part)), ks).uninterrupted()


def on_observations(form: SparseRegression, kept: Sequence[BoolArray]) -> SparseRegression:
    """Return the form on some of each term's observations; means become theirs.

    Rows that are not kept have weight zero, so that the data are not copied.
    """
    terms = []
    for term, mask in zip(form.terms, kept, strict=True):
        weights = np.where(mask, term.weights, 0.0)
        weights *= term.weights.sum() / weights.sum()
        terms.append(replace(term, weights=weights))
    return replace(form, terms=tuple(terms))


def held_out_loss(form: SparseRegression, out: Sequence[BoolArray], point: PathPoint) -> float:
    """Return the mean loss of a point on the observations ``out``."""
    at = RegressionObjective(form).point_from(point.x)
    total = weight = 0.0
    for term, z, mask in zip(form.terms, at.state, out, strict=True):
        c = np.where(mask, term.weights, 0.0)
        total += term.loss.total(margins(term, z), term.target, c)
        weight += float(c.sum())
    return total / weight


def observed(term: Term) -> bool:
    """Return whether a term's rows are observations, of which some can be left out."""
    return bool(term.target.shape[0] > 1)


def _fold_labels(
    form: SparseRegression, folds: int | Any, rng: np.random.Generator
) -> list[IntArray]:
    sizes = [term.target.shape[0] for term in form.terms if observed(term)]
    if not sizes:
        raise DataError("Every term has a single row, so that no observations can be left out.")
    alone = np.array([_IN_EVERY_FIT])
    if isinstance(folds, (int, np.integer)) and not isinstance(folds, bool):
        if not 2 <= folds <= min(sizes):
            raise DataError(f"folds must be between 2 and {min(sizes)}, not {shown(folds)}.")
        return [
            _spread(term.target, int(folds), rng) if observed(term) else alone
            for term in form.terms
        ]
    labels = np.asarray(folds)
    if len(sizes) != 1 or labels.shape != (sizes[0],):
        raise DataError(
            f"folds must be a whole number, or one label for each of the {sizes[0]} observations."
        )
    codes = np.unique(labels, return_inverse=True)[1].reshape(-1)
    if codes.max() < 1:
        raise DataError("folds puts all observations into one fold; there must be two or more.")
    return [codes if observed(term) else alone for term in form.terms]


def _spread(target: FloatArray, folds: int, rng: np.random.Generator) -> IntArray:
    """Deal the observations out to the folds in random order, class by class."""
    key = target if target.ndim == 1 else target[:, -1]
    few = np.unique(key).size <= 20  # classes, events; else the order means nothing
    order = rng.permutation(key.size)
    if few:
        order = order[np.argsort(key[order], kind="stable")]
    labels = np.empty(key.size, dtype=np.intp)
    labels[order] = np.arange(key.size) % folds
    return labels


__all__ = ["CrossValidation", "cross_validate", "held_out_loss", "observed", "on_observations"]
