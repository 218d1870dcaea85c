r"""Information criteria for the number of nonzeros.

With the negative log-likelihood :math:`\ell` at a solution of :math:`d` estimated coefficients,
``k`` of them chosen among ``p``, and ``n`` observations,

* AIC: :math:`2\ell + 2d`;
* BIC: :math:`2\ell + d \log n`;
* EBIC: :math:`\mathrm{BIC} + 2\gamma \log \binom{p}{k}`, :math:`\gamma = 1`
  (Chen and Chen, Biometrika 2008);
* GIC: :math:`2\ell + d \log(\log n) \log p` (Fan and Tang, JRSS B 2013).

Squared, absolute and quantile losses stand for Gaussian and Laplace likelihoods of unknown scale:
:math:`2\ell = n \log(\text{mean squared residual})`, or :math:`2n \log(\text{mean loss})`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

import numpy as np

from sparsemodel.interfaces import FloatArray, ModelError, SparseRegression
from sparsemodel.numerics import RegressionObjective, margins
from sparsemodel.selection.path import PathPoint

LIKELIHOODS = frozenset(
    {"logistic_loss", "multinomial_loss", "poisson_loss", "gamma_loss", "cox_loss"}
)
"""Losses that are negative log-likelihoods up to a constant."""
_OF_UNKNOWN_SCALE = MappingProxyType(
    {"squared_loss": 1.0, "absolute_loss": 2.0, "quantile_loss": 2.0}
)


def _aic(n: float, p: int, k: int, d: int) -> float:
    return 2.0 * d


def _bic(n: float, p: int, k: int, d: int) -> float:
    return float(d * np.log(n))


def _ebic(n: float, p: int, k: int, d: int) -> float:
    from scipy.special import gammaln

    choices = gammaln(p + 1.0) - gammaln(k + 1.0) - gammaln(p - k + 1.0)
    return float(d * np.log(n) + 2.0 * choices)


def _gic(n: float, p: int, k: int, d: int) -> float:
    return float(d * np.log(max(np.log(n), 1.0)) * np.log(max(p, 2)))


CRITERIA: MappingProxyType[str, Callable[[float, int, int, int], float]] = MappingProxyType(
    {"aic": _aic, "bic": _bic, "ebic": _ebic, "gic": _gic}
)
"""What each criterion adds to twice the negative log-likelihood, given n, p, k and d."""


def criterion_values(
    form: SparseRegression, points: Sequence[PathPoint], criterion: str
) -> FloatArray:
    """Return the criterion for each point of a path; smaller is better.

    Raises
    ------
    ModelError
        For an unknown criterion, and for losses that are no likelihoods (a hinge loss, say).
    """
    if criterion not in CRITERIA:
        raise ModelError(
            f"There is no criterion {criterion!r}; known: {', '.join(CRITERIA)}. "
            "For any loss there is cross_validate()."
        )
    names = {term.loss.name for term in form.terms}
    if len(names) > 1 or not names <= LIKELIHOODS | set(_OF_UNKNOWN_SCALE):
        raise ModelError(
            f"{' + '.join(sorted(names))} is not a likelihood, so {criterion} means nothing for "
            "it; use cross_validate()."
        )
    name = names.pop()
    objective = RegressionObjective(form)
    n = float(sum(np.count_nonzero(term.weights) for term in form.terms))
    out = []
    for point in points:
        at = objective.point_from(point.x)
        k = form.sparsity.count(point.x)
        d = int(np.count_nonzero(point.x[form.sparsity.counted])) + int(
            np.prod(point.x[form.sparsity.free].shape)
        )
        total = _mean_loss(form, at.state)
        if name in LIKELIHOODS:
            fit = 2.0 * n * total
        else:
            fit = _OF_UNKNOWN_SCALE[name] * n * float(np.log(max(total, 1e-300)))
        out.append(fit + CRITERIA[criterion](n, form.sparsity.units, k, d))
    return np.array(out)


def _mean_loss(form: SparseRegression, predictions: Sequence[FloatArray]) -> float:
    """Return the weighted mean loss over the observations of all terms."""
    total = weight = 0.0
    for term, z in zip(form.terms, predictions, strict=True):
        total += term.loss.total(margins(term, z), term.target, term.weights)
        weight += float(term.weights.sum())
    return total / weight


__all__ = ["CRITERIA", "LIKELIHOODS", "criterion_values"]
