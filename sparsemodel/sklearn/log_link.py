"""Sparse regressions of positive means: counts and amounts, with the log link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsemodel.interfaces import DataFit, FloatArray
from sparsemodel.losses import GammaLoss, PoissonLoss
from sparsemodel.sklearn._base import GivenK
from sparsemodel.sklearn._chosen import ChosenK
from sparsemodel.sklearn._docs import (
    PARAMETERS,
    REGRESSOR,
    cross_validated,
    filled,
)
from sparsemodel.sklearn.regression import ExplainedLoss


@dataclass(eq=False, repr=False)
class _LogLink(ExplainedLoss):
    """A regression of positive means, which are the exponentials of a linear score."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


@dataclass(eq=False, repr=False)
class _Poisson(_LogLink):
    def _loss(self) -> DataFit:
        return PoissonLoss()

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        target = np.asarray(y, dtype=np.float64)
        if np.any(target < 0.0):
            raise ValueError("Some values of y are negative; a Poisson regression needs counts.")
        if not np.any(target > 0.0):
            raise ValueError("All values of y are zero; the log of their mean is not finite.")
        return target, 1


@dataclass(eq=False, repr=False)
class _Gamma(_LogLink):
    def _loss(self) -> DataFit:
        return GammaLoss()

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        target = np.asarray(y, dtype=np.float64)
        if np.any(target <= 0.0):
            raise ValueError(
                "Some values of y are not positive; a gamma regression needs positive amounts. "
                "For counts use SparsePoissonRegression."
            )
        return target, 1


@filled(parameters=PARAMETERS, attributes=REGRESSOR)
@dataclass(eq=False, repr=False)
class SparsePoissonRegression(_Poisson, GivenK):
    r"""Poisson regression of counts with at most ``k`` features.

    Minimises, with observation weights :math:`c_i` that sum to one and
    :math:`u_i = x_i^\top w + b`,

    .. math:: \sum_i c_i (e^{u_i} - y_i u_i) + \tfrac{\lambda}2 \sum_j s_j^2 w_j^2
              \quad\text{with}\quad \|w\|_0 \le k.

    For counts with exposures (time, area, people), fit the rates with the exposures as weights,
    ``fit(X, counts / exposure, sample_weight=exposure)``. This is the likelihood with the offset
    ``log(exposure)``, and the prediction is the rate.

    Parameters
    ----------
    <parameters>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparsePoissonRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> y = rng.poisson(np.exp(0.5 * X[:, 3] - X[:, 7] + 1))
    >>> SparsePoissonRegression(k=2).fit(X, y).get_support(indices=True)
    array([3, 7])
    """


@cross_validated(SparsePoissonRegression)
@dataclass(eq=False, repr=False)
class SparsePoissonRegressionCV(_Poisson, ChosenK):
    """Poisson regression whose ``k`` and ridge are cross-validated together."""


@filled(parameters=PARAMETERS, attributes=REGRESSOR)
@dataclass(eq=False, repr=False)
class SparseGammaRegression(_Gamma, GivenK):
    r"""Gamma regression of positive amounts with at most ``k`` features.

    Minimises, with observation weights :math:`c_i` that sum to one and
    :math:`u_i = x_i^\top w + b`,

    .. math:: \sum_i c_i (y_i e^{-u_i} + u_i) + \tfrac{\lambda}2 \sum_j s_j^2 w_j^2
              \quad\text{with}\quad \|w\|_0 \le k.

    Parameters
    ----------
    <parameters>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseGammaRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> y = rng.gamma(2.0, np.exp(0.5 * X[:, 3] - X[:, 7]))
    >>> SparseGammaRegression(k=2).fit(X, y).get_support(indices=True)
    array([3, 7])
    """


@cross_validated(SparseGammaRegression)
@dataclass(eq=False, repr=False)
class SparseGammaRegressionCV(_Gamma, ChosenK):
    """Gamma regression whose ``k`` and ridge are cross-validated together."""
