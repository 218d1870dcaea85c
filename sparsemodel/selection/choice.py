"""The choice among candidates by their scores, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsemodel.interfaces import FloatArray

_LEVEL = 0.95
"""One less the level of the test that leaves the model without coefficients."""


class Held(NamedTuple):
    """How held-out observations vary, which separates better models from chance."""

    squares: FloatArray
    """Mean over each fold's observations of the squared difference between the loss of a candidate
    and that of the first ``k`` with its ridge, shape ``(folds, ks, ridges)``."""
    observations: float
    """How many there are, by their weights."""


def mean_over_folds(losses: FloatArray, shares: FloatArray | None = None) -> FloatArray:
    """Return the mean of each candidate, shape ``losses.shape[1:]``.

    Parameters
    ----------
    losses
        Shape ``(folds, ...)``.
    shares
        The weight of each fold; None, like equal ones, gives ``losses.mean(axis=0)`` bit by bit.
    """
    if shares is None or np.all(shares == shares[0]):
        return np.asarray(losses.mean(axis=0))
    return np.asarray(np.average(losses, axis=0, weights=shares))


def chosen_cell(
    losses: FloatArray,
    *,
    one_standard_error: bool,
    null: bool = False,
    shares: FloatArray | None = None,
    held: Held | None = None,
) -> tuple[int, int]:
    r"""Return the candidate ``(k, ridge)`` of the lowest mean loss, or one that is about as good.

    With the losses :math:`l_{fj}` of ``F`` folds and shares :math:`s_f` that sum to one, the mean
    of candidate ``j`` is :math:`m_j = \sum_f s_f l_{fj}`, and its standard error is the root of
    :math:`\sum_f s_f (l_{fj} - m_j)^2 / (F - 1)`. A model without coefficients is left only for one
    that predicts better in a one-sided paired t test at 5 %: by more than
    :math:`t_{N-1,\,0.95}` standard errors of the mean difference over the ``N`` held-out
    observations (Vehtari, Gelman and Gabry, Statistics and Computing 2017, section 5.2), or where
    these are not known one by one, over the folds (2.13 for five; Dietterich, Neural Computation
    1998). The level is nominal, since training sets overlap and the best of many candidates is
    tested.

    Parameters
    ----------
    losses
        Shape ``(folds, ks, ridges)``, both increasing. Of two candidates the one of fewer units is
        simpler, and of as many that of the larger ridge.
    one_standard_error
        Take the simplest candidate whose mean is within one standard error of the lowest (Breiman,
        Friedman, Olshen and Stone, Classification and Regression Trees, 1984).
    null
        Whether the first ``k`` is the model without coefficients.
    shares
        The weight of each fold; None weighs them equally.
    held
        How observations vary, where they are independent and their losses are known.
    """
    folds, _, ridges = losses.shape
    simplest_first = losses[:, :, ::-1].reshape(folds, -1)
    mean = mean_over_folds(simplest_first, shares)
    best = int(np.argmin(mean))
    if null and best >= ridges:
        apart = simplest_first[:, best % ridges] - simplest_first[:, best]
        squares = None if held is None else held.squares[:, :, ::-1].reshape(folds, -1)[:, best]
        count = 0.0 if held is None else held.observations
        best = best if _better(apart, squares, count, shares) else 0
    if one_standard_error and folds > 1 and best > 0:
        near = mean[best] + _error(simplest_first[:, best], shares)
        best = int(np.argmax(mean <= near))
    row, column = divmod(best, ridges)
    return row, ridges - 1 - column


def _better(
    apart: FloatArray, squares: FloatArray | None, count: float, shares: FloatArray | None
) -> bool:
    """Return whether a mean gain is more than chance, given by fold, its squares where known."""
    from scipy.special import stdtrit

    gain = float(np.average(apart, weights=shares))
    if squares is not None and count > 2.0:
        spread = max(float(np.average(squares, weights=shares)) - gain**2, 0.0)
        return gain > float(stdtrit(count - 1.0, _LEVEL) * np.sqrt(spread / (count - 1.0)))
    if apart.size < 2:
        return True
    return gain > float(stdtrit(apart.size - 1, _LEVEL)) * _error(apart, shares)


def _error(losses: FloatArray, shares: FloatArray | None) -> float:
    """Return the standard error of a mean over folds."""
    squares = np.square(losses - np.average(losses, weights=shares))
    return float(np.sqrt(np.average(squares, weights=shares) / (losses.size - 1)))


def best_carried(scores: FloatArray, ks: Sequence[int], most: int | None) -> tuple[int, int]:
    """Return the place of the smallest score, shape ``(ks, ridges)``, among ``ks`` up to ``most``.

    The first ``k`` is always among them; None puts no limit.
    """
    inside = len(ks) if most is None else max(int(np.searchsorted(ks, most, side="right")), 1)
    row, column = divmod(int(np.argmin(scores[:inside])), scores.shape[1])
    return row, column


def at_the_end(
    ks: Sequence[int], place: int, *, by: str, units: int, most: int | None = None
) -> str | None:
    """Return what to say where the choice is an end of the candidates; None where it is not.

    Zero and all there are cannot be passed, and a single candidate is no choice.

    Parameters
    ----------
    ks
        The candidates, increasing.
    place
        That of the choice.
    by
        The rule that chose.
    units
        How many may be nonzero at all.
    most
        The largest ``k`` that the rule may choose.
    """
    k = int(ks[place])
    if len(ks) < 2:
        return None
    if most is not None and ks[-1] > most and (place + 1 == len(ks) or ks[place + 1] > most):
        return (
            f"k = {k} is the end of what {by} may choose here: the observations carry at most "
            f"{most} of {units}, n / (log p log log n). cross_validate() has no such limit."
        )
    if place == len(ks) - 1 and k < units:
        return f"{by} chooses k = {k}, the largest of the path; follow it further."
    if place == 0 and k > 0:
        return f"{by} chooses k = {k}, the smallest of the path; begin it earlier."
    return None
