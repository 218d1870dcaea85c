"""The same models with ``k`` chosen by cross-validation."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.sklearn._base import Declared, SparseLinearModel, predict_linear
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
        self.ks_ = _candidates(self.ks, X.shape[1])
        splitter = check_cv(self.cv, y, classifier=isinstance(self, SparseClassifier))
        work = (
            delayed(_fold)(self, X, y, target, weights, outputs, train, test)
            for train, test in splitter.split(X, y)
        )
        scored = Parallel(n_jobs=self.n_jobs)(work)
        self.scores_ = np.array([scores for scores, _ in scored])
        shares = np.array([share for _, share in scored])
        shares = shares / shares.sum()
        mean = shares @ self.scores_
        chosen = int(np.argmax(mean))  # the smallest of the best
        if self.one_standard_error and len(scored) > 1:
            spread = shares @ np.square(self.scores_[:, chosen] - mean[chosen])
            error = np.sqrt(spread / (len(scored) - 1))
            chosen = int(np.argmax(mean >= mean[chosen] - error))
        self.k_ = int(self.ks_[chosen])
        self.best_score_ = float(mean[chosen])
        return self.k_


def _candidates(ks: Any, features: int) -> Any:
    # Not by the number of samples: a sample twice must be the same as a sample of weight two.
    if ks is None:
        return np.array([k for k in _GRID if k <= features])
    candidates = np.atleast_1d(np.asarray(ks))
    if candidates.ndim != 1 or candidates.dtype.kind not in "iu" or candidates.size == 0:
        raise ValueError(f"ks must be whole numbers, for example range(1, 21), not {ks!r}.")
    if candidates.min() < 0:
        raise ValueError(f"ks must not be negative, and holds {candidates.min()}.")
    return np.unique(candidates)


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
    backend = declared.quick_backend()
    scores = []
    for number, k in enumerate(model.ks_):
        declared.solve(k, backend=backend, warm=number > 0)
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
    >>> bool(model.k_ >= 2), model.get_support(indices=True)[:1]
    (True, array([3]))
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
    >>> bool(model.k_ >= 2), model.get_support(indices=True)[:1]
    (True, array([3]))
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
    >>> bool(model.k_ >= 2), model.get_support(indices=True)[:1]
    (True, array([3]))
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
    >>> bool(model.k_ >= 2), model.get_support(indices=True)[:1]
    (True, array([3]))
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
