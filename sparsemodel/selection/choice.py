"""The choice among candidates by their scores, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsemodel.interfaces import FloatArray

_LEVEL = 0.95
"""One less the level of the tests that leave the model without coefficients."""
_CLEARLY = 0.5
"""Standard errors of the difference by which a smaller ridge has to be better than a larger one."""
_TWICE = 2.0
"""Variance of a mean over held-out observations, by that of independent ones: pairs count twice."""


class HeldOutLosses(NamedTuple):
    r"""What held-out observations say of leaving the model without coefficients.

    Of each observation it is how fast its loss falls from that model towards the average candidate
    of the largest ridge, :math:`s_i = -\ell'(u^0_i; y_i) \sum_k (u^k_i - u^0_i)`, with the
    predictions :math:`u^k` of ``k`` units fitted without the fold of ``i``.
    """

    means: FloatArray
    """Weighted mean of :math:`s_i` in each fold."""
    squares: FloatArray
    """The same of :math:`s_i^2`."""
    observations: float
    """How many there are in all, by their weights."""

    @classmethod
    def of(
        cls, parts: Sequence[tuple[FloatArray, FloatArray]], observations: float
    ) -> HeldOutLosses:
        """Return them from the values and weights of each fold's observations."""
        means = [np.average(values, weights=c) for values, c in parts]
        squares = [np.average(np.square(values), weights=c) for values, c in parts]
        return cls(np.array(means), np.array(squares), observations)


def mean_over_folds(losses: FloatArray, shares: FloatArray | None) -> FloatArray:
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
    held: HeldOutLosses | None = None,
) -> tuple[int, int]:
    r"""Return the candidate ``(k, ridge)`` of the lowest mean loss, or one that is about as good.

    With the losses :math:`l_{fj}` of ``F`` folds and shares :math:`s_f` that sum to one, the mean
    of candidate ``j`` is :math:`m_j = \sum_f s_f l_{fj}`, and its standard error is the root of
    :math:`\sum_f s_f (l_{fj} - m_j)^2 / (F - 1)`.

    The best candidate of a smaller ridge is taken only where its mean is lower than that of the
    best of the larger ones by more than half a standard error of the difference over the folds:
    losses of coefficients that are hardly shrunk vary more, so that the lowest of them is lower by
    chance.

    A model without coefficients is left only where held-out losses fall from it towards the average
    candidate of the largest ridge, in a one-sided t test at 5 % over the ``N`` held-out
    observations: where the mean of what :class:`HeldOutLosses` describes is more than
    :math:`\sqrt 2\, t_{N-1,\,0.95}` of its standard errors. One direction is tested, not the best
    of many, that of the least variance, and without the cost of its own size. The root of two is
    there because any two observations of different folds predict each other: what one says of the
    other is counted twice, so that the variance of the mean is twice that of independent terms
    (exactly so for noise and predictions linear in the target with symmetric weights). Where
    observations are not known one by one, the best candidate is compared over the folds, by a
    paired t test at 5 % (2.13 standard errors for five; Dietterich, Neural Computation 1998).

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
        What observations say, where they are independent and their losses are known.
    """
    folds, _, ridges = losses.shape
    simplest_first = _simplest_first(losses)
    mean = mean_over_folds(simplest_first, shares)
    best = _lowest(simplest_first, mean, ridges, shares)
    if null and _refused(simplest_first, best, ridges, held, shares):
        best = 0
    if one_standard_error and folds > 1 and best > 0:
        near = mean[best] + _error(simplest_first[:, best], shares)
        best = int(np.argmax(mean <= near))
    row, column = divmod(best, ridges)
    return row, ridges - 1 - column


def refused_by_test(
    losses: FloatArray,
    ks: Sequence[int],
    *,
    shares: FloatArray | None = None,
    held: HeldOutLosses | None = None,
) -> str | None:
    """Return what to say where the test of :func:`chosen_cell` leaves a lower mean for ``k = 0``.

    None where it does not, or where the difference is within one standard error over the folds.

    Parameters
    ----------
    losses, shares, held
        As there.
    ks
        The candidates, the first of them the model without coefficients.
    """
    ridges = losses.shape[2]
    simplest_first = _simplest_first(losses)
    mean = mean_over_folds(simplest_first, shares)
    best = _lowest(simplest_first, mean, ridges, shares)
    if not _refused(simplest_first, best, ridges, held, shares):
        return None
    apart = simplest_first[:, best % ridges] - simplest_first[:, best]
    gain, none = mean[best % ridges] - mean[best], abs(mean[best % ridges])
    if len(losses) < 2 or gain <= _error(apart, shares):
        return None
    share = f"{100.0 * gain / none:.2g} % lower" if none > 0.0 else "lower"
    over = "the folds" if held is None else f"the {held.observations:.4g} held-out observations"
    return (
        f"k = 0 is chosen although the mean held-out loss at k = {int(ks[best // ridges])} is "
        f"{share}: a t test at 5 % over {over} does not find that losses fall."
    )


def _simplest_first(losses: FloatArray) -> FloatArray:
    return losses[:, :, ::-1].reshape(len(losses), -1)


def _refused(
    losses: FloatArray,
    best: int,
    ridges: int,
    held: HeldOutLosses | None,
    shares: FloatArray | None,
) -> bool:
    """Return whether the test leaves the model without coefficients in place of the best."""
    if best < ridges:
        return False
    return not _better(losses[:, best % ridges] - losses[:, best], held, shares)


def _lowest(losses: FloatArray, mean: FloatArray, ridges: int, shares: FloatArray | None) -> int:
    """Return the lowest mean, that of a smaller ridge only where it is clearly lower."""
    best = int(np.argmin(mean[::ridges])) * ridges
    for column in range(1, ridges):
        other = int(np.argmin(mean[column::ridges])) * ridges + column
        apart = losses[:, best] - losses[:, other]
        error = _error(apart, shares) if len(losses) > 1 else 0.0
        if mean[best] - mean[other] > _CLEARLY * error:
            best = other
    return best


def _better(apart: FloatArray, held: HeldOutLosses | None, shares: FloatArray | None) -> bool:
    """Return whether there is more than chance in the gains of the folds, or of observations."""
    from scipy.special import stdtrit

    if held is not None and held.observations > 2.0:
        mean, degrees = float(np.average(held.means, weights=shares)), held.observations - 1.0
        spread = max(float(np.average(held.squares, weights=shares)) - mean**2, 0.0)
        return mean > float(stdtrit(degrees, _LEVEL) * np.sqrt(_TWICE * spread / degrees))
    if apart.size < 2:
        return True
    gain = float(np.average(apart, weights=shares))
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
