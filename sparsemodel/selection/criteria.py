r"""Information criteria for the number of nonzeros.

With the negative log-likelihood :math:`\ell` at a solution of :math:`d` estimated coefficients,
``k`` of them chosen among ``p``, and ``n`` observations,

* AIC: :math:`2\ell + 2d`;
* BIC: :math:`2\ell + d \log n`;
* EBIC: :math:`\mathrm{BIC} + 2\gamma \log \binom{p}{k}`, :math:`\gamma = 1`
  (Chen and Chen, Biometrika 2008);
* GIC: :math:`2\ell + d \log(\log n) \log p` (Fan and Tang, JRSS B 2013).

For a regression :math:`2\ell` is what the loss says (:class:`~sparsemodel.interfaces.Likelihood`):
``2n`` times the mean loss where the dispersion is known; :math:`n \log(\text{mean squared
residual})` for the squared loss and :math:`2n \log(\text{mean loss})` for absolute and quantile
losses, whose scale is estimated; the likelihood at the best shape for the gamma loss. ``n`` counts
observations of positive weight, for the Cox model events. Constants that all models of the data
share are left out. For precision matrices see :mod:`sparsemodel.selection.precision_matrices`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from sparsemodel.interfaces import ModelError

Penalty = Callable[[float, int, int, int], float]
"""What a criterion adds to twice the negative log-likelihood, given n, p, k and d."""


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


CRITERIA: Mapping[str, Penalty] = MappingProxyType(
    {"aic": _aic, "bic": _bic, "ebic": _ebic, "gic": _gic}
)
"""The penalty of each criterion."""


def penalty_of(criterion: str, own: Mapping[str, Penalty] = MappingProxyType({})) -> Penalty:
    """Return the penalty of a criterion; ``own`` are those that a form has of its own.

    Raises
    ------
    ModelError
        For an unknown criterion.
    """
    if criterion not in CRITERIA:
        raise ModelError(
            f"There is no criterion {criterion!r}; known: {', '.join(CRITERIA)}. "
            "For any loss there is cross_validate()."
        )
    return own.get(criterion, CRITERIA[criterion])


__all__ = ["CRITERIA", "Penalty", "penalty_of"]
