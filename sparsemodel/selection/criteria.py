r"""Information criteria for the number of nonzeros.

With the negative log-likelihood :math:`\ell` at a solution of :math:`d` estimated coefficients,
``k`` of them chosen among ``p``, and ``n`` observations,

* AIC: :math:`2\ell + 2d` (Akaike, IEEE Trans. Automatic Control 1974);
* AICc: :math:`\mathrm{AIC} + 2 q (q + 1) / (n - q - 1)` with :math:`q = d`, or :math:`d + 1` where
  a dispersion is estimated (Hurvich and Tsai, Biometrika 1989); infinite where
  :math:`n \le q + 1`;
* BIC: :math:`2\ell + d \log n` (Schwarz, Annals of Statistics 1978);
* EBIC: :math:`\mathrm{BIC} + 2\gamma \log \binom{p}{k}`, :math:`\gamma = 1` unless said otherwise
  (Chen and Chen, Biometrika 2008);
* mBIC: :math:`\mathrm{BIC} + 2 k \log(p/4 - 1)`, for about four true ones (Bogdan, Ghosh and
  Doerge, Genetics 2004); BIC where ``p`` is at most eight;
* GIC: :math:`2\ell + d \log(\log n) \log p` (Fan and Tang, JRSS B 2013).

For a regression :math:`2\ell` is what the loss says (:class:`~sparsemodel.interfaces.Likelihood`):
``2n`` times the mean loss where the dispersion is known; :math:`n \log(\text{mean squared
residual})` for the squared loss and :math:`2n \log(\text{mean loss})` for absolute and quantile
losses, whose scale is estimated; the likelihood at the best shape for the gamma loss. ``n`` counts
observations as :mod:`sparsemodel.selection.weights` says, for the Cox model events. Constants that
all models of the data share are left out. For precision matrices see
:mod:`sparsemodel.selection.precision_matrices`.

Where the scale is estimated and ``p`` is larger than ``n``, :math:`n \log(\text{RSS}/n)` falls
without end as the residuals vanish, and no penalty stops it. A criterion therefore chooses among
the ``k`` that the observations carry (:func:`carried`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, final

import numpy as np

from sparsemodel.interfaces import ModelError
from sparsemodel.interfaces.numeric import is_one_of, real_number, shown


class Candidate(NamedTuple):
    """What is known of a fitted model where the number of nonzeros is chosen."""

    minus_twice_log: float
    """Twice the negative log-likelihood, without constants that all models of the data share."""
    n: float
    """Observations (events, of the Cox model), as their weights say."""
    p: int
    """Units that ``k`` were chosen from: features, groups, rows or edges."""
    k: int
    """Nonzero units."""
    d: float
    """Estimated coefficients, those that are not counted included; fewer where a ridge shrinks
    them and several ridges are compared."""
    scales: int = 0
    """Dispersions that were estimated beside them: one or none."""


CriterionFunction: TypeAlias = Callable[[Candidate], float]
"""A criterion: a number for each candidate, of which the smallest is chosen."""


def _aic(one: Candidate) -> float:
    return one.minus_twice_log + 2.0 * one.d


def _aicc(one: Candidate) -> float:
    parameters = one.d + one.scales
    left = one.n - parameters - 1.0
    return _aic(one) + 2.0 * parameters * (parameters + 1.0) / left if left > 0.0 else np.inf


def _bic(one: Candidate) -> float:
    return one.minus_twice_log + one.d * float(np.log(one.n))


def _mbic(one: Candidate) -> float:
    return _bic(one) + 2.0 * one.k * float(np.log(max(one.p / 4.0 - 1.0, 1.0)))


def _gic(one: Candidate) -> float:
    logs = max(np.log(one.n), 1.0), max(one.p, 2)
    return one.minus_twice_log + one.d * float(np.log(logs[0]) * np.log(logs[1]))


def ebic(gamma: float) -> CriterionFunction:
    r"""Return EBIC for a regression."""

    def value(one: Candidate) -> float:
        from scipy.special import gammaln

        choices = gammaln(one.p + 1.0) - gammaln(one.k + 1.0) - gammaln(one.p - one.k + 1.0)
        return _bic(one) + 2.0 * gamma * float(choices)

    return value


CRITERIA: Mapping[str, Callable[[float], CriterionFunction]] = MappingProxyType(
    {
        "aic": lambda _: _aic,
        "aicc": lambda _: _aicc,
        "bic": lambda _: _bic,
        "ebic": ebic,
        "gic": lambda _: _gic,
        "mbic": lambda _: _mbic,
    }
)
"""Each criterion, given the gamma of EBIC."""


@final
@dataclass(frozen=True, slots=True)
class Criterion:
    """An information criterion that was asked for."""

    rule: str | CriterionFunction
    """Among :data:`CRITERIA`, or one of the user's own."""
    gamma: float | None = None
    """Of EBIC; None is what is usual for the form of problem."""
    shrunk: bool = False
    """Whether coefficients that a ridge shrinks count less than one, to compare ridges."""
    columns: int | None = None
    """How many units there were before some were left out; None for those of the problem."""

    @property
    def name(self) -> str:
        """Return what it is called."""
        if isinstance(self.rule, str):
            return self.rule
        return str(getattr(self.rule, "__name__", "criterion")).replace("<lambda>", "criterion")

    def units(self, here: int) -> int:
        """Return how many units there were to choose from, of which ``here`` are in the problem."""
        if self.columns is None:
            return here
        asked = self.columns
        if isinstance(asked, bool) or not isinstance(asked, (int, np.integer)) or asked < here:
            raise ModelError(
                f"p must be the number of columns before some were left out, a whole number of at "
                f"least the {here} that are here, not {shown(asked)}."
            )
        return int(asked)


def criterion_function(
    criterion: Criterion,
    *,
    usual: float = 1.0,
    ebic: Callable[[float], CriterionFunction] = ebic,
) -> CriterionFunction:
    """Return the function of a criterion.

    Parameters
    ----------
    usual
        The gamma of EBIC where none was given.
    ebic
        EBIC as a form of problem has it.

    Raises
    ------
    ModelError
        For an unknown criterion, for a ``gamma`` that is negative or of another criterion, and for
        a criterion of the user's own that returns no number.
    """
    rule, gamma = criterion.rule, criterion.gamma
    if not (callable(rule) or is_one_of(rule, CRITERIA)):
        raise ModelError(
            f"There is no criterion {shown(rule)}; known: {', '.join(CRITERIA)}, or a function of "
            "your own, for example `lambda m: m.minus_twice_log + 3 * m.d` (m has n, p and k, "
            "too). For any loss there is cross_validate()."
        )
    if rule != "ebic" and gamma is not None:
        raise ModelError(f"gamma belongs to ebic, and {criterion.name} has none; leave it out.")
    if not isinstance(rule, str):
        return _checked(rule, criterion.name)
    if rule != "ebic":
        return CRITERIA[rule](0.0)
    if gamma is None:
        return ebic(usual)
    number = isinstance(gamma, (int, float, np.number)) and not isinstance(gamma, bool)
    if not (number and 0.0 <= gamma < np.inf):
        raise ModelError(
            f"gamma must be a number from 0 (which is BIC) on, not {shown(gamma)}; "
            f"usual are values up to 1."
        )
    return ebic(float(gamma))


def _checked(rule: CriterionFunction, name: str) -> CriterionFunction:
    """Return the user's function; what it returns must be a number."""

    def value(one: Candidate) -> float:
        return real_number(rule(one), where=f"The value of {name} at k = {one.k}")

    return value


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
