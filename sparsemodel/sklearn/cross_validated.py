"""The same models with ``k`` chosen by cross-validation."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.selection import chosen_place
from sparsemodel.sklearn._base import Declared, SparseLinearModel, candidates_of, predict_linear
from sparsemodel.sklearn._docs import CROSS_VALIDATED, CROSS_VALIDATION, filled
from sparsemodel.sklearn.classification import SparseClassifier, SparseLogisticRegression, SparseSVC
from sparsemodel.sklearn.regression import SparseLinearRegression, SparsePoissonRegression

_GRID = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50)


class _CrossValidated(SparseLinearModel):
    """Chooses ``k``; the class beside it in the bases fits."""

    ks: Any
    cv: Any
    scoring: Any
    one_standard_error: bool
    n_jobs: Any
    ks_: IntArray
    k_: int
    scores_: FloatArray
    best_score_: float

    def _choose_k(
        self, X: Any, y: Any, target: FloatArray, weights: FloatArray, outputs: int
    ) -> int:
        # Not by the number of samples: a sample twice must be the same as a sample of weight two.
        grid = [k for k in _GRID if k <= X.shape[1]]
        self.ks_ = candidates_of("ks", self.ks, grid)
        splitter = check_cv(self.cv, y, classifier=isinstance(self, SparseClassifier))
        work = (
            delayed(_fold)(self, X, y, target, weights, outputs, train, test)
            for train, test in splitter.split(X, y)
        )
        scored = Parallel(n_jobs=self.n_jobs)(work)
        self.scores_ = np.array([scores for scores, _ in scored])
        shares = np.array([share for _, share in scored])
        shares = shares / shares.sum()
        chosen = chosen_place(
            -self.scores_, one_standard_error=self.one_standard_error, shares=shares
        )
        self.k_ = int(self.ks_[chosen])
        self.best_score_ = float(shares @ self.scores_[:, chosen])
        return self.k_


def _fold(
    model: Any,
    X: Any,
    y: Any,
    target: FloatArray,
    weights: FloatArray,
    outputs: int,
    train: Any,
    test: Any,
) -> tuple[list[float], float]:
    """Return a score per candidate on the held-out samples, and the samples' share."""
    inside = weights[train].sum()
    share = weights[test].sum()
    if not (inside > 0.0 and share > 0.0):
        raise ValueError("A fold of the cross-validation holds samples of weight zero only.")
    fitted = copy.copy(model)
    declared = Declared(fitted, X[train], target[train], weights[train] / inside, outputs)
    held_out, y_test, c = X[test], y[test], weights[test] / share
    scorer = None if model.scoring is None else get_scorer(model.scoring)
    scores = []
    for k in model.ks_:
        declared.solve(k, quick=True)
        found = declared.coefficients()
        if scorer is None:
            u = predict_linear(held_out, *found)
            scores.append(-float(model._loss().total(u, _signed(model, target[test], outputs), c)))
        else:
            fitted._take(found, outputs)
            scores.append(float(scorer(fitted, held_out, y_test, sample_weight=c)))
    return scores, share


def _signed(model: Any, target: FloatArray, outputs: int) -> FloatArray:
    """Return the target as the loss reads it: two classes are -1 and 1 there."""
    if isinstance(model, SparseClassifier) and outputs == 1:
        return 2.0 * target - 1.0
    return target


