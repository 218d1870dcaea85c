"""What the estimators of generalised linear models share: validation, fitting, selection."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from sparsemodel.compiler import checked_effort
from sparsemodel.designs import as_design
from sparsemodel.interfaces import (
    BoolArray,
    DataFit,
    FloatArray,
    IntArray,
)
from sparsemodel.modelling import Parameter, Problem, Variable, card, loss_term, minimize, ridge

if TYPE_CHECKING:
    from sparsemodel.certificates import Certificate


class SparseLinearModel(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; minimises mean loss plus ridge with at most ``k`` features."""

    coef_: FloatArray
    intercept_: Any
    n_iter_: int
    objective_: float
    bound_: float
    certificate_: Certificate

    def __init__(
        self,
        k: int = 10,
        *,
        ridge: float = 1e-3,
        fit_intercept: bool = True,
        positive: bool = False,
        groups: Any = None,
        backend: Any = None,
        effort: str = "medium",
        time_limit: float | None = None,
        certify: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.groups = groups
        self.backend = backend
        self.effort = effort
        self.time_limit = time_limit
        self.certify = certify
        self.random_state = random_state
        self.verbose = verbose

    # ---- what a model says about itself ------------------------------------------------------

    @abstractmethod
    def _loss(self) -> DataFit:
        """Return the loss; called after the target was encoded."""

    @abstractmethod
    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        """Return the target as numbers, and the number of outputs (1 but for several classes)."""

    def _weights(self, y: Any, sample_weight: Any, X: Any) -> FloatArray:
        """Return nonnegative weights of the observations that sum to one."""
        c = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        total = c.sum()
        if not total > 0.0:
            raise ValueError(
                "sample_weight is zero for every sample; at least one sample must count."
            )
        return np.asarray(c / total)

    # ---- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features; not copied, not changed, never made dense.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights; a weight of two counts a sample twice.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = validate_data(
            self, X, y, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32)
        )
        target, outputs = self._encode(y)
        weights = self._weights(y, sample_weight, X)
        k = self._choose_k(X, y, target, weights, outputs)
        declared = Declared(self, X, target, weights, outputs)
        solution = declared.solve(k)
        self._take(declared.coefficients(), outputs)
        self.n_iter_ = solution.iterations
        self.objective_ = solution.value
        self.bound_ = solution.bound
        if self.certify:
            self.certificate_ = declared.problem.certify()
        elif hasattr(self, "certificate_"):
            del self.certificate_  # of an earlier fit
        if solution.stop.unfinished:
            warnings.warn(
                f"The fit was cut short ({solution.stop.value}); the best model so far is kept.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _choose_k(
        self, X: Any, y: Any, target: FloatArray, weights: FloatArray, outputs: int
    ) -> Any:
        return self.k

    def _take(self, found: tuple[FloatArray, Any], outputs: int) -> None:
        """Keep the coefficients in the shapes scikit-learn's users expect."""
        self.coef_, self.intercept_ = found

    # ---- using -------------------------------------------------------------------------------

    def _linear(self, X: Any) -> FloatArray:
        """Return ``X @ coef_.T + intercept_``; reads the selected columns only."""
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32)
        )
        return predict_linear(X, self.coef_, self.intercept_)

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        mask: BoolArray = np.any(np.atleast_2d(self.coef_) != 0.0, axis=0)
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = False
        return tags


class Declared:
    """The estimator's problem in the language, for one set of data and any ``k``."""

    def __init__(
        self,
        model: SparseLinearModel,
        X: Any,
        target: FloatArray,
        weights: FloatArray,
        outputs: int,
    ) -> None:
        p = X.shape[1]
        names = getattr(model, "feature_names_in_", None)
        shape: Any = p if outputs == 1 else (p, outputs)
        self._model = model
        self._k = Parameter(integer=True, nonneg=True, name="k")
        self._w = Variable(shape, name="coef", names=names)
        self._c = Variable(() if outputs == 1 else outputs, name="intercept")
        prediction: Any = as_design(X, where="X") @ self._w
        if model.fit_intercept:
            prediction = prediction + self._c
        objective: Any = loss_term(
            model._loss(), prediction, target, weights=weights, reduction="sum"
        )
        if model.ridge != 0.0:  # a ridge that is no number is refused by the language
            objective = objective + ridge(self._w, model.ridge)
        rows = 1 if self._w.ndim == 2 else None
        constraints: list[Any] = [card(self._w, groups=model.groups, axis=rows) <= self._k]
        if model.positive:
            constraints.append(self._w >= 0.0)
        self._units = p if model.groups is None else len(np.unique(np.asarray(model.groups)))
        self._k.value = 0
        self.problem = Problem(minimize(objective), constraints)

    def solve(self, k: Any, *, quick: bool = False) -> Any:
        """Solve for ``k``; if quick, from the last solution and with little effort.

        Folds times candidates of solutions are for comparing candidates.
        """
        # More than there are features is no constraint, which is what a grid of k would mean.
        self._k.value = k if not isinstance(k, (int, np.integer)) else min(int(k), self._units)
        model = self._model
        seed = 0
        if model.random_state is not None:
            seed = int(check_random_state(model.random_state).randint(2**31 - 1))
        return self.problem.solve(
            model.backend,
            start="value" if quick and self.problem.value is not None else None,
            effort="low" if quick else checked_effort(model.effort),
            seed=seed,
            time_limit=model.time_limit,
            verbose=bool(model.verbose),
        )

    def coefficients(self) -> tuple[FloatArray, Any]:
        """Return ``(coef, intercept)``, with one row per output where there are several."""
        coef = np.ascontiguousarray(self._w.value.T)
        if self._model.fit_intercept:
            return coef, self._c.value
        return coef, 0.0 if coef.ndim == 1 else np.zeros(coef.shape[0])


def candidates_of(name: str, given: Any, grid: Any) -> IntArray:
    """Return the candidates of a parameter, increasing; ``grid`` where none are given."""
    candidates = np.atleast_1d(np.asarray(grid if given is None else given))
    if candidates.ndim != 1 or candidates.dtype.kind not in "iu" or candidates.size == 0:
        raise ValueError(f"{name} must be whole numbers, for example range(1, 21), not {given!r}.")
    if candidates.min() < 0:
        raise ValueError(f"{name} must not be negative, and the smallest is {candidates.min()}.")
    return np.unique(candidates)


def predict_linear(X: Any, coef: FloatArray, intercept: Any) -> FloatArray:
    """Return ``X @ coef.T + intercept``, at the cost of the columns with a coefficient."""
    rows = np.atleast_2d(coef)
    support = np.flatnonzero((rows != 0.0).any(axis=0))
    if 2 * support.size < rows.shape[1]:
        X, rows = X[:, support], rows[:, support]
    z = np.asarray(X @ rows.T.astype(np.float64)) + intercept
    return np.asarray(z[:, 0] if coef.ndim == 1 or coef.shape[0] == 1 else z, dtype=np.float64)


__all__ = ["Declared", "SparseLinearModel", "candidates_of", "predict_linear"]
