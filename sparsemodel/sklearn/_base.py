"""What the estimators of generalised linear models share: validation, fitting, selection."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from sparsemodel.designs.tables.frames import in_memory, refuse_times
from sparsemodel.designs.tables.labels import check_rows, labels_of
from sparsemodel.interfaces import BoolArray, DataFit, FloatArray
from sparsemodel.modelling.expressions.values import refuse_fields
from sparsemodel.sklearn._declared import Declared, predict_linear, seed_of
from sparsemodel.sklearn._hints import ATTRIBUTES, check_parameters, rejects_unknown_parameters

if TYPE_CHECKING:
    from sparsemodel.certificates import Certificate


class SparseLinearModel(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; minimises mean loss plus ridge with at most ``k`` features.

    An estimator is two classes put together: what is fitted (the loss, how a target is read, what
    is predicted) and how ``k`` and the ridge come about (:class:`GivenK`, or chosen by
    cross-validation). Both are data classes, whose fields are the parameters.
    """

    coef_: FloatArray
    intercept_: Any
    n_iter_: int
    objective_: float
    certificate_: Certificate

    _matrix_target: ClassVar[bool] = False
    """Whether a target may have several columns."""

    def __new__(cls, *_args: Any, **kwargs: Any) -> Self:
        """Refuse a parameter that there is not, with what to write for it."""
        check_parameters(cls, kwargs)
        made: Self = super().__new__(cls)
        return made

    # ---- what a model says about itself ------------------------------------------------------

    @abstractmethod
    def _loss(self) -> DataFit:
        """Return the loss; called after the target was encoded."""

    @abstractmethod
    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        """Return the target as numbers, and the number of outputs (1 but for several classes)."""

    def _targets(self, target: FloatArray, outputs: int) -> FloatArray:
        """Return the encoded target as the loss itself reads it."""
        return target

    def _weights(self, y: Any, c: FloatArray) -> FloatArray:
        """Return weights of the observations that sum to one, from those of the samples."""
        total = c.sum()
        if not total > 0.0:
            raise ValueError(
                "sample_weight is zero for every sample; at least one sample must count."
            )
        return np.asarray(c / total)

    def _counting(self, data: Data) -> FloatArray:
        """Return weights of the samples in which their number can be counted."""
        return data.c

    @abstractmethod
    def _solved(self, data: Data) -> tuple[Declared, Any]:
        """Return the problem solved for the k and the ridge to take, and the solution."""

    # ---- fitting -----------------------------------------------------------------------------

    @rejects_unknown_parameters
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features; not copied, not changed, never made dense.
        y : array-like of shape (n_samples,) or as the estimator says
            The target; without it scikit-learn's error for a missing target is raised.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights; a weight of two counts a sample twice.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fitted(self._read(X, y, sample_weight))

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Data:
        """Return the validated data; keeps the classes and the features' names."""
        refuse_fields(y, "y")
        X, y = in_memory(X, "X"), in_memory(y, "y")
        refuse_times(X, "X")
        rows = labels_of(X)
        check_rows(rows, labels_of(y), "y")
        check_rows(rows, labels_of(sample_weight), "sample_weight")
        try:
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse=("csr", "csc"),
                dtype=(np.float64, np.float32),
                multi_output=self._matrix_target,
            )
        except ValueError as error:
            if "y should be a 1d array" in str(error):
                raise ValueError(f"{error} {_of_several(self)}") from error
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"X or y holds text ({error}). Put a OneHotEncoder(drop='first') before the "
                "estimator, in a ColumnTransformer for the columns of text, or write `A, features "
                "= sm.encode(df)`, fit A.array and pass groups=features."
            ) from error
        target, outputs = self._encode(y)
        c = np.ones(X.shape[0])
        if sample_weight is not None:
            c = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return Data(X, y, target, outputs, c, sample_weight is not None)

    def _fitted(self, data: Data) -> Self:
        declared, solution = self._solved(data)
        self._take(declared.coefficients(), data.outputs)
        self.n_iter_ = solution.iterations
        self.objective_ = solution.value
        if self.certify:
            self.certificate_ = declared.problem.certify()
        elif hasattr(self, "certificate_"):
            del self.certificate_  # of an earlier fit
        if solution.stop.unfinished:
            warnings.warn(
                f"The fit was cut short ({solution.stop.value}); the best model so far is kept.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _declared(self, data: Data, rows: Any = slice(None)) -> Declared:
        """Return the problem on some of the samples, everything estimated from them."""
        return Declared(
            self,
            data.X[rows],
            data.target[rows],
            self._weights(data.y[rows], data.c[rows]),
            data.outputs,
        )

    def _take(self, found: tuple[FloatArray, Any], outputs: int) -> None:
        """Keep the coefficients in the shapes scikit-learn's users expect."""
        self.coef_, self.intercept_ = found

    def _seed(self) -> int:
        """Return a seed from ``random_state``; None is a fixed one."""
        return seed_of(self.random_state)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in ATTRIBUTES:
                return self.__getattribute__(name)  # says again what was wrong with it
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}; {ATTRIBUTES[name]}",
                name=name,
                obj=self,
            )

    # ---- using -------------------------------------------------------------------------------

    def _linear(self, X: Any) -> FloatArray:
        """Return ``X @ coef_.T + intercept_``; reads the selected columns only."""
        check_is_fitted(self)
        X = in_memory(X, "X")
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


def _of_several(model: SparseLinearModel) -> str:
    """Return what to do with a target of several columns, for a model of one."""
    if is_classifier(model):
        return "Of a column for each class np.argmax(y, axis=1) makes classes."
    return (
        "SparseLinearRegression takes several targets, which share their features; "
        f"MultiOutputRegressor({type(model).__name__}(...)) chooses features for each of them."
    )


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Validated data of one fit."""

    X: Any
    y: Any
    """As it was given."""
    target: FloatArray
    """As numbers."""
    outputs: int
    c: FloatArray
    """The weights of the samples, ones where none were given."""
    weighted: bool
    """Whether weights were given."""


@dataclass(eq=False, repr=False)
class Options(SparseLinearModel):
    """The parameters that all of them have."""

    _: KW_ONLY
    plain_ridge: bool = False
    positive: bool = False
    bounds: Any = None
    groups: Any = None
    always: Any = None
    backend: Any = None
    effort: str = "medium"
    time_limit: float | None = None
    certify: bool = False
    random_state: Any = None
    verbose: bool = False


@dataclass(eq=False, repr=False)
class GivenK(Options):
    """``k`` and the ridge are given."""

    k: Any = 10
    _: KW_ONLY
    ridge: float = 1e-3

    def _solved(self, data: Data) -> tuple[Declared, Any]:
        declared = self._declared(data)
        return declared, declared.solve(self.k, self.ridge, seed=self._seed())


def scoring_weights(weights: Any, samples: Any) -> FloatArray:
    """Return the weights that a score is given, ones for None; some are positive, none negative."""
    checked = _check_sample_weight(weights, samples, dtype=np.float64, ensure_non_negative=True)
    return np.asarray(checked)
