"""Sparse regressions whose predictions are linear: least squares, Huber, quantiles."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from sparsemodel.interfaces import Conjugable, FloatArray, Loss
from sparsemodel.losses import HuberLoss, QuantileLoss, SquaredLoss
from sparsemodel.modelling.loss_terms.squared_scales import spread
from sparsemodel.modelling.regression.measures import deviance_explained
from sparsemodel.sklearn._base import Data, GivenK, SparseLinearModel, scoring_weights
from sparsemodel.sklearn._chosen import ChosenK
from sparsemodel.sklearn._docs import (
    PARAMETERS,
    REGRESSOR,
    cross_validated,
    filled,
)

_OF_SPREAD = 1.35
"""Residuals of so many standard deviations are ordinary to the Huber loss."""

# ---- what is fitted ------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Regression(RegressorMixin, SparseLinearModel):  # type: ignore[misc]
    """A regression that predicts what its loss makes of a linear score."""

    _: KW_ONLY
    fit_intercept: bool = True

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        return np.asarray(y, dtype=np.float64), 1

    def predict(self, X: Any) -> FloatArray:
        """Return the predictions in the units of the target: the loss undoes its link.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The predictions, means where the loss has a link (``exp(X @ coef_ + intercept_)``).
        """
        return self._loss().mean(self._linear(X))


@dataclass(eq=False, repr=False)
class ExplainedLoss(Regression):
    """A regression that is scored by its own loss."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the loss that is explained, D².

        For likelihoods it is that of the deviance, for quantiles that of the pinball loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            At most 1; 0 for the best constant prediction, NaN where no other is better.

        Raises
        ------
        ValueError
            For a loss whose least value is not known, which has no conjugate, and for weights that
            are negative or all zero.
        """
        u, loss = self._linear(X), self._loss()
        if not isinstance(loss, Conjugable):
            raise ValueError(f"{loss.name} has no D²: pass a scorer of your own.")
        check_consistent_length(u, y)
        target = loss.check_target(np.asarray(y, dtype=np.float64), "y")
        c = scoring_weights(sample_weight, u)
        share = deviance_explained(loss, u, target, c / c.sum(), np.zeros(u.size))
        return math.nan if share is None else share


@dataclass(eq=False, repr=False)
class _LeastSquares(Regression):
    _matrix_target: ClassVar[bool] = True

    def _loss(self) -> Loss:
        return SquaredLoss()

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        target = np.asarray(y, dtype=np.float64)
        return target, 1 if target.ndim == 1 else target.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@dataclass(eq=False, repr=False)
class _Huber(Regression):
    _: KW_ONLY
    delta: float | None = None

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Data:
        data = super()._read(X, y, sample_weight)
        usual = _OF_SPREAD * spread(data.target, data.c)
        self.delta_ = usual if self.delta is None else self.delta
        return data

    def _loss(self) -> Loss:
        return HuberLoss(getattr(self, "delta_", _OF_SPREAD))


@dataclass(eq=False, repr=False)
class _Quantile(ExplainedLoss):
    _: KW_ONLY
    quantile: float = 0.5

    def _loss(self) -> Loss:
        return QuantileLoss(self.quantile)


# ---- with a given k, and with one that is chosen -------------------------------------------------


@filled(parameters=PARAMETERS, attributes=REGRESSOR)
@dataclass(eq=False, repr=False)
class SparseLinearRegression(_LeastSquares, GivenK):
    r"""Least squares with at most ``k`` features.

    Minimises, with observation weights :math:`c_i` that sum to one,

    .. math:: \sum_i c_i \tfrac12 (x_i^\top w + b - y_i)^2 + \tfrac{\lambda}2 \sum_j s_j^2 w_j^2
              \quad\text{with}\quad \|w\|_0 \le k.

    With several targets ``w`` is a matrix with a column for each, its nonzero *rows* are counted,
    and squares are added up: a feature is selected for all targets or for none.

    Parameters
    ----------
    <parameters>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseLinearRegression
    >>> X = np.random.default_rng(0).standard_normal((50, 20))
    >>> model = SparseLinearRegression(k=2, ridge=0.0).fit(X, X[:, 3] - 2 * X[:, 7] + 1)
    >>> model.get_support(indices=True)
    array([3, 7])
    >>> model.coef_[[3, 7]].round(6)
    array([ 1., -2.])
    """


@cross_validated(SparseLinearRegression)
@dataclass(eq=False, repr=False)
class SparseLinearRegressionCV(_LeastSquares, ChosenK):
    """Least squares whose ``k`` and ridge are cross-validated together.


    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseLinearRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 8))
    >>> y = X[:, 3] - X[:, 7] + 0.1 * rng.standard_normal(60)
    >>> model = SparseLinearRegressionCV([0, 1, 2, 3], cv=3, one_standard_error=True).fit(X, y)
    >>> model.k_, model.ridge_
    (2, 0.001)
    """


@filled(parameters=PARAMETERS, attributes=REGRESSOR)
@dataclass(eq=False, repr=False)
class SparseHuberRegression(_Huber, GivenK):
    r"""Huber regression with at most ``k`` features.

    Minimises, with observation weights :math:`c_i` that sum to one and
    :math:`u_i = x_i^\top w + b`,

    .. math:: \sum_i c_i\, h_\delta(u_i - y_i) + \tfrac{\lambda}2 \sum_j s_j^2 w_j^2
              \quad\text{with}\quad \|w\|_0 \le k.

    :math:`h_\delta(r)` is :math:`\tfrac12 r^2` up to :math:`|r| = \delta` and linear beyond, so
    that each outlier has a bounded influence.

    Parameters
    ----------
    <parameters>
    delta : float, default=None
        Where the loss becomes linear, in the units of ``y``. None takes 1.35 times the spread of
        ``y`` (1.4826 times the median distance from its median), so that the model does not depend
        on the unit. This is wide: it bounds the influence of single targets that are far off, and
        hardly that of others. If the spread of the noise is known, 1.35 times that bounds more of
        them, and costs 5 % of efficiency if the noise is normal (Huber 1964).

    Attributes
    ----------
    <attributes>
    delta_ : float
        The ``delta`` of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseHuberRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 8))
    >>> y = X[:, 3] - X[:, 7] + rng.standard_t(1, 80)
    >>> SparseHuberRegression(k=2).fit(X, y).get_support(indices=True)
    array([3, 7])
    """


@cross_validated(SparseHuberRegression)
@dataclass(eq=False, repr=False)
class SparseHuberRegressionCV(_Huber, ChosenK):
    """Huber regression whose ``k`` and ridge are cross-validated together."""


@filled(parameters=PARAMETERS, attributes=REGRESSOR)
@dataclass(eq=False, repr=False)
class SparseQuantileRegression(_Quantile, GivenK):
    r"""Quantile regression with at most ``k`` features.

    Minimises, with observation weights :math:`c_i` that sum to one and
    :math:`u_i = x_i^\top w + b`,

    .. math:: \sum_i c_i \max\{\tau (y_i - u_i), (\tau - 1)(y_i - u_i)\}
              + \tfrac{\lambda}2 \sum_j s_j^2 w_j^2
              \quad\text{with}\quad \|w\|_0 \le k.

    The prediction is the conditional quantile :math:`\tau` of the target, the median for 0.5.

    Parameters
    ----------
    <parameters>
    quantile : float, default=0.5
        :math:`\tau` above, between 0 and 1.

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseQuantileRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 8))
    >>> y = X[:, 3] - X[:, 7] + 0.3 * rng.standard_normal(80)
    >>> SparseQuantileRegression(k=2, quantile=0.8).fit(X, y).get_support(indices=True)
    array([3, 7])
    """


@cross_validated(SparseQuantileRegression)
@dataclass(eq=False, repr=False)
class SparseQuantileRegressionCV(_Quantile, ChosenK):
    """Quantile regression whose ``k`` and ridge are cross-validated together."""
