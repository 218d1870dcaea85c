"""Sparse classifiers: logistic regression (binary and multinomial), support vectors."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from sparsemodel.interfaces import DataFit, FloatArray
from sparsemodel.losses import (
    HingeLoss,
    LogisticLoss,
    MultinomialLoss,
    SmoothedHingeLoss,
    SquaredHingeLoss,
)
from sparsemodel.sklearn._base import Data, GivenK, SparseLinearModel
from sparsemodel.sklearn._chosen import ChosenK
from sparsemodel.sklearn._docs import (
    CLASS_WEIGHT,
    CLASSIFIER,
    PARAMETERS,
    cross_validated,
    estimator,
)

_HINGES = {
    "hinge": HingeLoss,
    "smoothed_hinge": SmoothedHingeLoss,
    "squared_hinge": SquaredHingeLoss,
}


@dataclass(eq=False, repr=False)
class SparseClassifier(ClassifierMixin, SparseLinearModel):  # type: ignore[misc]
    """What the classifiers share."""

    _: KW_ONLY
    fit_intercept: bool = True
    class_weight: Any = None

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        try:
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
        except TypeError as error:  # labels that cannot be compared
            kinds = sorted({type(label).__name__ for label in np.ravel(y).tolist()})
            raise TypeError(
                f"y holds labels of several types, {' and '.join(kinds)}, which have no order; "
                "write them alike, for instance y.astype(str)."
            ) from error
        count = self.classes_.size
        if count < 2:
            raise ValueError(
                f"y holds one class only, {self.classes_.tolist()[0]!r}; "
                f"{type(self).__name__} needs two."
            )
        return codes.astype(np.float64), 1 if count == 2 else count

    def _targets(self, target: FloatArray, outputs: int) -> FloatArray:
        return 2.0 * target - 1.0 if outputs == 1 else target

    def _weights(self, y: Any, c: FloatArray) -> FloatArray:
        c = super()._weights(y, c)
        self._need_classes(y[c > 0.0])
        if self.class_weight is None:
            return c
        if self.class_weight == "balanced":
            # The classes' shares are those of the weighted samples.
            codes = np.searchsorted(self.classes_, y)
            totals = np.bincount(codes, weights=c, minlength=self.classes_.size)
            c = c / np.where(totals > 0.0, totals, 1.0)[codes]
        else:
            each = compute_sample_weight(self.class_weight, y)
            self._refuse_class_weights(each, y)
            c = c * each
        return np.asarray(c / c.sum())

    def _counting(self, data: Data) -> FloatArray:
        # Else models of noise, which predict the commoner class better, would pass the test of 0.
        return data.c if self.class_weight is None else self._weights(data.y, data.c)

    def _refuse_class_weights(self, each: FloatArray, y: Any) -> None:
        """Refuse weights of classes that are not positive: such a class is none of the model."""
        wrong = ~((each > 0.0) & np.isfinite(each))
        if not wrong.any():
            return
        j = int(np.argmax(wrong))
        label, value = np.asarray(y)[j : j + 1].tolist()[0], float(each[j])
        advice = (
            "a class that counts for nothing is no class of the model: leave its samples out, "
            f"`X[y != {label!r}], y[y != {label!r}]`"
            if value == 0.0
            else "weights of classes must be positive"
        )
        raise ValueError(f"class_weight of class {label!r} is {value:g}; {advice}.")

    def _need_classes(self, y: Any) -> None:
        """Refuse classes of none of the samples that are fitted: their constants fall for ever."""
        fitted = np.unique(y)
        missing = np.setdiff1d(self.classes_, fitted).tolist()
        if not missing or (fitted.size > 1 and not self.fit_intercept):
            return
        said = f"No sample with a positive sample_weight is of class {missing[0]!r}"
        if fitted.size < 2:
            said = (
                "All samples with a positive sample_weight are of one class, "
                f"{fitted.tolist()[0]!r}"
            )
        if isinstance(self, ChosenK):
            said += (
                ", in the training part of a fold if not of all; pass a cv whose training parts "
                "hold every class, for instance StratifiedKFold with no more folds than the "
                "rarest class has samples, or leave that class out"
            )
        raise ValueError(f"{said}; {type(self).__name__} needs samples of every class.")

    def _take(self, found: tuple[FloatArray, Any], outputs: int) -> None:
        coef, intercept = found
        self.coef_ = np.atleast_2d(coef)
        constants = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
        # Probabilities do not change when all classes' constants move together: one of these
        # equal models is taken, that with constants that add up to zero.
        self.intercept_ = constants - constants.mean() if constants.size > 1 else constants

    def decision_function(self, X: Any) -> FloatArray:
        """Return the linear scores; positive means ``classes_[1]`` where there are two classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The scores.
        """
        return self._linear(X)

    def predict(self, X: Any) -> Any:
        """Return the predicted classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The classes.
        """
        scores = self.decision_function(X)
        codes = (scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]


@dataclass(eq=False, repr=False)
class _Logistic(SparseClassifier):
    def _loss(self) -> DataFit:
        return LogisticLoss() if self.classes_.size == 2 else MultinomialLoss(self.classes_.size)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.asarray(log_expit(np.column_stack([-scores, scores])))
        return np.asarray(log_softmax(scores, axis=1))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes, as the model has them.

        They are not recalibrated. With a large ridge or few features they are too close to the
        class frequencies, with many features and a small ridge too extreme. If they must be
        calibrated, wrap the estimator in ``sklearn.calibration.CalibratedClassifierCV``. Classes
        that were not in the training data have no column.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))


@dataclass(eq=False, repr=False)
class _SupportVectors(SparseClassifier):
    _: KW_ONLY
    loss: str = "squared_hinge"

    def _loss(self) -> DataFit:
        if self.loss not in _HINGES:
            raise ValueError(f"loss must be one of {', '.join(_HINGES)}, not {self.loss!r}.")
        made: DataFit = _HINGES[self.loss]()
        return made

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        codes, outputs = super()._encode(y)
        if outputs > 1:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}; for several classes wrap the estimator in "
                "sklearn.multiclass.OneVsRestClassifier."
            )
        return codes, outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@estimator(r"\ell(u_i; y_i)", parameters=PARAMETERS + CLASS_WEIGHT, attributes=CLASSIFIER)
@dataclass(eq=False, repr=False)
class SparseLogisticRegression(_Logistic, GivenK):
    r"""Logistic regression, binary or multinomial, with at most ``k`` features.

    :math:`\ell` is minus the logarithm of the probability of the class. With more than two
    classes ``w`` is a matrix with a column per class, and its nonzero *rows* are counted: a
    feature is selected for all classes or for none.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 20))
    >>> y = np.digitize(X[:, 3] - X[:, 7] + 0.3 * rng.standard_normal(150), [-1.0, 1.0])
    >>> model = SparseLogisticRegression(k=2).fit(X, y)
    >>> model.get_support(indices=True), model.coef_.shape
    (array([3, 7]), (3, 20))
    """


@cross_validated(SparseLogisticRegression)
@dataclass(eq=False, repr=False)
class SparseLogisticRegressionCV(_Logistic, ChosenK):
    """Logistic regression whose ``k`` and ridge are cross-validated together.

    ``class_weight`` applies to the training part of each fold, not to the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseLogisticRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 8))
    >>> y = X[:, 3] - X[:, 7] + 0.3 * rng.standard_normal(60) > 0.0
    >>> model = SparseLogisticRegressionCV([0, 1, 2, 3], ridges=0.01, cv=3).fit(X, y)
    >>> model.get_support(indices=True)
    array([3, 7])
    """


@estimator(r"h(y_i u_i)", parameters=PARAMETERS + CLASS_WEIGHT, attributes=CLASSIFIER)
@dataclass(eq=False, repr=False)
class SparseSVC(_SupportVectors, GivenK):
    r"""Linear support vector machine for two classes with at most ``k`` features.

    Labels are :math:`y_i = \pm 1`, and ``h(m)`` is ``max(0, 1 - m)**2 / 2``
    (``loss="squared_hinge"``), ``max(0, 1 - m)`` (``"hinge"``), or the latter rounded off at its
    corner (``"smoothed_hinge"``). For several classes wrap it in
    ``sklearn.multiclass.OneVsRestClassifier``.

    Parameters
    ----------
    loss : {'squared_hinge', 'hinge', 'smoothed_hinge'}, default='squared_hinge'
        ``h`` above; the hinge itself is not smooth, and fewer backends take it.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseSVC
    >>> X = np.random.default_rng(0).standard_normal((100, 20))
    >>> SparseSVC(k=2).fit(X, X[:, 3] > X[:, 7]).get_support(indices=True)
    array([3, 7])
    """


@cross_validated(SparseSVC)
@dataclass(eq=False, repr=False)
class SparseSVCCV(_SupportVectors, ChosenK):
    """Linear support vector machine whose ``k`` and ridge are cross-validated together.

    ``class_weight`` applies to the training part of each fold, not to the scores.
    """
