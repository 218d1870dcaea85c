"""Sparse regressions with any loss of numbers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from sparsemodel.interfaces import DataFit, FloatArray, Loss, TargetKind
from sparsemodel.registry import loss_class
from sparsemodel.sklearn._base import GivenK
from sparsemodel.sklearn._chosen import ChosenK
from sparsemodel.sklearn._docs import PARAMETERS, REGRESSOR, cross_validated, filled
from sparsemodel.sklearn.regression import ExplainedLoss


@dataclass(eq=False, repr=False)
class _Generalized(ExplainedLoss):
    _: KW_ONLY
    loss: Any = "squared"

    def _loss(self) -> Loss:
        loss: DataFit | None = None
        if isinstance(self.loss, DataFit):
            loss = self.loss
        elif isinstance(self.loss, str):
            loss = loss_class(self.loss)()
        if not isinstance(loss, Loss) or loss.target_kind is not TargetKind.NUMBERS:
            raise ValueError(
                f"loss must be the name of a loss of numbers, such as 'tweedie', or one with its "
                f"parameters, such as TweedieLoss(power=1.3), not {self.loss!r}. For classes and "
                "for times of events there are other estimators."
            )
        return loss

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        return self._loss().check_target(np.asarray(y, dtype=np.float64), "y"), 1


@filled(parameters=PARAMETERS, attributes=REGRESSOR)
@dataclass(eq=False, repr=False)
class SparseGeneralizedRegression(_Generalized, GivenK):
    r"""Regression with any loss of numbers and at most ``k`` features.

    Minimises, with observation weights :math:`c_i` that sum to one and
    :math:`u_i = x_i^\top w + b`,

    .. math:: \sum_i c_i\, \ell(u_i; y_i) + \tfrac{\lambda}2 \sum_j s_j^2 w_j^2
              \quad\text{with}\quad \|w\|_0 \le k.

    Parameters
    ----------
    <parameters>
    loss : str or Loss, default="squared"
        Its name, with the default parameters (``sm.available_losses()``: ``"tweedie"``,
        ``"negative-binomial"``, ``"expectile"``, those of plug-ins), or the loss itself:
        ``TweedieLoss(power=1.3)`` of ``sparsemodel.losses``, or one of your own.

    Attributes
    ----------
    <attributes>

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
