r"""Information criteria for the number of nonzeros.

With the negative log-likelihood :math:`\ell` at a solution of :math:`d` estimated coefficients,
``k`` of them chosen among ``p``, and ``n`` observations,

* AIC: :math:`2\ell + 2d` (Akaike, IEEE Trans. Automatic Control 1974);
* BIC: :math:`2\ell + d \log n` (Schwarz, Annals of Statistics 1978);
* EBIC: :math:`\mathrm{BIC} + 2\gamma \log \binom{p}{k}`, :math:`\gamma = 1` unless said otherwise
  (Chen and Chen, Biometrika 2008);
* GIC: :math:`2\ell + d \log(\log n) \log p` (Fan and Tang, JRSS B 2013).

For a regression :math:`2\ell` is what the loss says (:class:`~sparsemodel.interfaces.Likelihood`):
``2n`` times the mean loss where the dispersion is known; :math:`n \log(\text{mean squared
residual})` for the squared loss and :math:`2n \log(\text{mean loss})` for absolute and quantile
losses, whose scale is estimated; the likelihood at the best shape for the gamma loss. ``n`` counts
observations by their weights (:func:`copies`), for the Cox model events. Constants that all models
of the data share are left out. For precision matrices see
:mod:`sparsemodel.selection.precision_matrices`.

Where the scale is estimated and ``p`` is larger than ``n``, :math:`n \log(\text{RSS}/n)` falls
without end as the residuals vanish, and no penalty stops it. A criterion therefore chooses among
the ``k`` that the observations carry (:func:`carried`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.interfaces.numeric import is_one_of, shown

Penalty = Callable[[float, int, int, float], float]
"""What a criterion adds to twice the negative log-likelihood, given n, p, k and d."""


def _aic(n: float, p: int, k: int, d: float) -> float:
    return 2.0 * d


def _bic(n: float, p: int, k: int, d: float) -> float:
    return float(d * np.log(n))


def _gic(n: float, p: int, k: int, d: float) -> float:
    return float(d * np.log(max(np.log(n), 1.0)) * np.log(max(p, 2)))


def ebic(gamma: float) -> Penalty:
    r"""Return the penalty of EBIC for a regression."""

    def penalty(n: float, p: int, k: int, d: float) -> float:
        from scipy.special import gammaln

        choices = gammaln(p + 1.0) - gammaln(k + 1.0) - gammaln(p - k + 1.0)
        return float(d * np.log(n) + 2.0 * gamma * choices)

    return penalty


CRITERIA: Mapping[str, Callable[[float], Penalty]] = MappingProxyType(
    {"aic": lambda _: _aic, "bic": lambda _: _bic, "ebic": ebic, "gic": lambda _: _gic}
)
"""The penalty of each criterion, given the gamma of EBIC."""


@final
@dataclass(frozen=True, slots=True)
class Criterion:
    """An information criterion that was asked for."""

    name: str
    """Among :data:`CRITERIA`."""
    gamma: float | None = None
    """Of EBIC; None is what is usual for the form of problem."""
    shrunk: bool = False
    """Whether coefficients that a ridge shrinks count less than one, to compare ridges."""


def penalty_of(
    criterion: Criterion,
    *,
    usual: float = 1.0,
    ebic: Callable[[float], Penalty] = ebic,
) -> Penalty:
    """Return the penalty of a criterion.

    Parameters
    ----------
    usual
        The gamma of EBIC where none was given.
    ebic
        EBIC as a form of problem has it.

    Raises
    ------
    ModelError
        For an unknown criterion, and for a ``gamma`` that is negative or of another criterion.
    """
    name, gamma = criterion.name, criterion.gamma
    if not is_one_of(name, CRITERIA):
        raise ModelError(
            f"There is no criterion {shown(name)}; known: {', '.join(CRITERIA)}. "
            "For any loss there is cross_validate()."
        )
    if name != "ebic":
        if gamma is not None:
            raise ModelError(f"gamma belongs to ebic, and {name} has none; leave it out.")
        return CRITERIA[name](0.0)
    if gamma is None:
        return ebic(usual)
    number = isinstance(gamma, (int, float, np.number)) and not isinstance(gamma, bool)
    if not (number and 0.0 <= gamma < np.inf):
        raise ModelError(
            f"gamma must be a number from 0 (which is BIC) on, not {shown(gamma)}; "
            f"usual are values up to 1."
        )
    return ebic(float(gamma))


def carried(n: float, p: int) -> int:
    r"""Return the largest number of nonzeros among ``p`` that ``n`` observations carry.

    It is :math:`\lfloor n / (\log p \, \log\log n) \rfloor`, the largest support size of the ABESS
    algorithm (Zhu, Wen, Zhu, Zhang and Wang, PNAS 2020), up to which its criterion is consistent.
    Neither logarithm is taken to be less than one, and at least one nonzero is carried.

    Examples
    --------
    >>> from sparsemodel.selection.criteria import carried
    >>> carried(30, 200), carried(60, 300), carried(1000, 10)
    (4, 7, 10)
    """
    logs = max(np.log(p), 1.0) * max(np.log(np.log(max(n, 2.0))), 1.0)
    return int(min(p, max(n / logs, 1.0)))


def copies(weights: FloatArray) -> FloatArray:
    r"""Return how many observations each weight stands for.

    Whole numbers are copies: three equal observations and one of weight three are the same. Any
    others say how much observations matter beside each other, and add up to the effective number
    :math:`(\sum_i w_i)^2 / \sum_i w_i^2` (Kish, Survey Sampling, 1965), which is the number of
    observations where the weights are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.selection.criteria import copies
    >>> copies(np.array([3.0, 1.0, 0.0])), copies(np.array([0.5, 0.5, 0.0]))
    (array([3., 1., 0.]), array([1., 1., 0.]))
    """
    if np.all(weights == np.floor(weights)):
        return weights
    return np.asarray(weights * (weights.sum() / np.square(weights).sum()))
