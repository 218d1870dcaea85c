"""Sparse regressions, each with the loss that it minimises; predictions are means of the loss."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from sparsemodel.interfaces import Conjugable, DataFit, FloatArray, Loss, TargetKind
from sparsemodel.losses import GammaLoss, HuberLoss, PoissonLoss, QuantileLoss, SquaredLoss
from sparsemodel.modelling.loss_terms.squared_scales import spread
from sparsemodel.modelling.regression.measures import deviance_explained
from sparsemodel.registry import loss_class
from sparsemodel.sklearn._base import Data, GivenK, SparseLinearModel, scoring_weights
from sparsemodel.sklearn._chosen import ChosenK
from sparsemodel.sklearn._docs import cross_validated, estimator

_OF_SPREAD = 1.35
"""Residuals of so many standard deviations are ordinary to the Huber loss."""

# ---- what is fitted ------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Regression(RegressorMixin, SparseLinearModel):  # type: ignore[misc]
    """A regression that predicts what its loss makes of a linear score."""

    _: KW_ONLY
    fit_intercept: bool = True

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        loss = self._loss()
        target = loss.check_target(np.asarray(y, dtype=np.float64), "y")
        return target, loss.outputs(target)

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

    def _loss(self) -> DataFit:
        return SquaredLoss()

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

    def _loss(self) -> DataFit:
        return HuberLoss(getattr(self, "delta_", _OF_SPREAD))


@dataclass(eq=False, repr=False)
class _Quantile(ExplainedLoss):
    _: KW_ONLY
    quantile: float = 0.5

    def _loss(self) -> DataFit:
        return QuantileLoss(self.quantile)


@dataclass(eq=False, repr=False)
class _PositiveMean(ExplainedLoss):
    """A regression of positive means, which are the exponentials of a linear score."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


@dataclass(eq=False, repr=False)
class _Poisson(_PositiveMean):
    def _loss(self) -> DataFit:
        return PoissonLoss()

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        target, outputs = super()._encode(y)
        if not np.any(target):
            raise ValueError("All values of y are zero; the log of their mean is not finite.")
        return target, outputs


@dataclass(eq=False, repr=False)
class _Gamma(_PositiveMean):
    def _loss(self) -> DataFit:
        return GammaLoss()


@dataclass(eq=False, repr=False)
class _Generalized(ExplainedLoss):
    _: KW_ONLY
    loss: Any = "squared"

    def _loss(self) -> DataFit:
        loss = loss_class(self.loss)() if isinstance(self.loss, str) else self.loss
        if not isinstance(loss, Loss) or loss.target_kind is not TargetKind.NUMBERS:
            raise ValueError(
                f"loss must be the name of a loss of numbers, such as 'tweedie', or one with its "
                f"parameters, such as TweedieLoss(power=1.3), not {self.loss!r}. For classes and "
                "for times of events there are other estimators."
            )
        return loss


# ---- with a given k, and with one that is chosen -------------------------------------------------


@estimator(r"\tfrac12 (u_i - y_i)^2")
@dataclass(eq=False, repr=False)
class SparseLinearRegression(_LeastSquares, GivenK):
    """Least squares with at most ``k`` features.

    With several targets ``w`` is a matrix with a column for each, its nonzero *rows* are counted,
    and squares are added up: a feature is selected for all targets or for none.

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


@estimator(r"h_\delta(u_i - y_i)")
@dataclass(eq=False, repr=False)
class SparseHuberRegression(_Huber, GivenK):
    r"""Huber regression with at most ``k`` features.

    :math:`h_\delta(r)` is :math:`\tfrac12 r^2` up to :math:`|r| = \delta` and linear beyond, so
    that each outlier has a bounded influence.

    Parameters
    ----------
    delta : float, default=None
        Where the loss becomes linear, in the units of ``y``. None takes 1.35 times the spread of
        ``y`` (1.4826 times the median distance from its median), so that the model does not depend
        on the unit. This is wide: it bounds the influence of single targets that are far off, and
        hardly that of others. If the spread of the noise is known, 1.35 times that bounds more of
        them, and costs 5 % of efficiency if the noise is normal (Huber 1964).

    Attributes
    ----------
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


@estimator(r"\max\{\tau (y_i - u_i), (\tau - 1)(y_i - u_i)\}")
@dataclass(eq=False, repr=False)
class SparseQuantileRegression(_Quantile, GivenK):
    r"""Quantile regression with at most ``k`` features.

    The prediction is the conditional quantile :math:`\tau` of the target, the median for 0.5.

    Parameters
    ----------
    quantile : float, default=0.5
        :math:`\tau` above, between 0 and 1.

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


@estimator("(e^{u_i} - y_i u_i)")
@dataclass(eq=False, repr=False)
class SparsePoissonRegression(_Poisson, GivenK):
    """Poisson regression of counts with at most ``k`` features.

    For counts with exposures (time, area, people), fit the rates with the exposures as weights,
    ``fit(X, counts / exposure, sample_weight=exposure)``. This is the likelihood with the offset
    ``log(exposure)``, and the prediction is the rate.

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


@estimator("(y_i e^{-u_i} + u_i)")
@dataclass(eq=False, repr=False)
class SparseGammaRegression(_Gamma, GivenK):
    """Gamma regression of positive amounts with at most ``k`` features.

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


@estimator(r"\ell(u_i; y_i)")
@dataclass(eq=False, repr=False)
class SparseGeneralizedRegression(_Generalized, GivenK):
    """Regression with any loss of numbers and at most ``k`` features.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        Its name, with the default parameters (``sm.available_losses()``: ``"tweedie"``,
        ``"negative-binomial"``, ``"expectile"``, those of plug-ins), or the loss itself:
        ``TweedieLoss(power=1.3)`` of ``sparsemodel.losses``, or one of your own.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.losses import NegativeBinomialLoss
    >>> from sparsemodel.sklearn import SparseGeneralizedRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> y = rng.negative_binomial(2, 2 / (2 + np.exp(0.8 * X[:, 3] - X[:, 7] + 1)))
    >>> model = SparseGeneralizedRegression(k=2, loss=NegativeBinomialLoss(theta=2.0)).fit(X, y)
    >>> model.get_support(indices=True)
    array([3, 7])
    """


@cross_validated(SparseGeneralizedRegression)
@dataclass(eq=False, repr=False)
class SparseGeneralizedRegressionCV(_Generalized, ChosenK):
    """Regression with any loss of numbers whose ``k`` and ridge are cross-validated together."""
