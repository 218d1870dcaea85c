"""The methods that are compared, each with what it chooses without arguments."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV, OrthogonalMatchingPursuitCV, lasso_path
from sklearn.model_selection import KFold

import sparsemodel as sm
from sparsemodel.interfaces import FloatArray
from sparsemodel.sklearn import SparseLinearRegressionCV

Method = Callable[[FloatArray, FloatArray], FloatArray]
"""Takes observations to coefficients."""


class _Remembering(SparseLinearRegressionCV):
    """Keeps what candidates score in the folds for another choice among them on the same data."""

    def _scores(self, data: Any, scoring: Any, ks: Any, **beside: Any) -> Any:
        key = tuple(a.tobytes() for a in (data.X, data.y, ks, self.ridges_))
        if key not in _KNOWN:
            _KNOWN[key] = super()._scores(data, scoring, ks, **beside)
        return _KNOWN[key]


_KNOWN: dict[tuple[bytes, ...], Any] = {}
"""Scores by data, candidates and ridges."""


def subset_and_ridge(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return what the estimator chooses without arguments."""
    _KNOWN.clear()
    return _Remembering().fit(X, y).coef_


def subset_alone(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return the same with hardly any ridge."""
    return _Remembering(ridges=1e-3).fit(X, y).coef_


def one_standard_error(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return the smallest model within one standard error."""
    return _Remembering(one_standard_error=True).fit(X, y).coef_


def ebic(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return what EBIC chooses of a path without a ridge to speak of."""
    w, c = sm.Variable(X.shape[1], name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(X @ w + c, y) + sm.ridge(w, 1e-3))
    most = min(X.shape[1], X.shape[0] // 2, 20)
    path = sm.Problem(goal, sm.card(w) <= 1).path(range(most + 1))
    return np.asarray(path.select("ebic").values["w"])


def lasso(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return scikit-learn's lasso, cross-validated."""
    return np.asarray(LassoCV(cv=KFold(5, shuffle=True, random_state=0)).fit(X, y).coef_)


def relaxed_lasso(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return a mixture of the lasso and least squares on its support, both cross-validated.

    As in Hastie, Tibshirani and Tibshirani (2017): 50 penalties, mixtures in tenths.
    """
    alphas = LassoCV(alphas=50).fit(X, y).alphas_
    losses = np.zeros((alphas.size, 11))
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        grid, mean, centre = _mixtures(X[train], y[train], alphas)
        residuals = (y[test] - mean) - grid @ (X[test] - centre).T
        losses += np.square(residuals).sum(axis=2)
    best = np.unravel_index(int(np.argmin(losses)), losses.shape)
    return np.asarray(_mixtures(X, y, alphas)[0][best])


def _mixtures(X: FloatArray, y: FloatArray, alphas: FloatArray) -> tuple[FloatArray, Any, Any]:
    """Return coefficients of shape (alphas, mixtures, p), and the means of ``y`` and ``X``."""
    centre, mean = X.mean(axis=0), y.mean()
    Z, t = X - centre, y - mean
    shrunk = lasso_path(Z, t, alphas=alphas)[1].T
    out = np.empty((alphas.size, 11, X.shape[1]))
    for row, coefficients in enumerate(shrunk):
        support = np.flatnonzero(coefficients)
        full = np.zeros_like(coefficients)
        if support.size:
            full[support] = np.linalg.lstsq(Z[:, support], t, rcond=None)[0]
        for column, share in enumerate(np.linspace(0.0, 1.0, 11)):
            out[row, column] = share * coefficients + (1.0 - share) * full
    return out, mean, centre


def pursuit(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return orthogonal matching pursuit, cross-validated."""
    return np.asarray(OrthogonalMatchingPursuitCV(cv=5).fit(X, y).coef_)


def abess(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return what abess chooses with its own criterion."""
    from abess import LinearRegression

    return np.asarray(LinearRegression().fit(X, y).coef_)


METHODS: dict[str, Method] = {
    "subset + ridge": subset_and_ridge,
    "subset": subset_alone,
    "one standard error": one_standard_error,
    "EBIC": ebic,
    "lasso": lasso,
    "relaxed lasso": relaxed_lasso,
    "OMP": pursuit,
}
if importlib.util.find_spec("abess") is not None:
    METHODS["abess"] = abess


def found(method: Method, X: FloatArray, y: FloatArray) -> FloatArray:
    """Return the coefficients of a method, its warnings unheard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(X, y)


__all__ = ["METHODS", "Method", "found"]