class _RegressorCV(_CrossValidated):
    def __init__(
        self,
        ks: Any = None,
        *,
        cv: Any = None,
        scoring: Any = None,
        one_standard_error: bool = False,
        ridge: float = 1e-3,
        fit_intercept: bool = True,
        positive: bool = False,
        groups: Any = None,
        backend: Any = None,
        effort: str = "medium",
        time_limit: float | None = None,
        certify: bool = False,
        n_jobs: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.ks = ks
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.groups = groups
        self.backend = backend
        self.effort = effort
        self.time_limit = time_limit
        self.certify = certify
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


class _ClassifierCV(_RegressorCV):
    def __init__(
        self,
        ks: Any = None,
        *,
        cv: Any = None,
        scoring: Any = None,
        one_standard_error: bool = False,
        ridge: float = 1e-3,
        fit_intercept: bool = True,
        positive: bool = False,
        groups: Any = None,
        class_weight: Any = None,
        backend: Any = None,
        effort: str = "medium",
        time_limit: float | None = None,
        certify: bool = False,
        n_jobs: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            ks,
            cv=cv,
            scoring=scoring,
            one_standard_error=one_standard_error,
            ridge=ridge,
            fit_intercept=fit_intercept,
            positive=positive,
            groups=groups,
            backend=backend,
            effort=effort,
            time_limit=time_limit,
            certify=certify,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight


@filled(search=CROSS_VALIDATION, found=CROSS_VALIDATED)
class SparseLinearRegressionCV(_RegressorCV, SparseLinearRegression):
    """Least squares with a cross-validated number of features.

    Like :class:`SparseLinearRegression`; every fold solves for the candidates in
    increasing order, each from the solution before.

    Parameters
    ----------
    <search>

    Attributes
    ----------
    <found>

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseLinearRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> u = 2.0 * X[:, 3] - 2.0 * X[:, 7] + rng.standard_normal(200)
    >>> model = SparseLinearRegressionCV([1, 2, 3, 5]).fit(X, u)
    >>> bool(model.k_ >= 2), {3, 7} <= set(model.get_support(indices=True).tolist())
    (True, True)
    """


@filled(search=CROSS_VALIDATION, found=CROSS_VALIDATED)
class SparsePoissonRegressionCV(_RegressorCV, SparsePoissonRegression):
    """Poisson regression with a cross-validated number of features.

    Like :class:`SparsePoissonRegression`; every fold solves for the candidates in
    increasing order, each from the solution before.

    Parameters
    ----------
    <search>

    Attributes
    ----------
    <found>

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparsePoissonRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> u = 2.0 * X[:, 3] - 2.0 * X[:, 7] + rng.standard_normal(200)
    >>> model = SparsePoissonRegressionCV([1, 2, 3, 5]).fit(X, rng.poisson(np.exp(u / 3)))
    >>> bool(model.k_ >= 2), {3, 7} <= set(model.get_support(indices=True).tolist())
    (True, True)
    """


@filled(search=CROSS_VALIDATION, found=CROSS_VALIDATED)
class SparseLogisticRegressionCV(_ClassifierCV, SparseLogisticRegression):
    """Logistic regression with a cross-validated number of features.

    Like :class:`SparseLogisticRegression`; every fold solves for the candidates in
    increasing order, each from the solution before.

    Parameters
    ----------
    <search>

    Attributes
    ----------
    <found>

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseLogisticRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> u = 2.0 * X[:, 3] - 2.0 * X[:, 7] + rng.standard_normal(200)
    >>> model = SparseLogisticRegressionCV([1, 2, 3, 5]).fit(X, u > 0)
    >>> bool(model.k_ >= 2), {3, 7} <= set(model.get_support(indices=True).tolist())
    (True, True)
    """


@filled(search=CROSS_VALIDATION, found=CROSS_VALIDATED)
class SparseSVCCV(_ClassifierCV, SparseSVC):
    """Linear support vector machine with a cross-validated number of features.

    Like :class:`SparseSVC`; every fold solves for the candidates in
    increasing order, each from the solution before.

    Parameters
    ----------
    <search>

    Attributes
    ----------
    <found>

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseSVCCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> u = 2.0 * X[:, 3] - 2.0 * X[:, 7] + rng.standard_normal(200)
    >>> model = SparseSVCCV([1, 2, 3, 5]).fit(X, u > 0)
    >>> bool(model.k_ >= 2), {3, 7} <= set(model.get_support(indices=True).tolist())
    (True, True)
    """

    def __init__(
        self,
        ks: Any = None,
        *,
        cv: Any = None,
        scoring: Any = None,
        one_standard_error: bool = False,
        ridge: float = 1e-3,
        loss: str = "squared_hinge",
        fit_intercept: bool = True,
        positive: bool = False,
        groups: Any = None,
        class_weight: Any = None,
        backend: Any = None,
        effort: str = "medium",
        time_limit: float | None = None,
        certify: bool = False,
        n_jobs: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            ks,
            cv=cv,
            scoring=scoring,
            one_standard_error=one_standard_error,
            ridge=ridge,
            fit_intercept=fit_intercept,
            positive=positive,
            groups=groups,
            class_weight=class_weight,
            backend=backend,
            effort=effort,
            time_limit=time_limit,
            certify=certify,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.loss = loss


__all__ = [
    "SparseLinearRegressionCV",
    "SparseLogisticRegressionCV",
    "SparsePoissonRegressionCV",
    "SparseSVCCV",
]
