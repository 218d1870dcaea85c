"""The Cox model of survival times."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_consistent_length

from sparsemodel.interfaces import DataFit, FloatArray
from sparsemodel.losses import CoxLoss
from sparsemodel.losses.counts.risk_sets import in_columns, survival
from sparsemodel.sklearn._base import Data, GivenK, SparseLinearModel, scoring_weights
from sparsemodel.sklearn._chosen import ChosenK
from sparsemodel.sklearn._docs import PARAMETERS_COX, cross_validated, estimator


@dataclass(eq=False, repr=False)
class _Cox(SparseLinearModel):
    _matrix_target: ClassVar[bool] = True

    _: KW_ONLY
    ties: str = "breslow"

    def _loss(self) -> DataFit:
        return CoxLoss(ties=self.ties)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Data:
        return super()._read(X, _in_columns(y), sample_weight)

    def _encode(self, y: Any) -> tuple[FloatArray, int]:
        return CoxLoss().check_target(np.asarray(_in_columns(y), dtype=np.float64), "y"), 1

    def _weights(self, y: Any, c: FloatArray) -> FloatArray:
        c = super()._weights(y, c)
        if not np.any(c[survival(in_columns(np.asarray(y, dtype=np.float64))).event] > 0.0):
            said = "No sample with a positive sample_weight has an event"
            if isinstance(self, ChosenK):
                said += (
                    ", in the training part of a fold if not of all; pass a cv whose training "
                    "parts hold events, with no more folds than there are events"
                )
            raise ValueError(f"{said}; {type(self).__name__} needs at least one.")
        return c

    def predict(self, X: Any) -> FloatArray:
        """Return the log hazards relative to a sample of zeros.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.

        Returns
        -------
        risk : ndarray of shape (n_samples,)
            ``X @ coef_``; a larger one means an earlier event.
        """
        return self._linear(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the concordance: how often the sample with the earlier event has the larger risk.

        Of all pairs of which one is known to have had its event before the other, by time or by
        censoring (Harrell, Califf, Pryor, Lee and Rosati, JAMA 1982). Equal risks count one half.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples, 2), (n_samples, 3) or (n_samples, 4)
            Times, events and perhaps strata, as in ``fit``; pairs are of one stratum, and with
            delayed entry at risk together.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a pair has the product of theirs.

        Returns
        -------
        score : float
            Between 0 and 1; 0.5 for risks that say nothing, and where no pair can be compared.
        """
        target, _ = self._encode(y)
        risk = self.predict(X)
        check_consistent_length(risk, target)
        return concordance(risk, target, scoring_weights(sample_weight, risk))


def _in_columns(y: Any) -> Any:
    """Return times and events of a structured array in columns; what has columns as it is."""
    fields = getattr(getattr(y, "dtype", None), "fields", None)
    if not fields:
        return y
    events = [name for name, (kind, *_) in fields.items() if kind == np.bool_]
    if len(fields) not in (2, 3) or len(events) != 1:
        raise ValueError(
            "y, a structured array, must have two fields, truth values for the events and numbers "
            "for the times, or three, with the start before the stop, not "
            f"{', '.join(fields)}; or give columns: time and event, or start, stop and event."
        )
    times = [name for name in fields if name != events[0]]
    return np.column_stack([y[name] for name in (*times, events[0])])


def concordance(risk: FloatArray, y: FloatArray, weights: Any = None) -> float:
    """Return the weighted share of comparable pairs whose risks are in the order of their times.

    Examples
    --------
    >>> import numpy as np
    >>> concordance(np.array([3.0, 1.0, 2.0]), np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 0.0]]))
    0.6666666666666666
    """
    time, event, strata, entry = survival(y)
    stratum = np.zeros(time.size) if strata is None else strata
    c = np.ones(time.size) if weights is None else np.asarray(weights, dtype=np.float64)
    right = total = 0.0
    for i in np.flatnonzero(event):
        # At one time, who had no event yet outlived who had.
        later = (time > time[i]) | ((time == time[i]) & ~event)
        later &= stratum == stratum[i]
        if entry is not None:
            later &= entry < time[i]  # who had not entered was not there to be outlived
        pairs = c[i] * c[later]
        total += float(pairs.sum())
        right += float(pairs @ (0.5 + 0.5 * np.sign(risk[i] - risk[later])))
    return right / total if total > 0.0 else 0.5


@estimator(r"F(X w;\, y, c)", parameters=PARAMETERS_COX)
@dataclass(eq=False, repr=False)
class SparseCoxRegression(_Cox, GivenK):
    """Proportional hazards (the Cox model) with at most ``k`` features.

    ``F`` is minus the mean logarithm of the partial likelihood of times and events ``y``: two
    columns, the time, and 1 for an event or 0 for the end of observation; a third column numbers
    the strata, which have baseline hazards of their own; or a structured array of an event and a
    time, as scikit-survival has them. With delayed entry the columns are start, stop and event,
    and optionally strata. There is no intercept: the baseline hazard absorbs it.

    Parameters
    ----------
    ties : {"breslow", "efron"}, default="breslow"
        How events at the same time are compared; Efron's way is closer to the exact likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparseCoxRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 10))
    >>> time = rng.exponential(np.exp(X[:, 7] - X[:, 3]))
    >>> y = np.column_stack([np.minimum(time, 3.0), time < 3.0])
    >>> SparseCoxRegression(k=2).fit(X, y).get_support(indices=True)
    array([3, 7])
    """


@cross_validated(SparseCoxRegression)
@dataclass(eq=False, repr=False)
class SparseCoxRegressionCV(_Cox, ChosenK):
    """Proportional hazards whose number of features and ridge are cross-validated together.

    The default score is the mean logarithm of the partial likelihood among the samples of the
    held-out fold, which needs events in every fold.
    """
