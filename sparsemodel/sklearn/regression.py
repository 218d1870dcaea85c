"""Sparse regressions: least squares and Poisson."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from sparsemodel.interfaces import DataFit, FloatArray
from sparsemodel.losses import PoissonLoss, SquaredLoss
from sparsemodel.sklearn._base import SparseLinearModel
from sparsemodel.sklearn._docs import PARAMETERS, REGRESSOR, filled


@filled(parameters=PARAMETERS, attributes=REGRESSOR)
class SparseLinearRegression(RegressorMixin, SparseLinearModel):  # type: ignore[misc]
    r"""Least squares with at most ``k`` features.

    Minimises, with observation weights :math:`c_i` that sum to one,

    .. math:: \sum_i c_i \tfrac12 (x_i^\top w + b - y_i)^2 + \tfrac{\lambda}2 \|w\|_2^2
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
    >>> from sparsemodel.sklearn import SparseLinearRegression
    >>> X = np.random.default_rng(0).standard_normal((50, 20))
    >>> model = SparseLinearRegression(k=2, ridge=0.0).fit(X, X[:, 3] - 2 * X[:, 7] + 1)
    >>> model.get_support(indices=True)
    array([3, 7])
    >>> model.coef_[[3, 7]].round(6)
    array([ 1., -2.])
    """

    def _loss(self) -> DataFit:
        return SquaredLoss()

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        return np.asarray(y, dtype=np.float64), 1

    def predict(self, X: Any) -> FloatArray:
        """Return the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The predictions.
        """
        return self._linear(X)


@filled(parameters=PARAMETERS, attributes=REGRESSOR)
class SparsePoissonRegression(RegressorMixin, SparseLinearModel):  # type: ignore[misc]
    r"""Poisson regression of counts with at most ``k`` features.

    Minimises, with observation weights :math:`c_i` that sum to one and
    :math:`u_i = x_i^\top w + b`,

    .. math:: \sum_i c_i (e^{u_i} - y_i u_i) + \tfrac{\lambda}2 \|w\|_2^2
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
    >>> from sparsemodel.sklearn import SparsePoissonRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> y = rng.poisson(np.exp(0.5 * X[:, 3] - X[:, 7] + 1))
    >>> SparsePoissonRegression(k=2).fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    def _loss(self) -> DataFit:
        return PoissonLoss()

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        target = np.asarray(y, dtype=np.float64)
        if np.any(target < 0.0):
            raise ValueError("Some values of y are negative; a Poisson regression needs counts.")
        if not np.any(target > 0.0):
            raise ValueError("All values of y are zero; the log of their mean is not finite.")
        return target, 1

    def predict(self, X: Any) -> FloatArray:
        """Return the expected counts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The expected counts.
        """
        return np.exp(self._linear(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the Poisson deviance that is explained, D².

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            The counts.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            At most 1; 0 for the model that knows the mean alone.
        """
        # A prediction that underflows to zero would have an infinite deviance.
        u = np.maximum(self.predict(X), np.finfo(np.float64).tiny)
        return float(d2_tweedie_score(y, u, sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


__all__ = ["SparseLinearRegression", "SparsePoissonRegression"]
