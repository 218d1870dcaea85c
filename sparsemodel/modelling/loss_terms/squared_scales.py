"""The scales of columns and targets, by which a ridge does not depend on their units."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.interfaces import Curved, DataFit, FloatArray, Loss, Quadratic, TargetKind

_EVEN = 1e-9
"""Rounding of a share of the weights, within which two halves are equal."""


def squared_scales(X: Any, *, centred: bool, weights: FloatArray | None = None) -> FloatArray:
    r"""Return :math:`s_j^2`: the columns' variances, or mean squares, to three digits.

    With them the ridge :math:`\tfrac\lambda2 \sum_j s_j^2 w_j^2` stays as it is when a column is
    measured in another unit: its coefficient changes inversely. Columns that do not vary keep 1.

    Parameters
    ----------
    X
        A matrix of shape ``(n, p)``, dense or sparse.
    centred
        Take variances, as where an intercept takes up the means; else mean squares.
    weights
        Of the rows, adding up to one; None weighs them equally.

    Examples
    --------
    >>> import numpy as np
    >>> squared_scales(np.array([[1.0, 5.0], [3.0, 5.0]]), centred=True)
    array([1., 1.])
    >>> squared_scales(np.array([[1.0, 5.0], [3.0, 5.0]]), centred=False)
    array([ 5., 25.])
    """
    dense = isinstance(X, np.ndarray)
    if weights is not None:
        squares, mean = _weighted(X, weights)
    elif dense:
        mean = X.mean(axis=0, dtype=np.float64)
        squares = np.einsum("ij,ij->j", X, X, dtype=np.float64) / X.shape[0]
    else:
        mean = np.asarray(X.mean(axis=0)).ravel()
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    scales = squares
    if centred:
        scales = squares - np.square(mean)
        if dense and np.any(scales < 1e-6 * squares):  # cancellation
            scales = _variance(X, mean, weights)
    return _same_everywhere(np.where(scales > 1e-14 * squares, scales, 1.0))


def target_scale(loss: DataFit, y: FloatArray, weights: FloatArray, *, centred: bool) -> float:
    r"""Return what a ridge is multiplied by so that the units of a target do not matter.

    A squared loss grows with the square of the unit, as the ridge does; a pinball loss grows with
    the unit, so that one ridge was nothing for a target in millionths, and left no coefficient of
    one in millions. With :math:`d` the mean distance of the target from its median, and :math:`L`
    the mean loss there, it is :math:`\tfrac4\pi L / d^2`: of normal targets 1 for squares.
    Beside a logarithmic link it is the mean curvature at the logarithm of the mean: of counts
    their mean, so that counts and rates of any exposure are shrunk alike. It is 1 for squares, for
    classes, and where neither is known.

    Parameters
    ----------
    loss
        Of the predictions.
    y
        The target as the loss reads it.
    weights
        Of the observations, adding up to one.
    centred
        Whether an intercept takes up the median; else distances are from 0.

    Examples
    --------
    >>> from sparsemodel.losses import QuantileLoss
    >>> y, weights = np.array([-1.0, 0.0, 1.0]), np.full(3, 1 / 3)
    >>> [round(target_scale(QuantileLoss(0.5), a * y, weights, centred=True), 2) for a in (1, 100)]
    [0.96, 0.01]
    """
    if not isinstance(loss, Loss) or isinstance(loss, Quadratic):
        return 1.0
    if loss.target_kind is not TargetKind.NUMBERS:
        return 1.0
    if type(loss).mean is not DataFit.mean:
        return _curvature(loss, y, weights)
    if loss.total(y, y, weights) != 0.0:
        return 1.0
    constant = np.full(y.shape, _median(y, weights) if centred else 0.0)
    distance, lost = float(weights @ np.abs(y - constant)), loss.total(constant, y, weights)
    return _positive(4.0 / np.pi * lost / distance**2 if distance > 0.0 else 1.0)


def spread(y: FloatArray, weights: FloatArray) -> float:
    """Return 1.4826 times the median distance of ``y`` from its median, which is sigma if normal.

    1.2533 times the mean distance where more than half of ``y`` are equal, 1 where all are.

    Examples
    --------
    >>> round(spread(np.array([-1.0, 0.0, 1.0, 100.0]), np.ones(4)), 3)
    1.483
    """
    if not weights.any():
        return 1.0
    away = np.abs(y - _median(y, weights))
    mean = float(weights @ away) / float(weights.sum())
    return 1.4826 * _median(away, weights) or 1.2533 * mean or 1.0


def _curvature(loss: Loss, y: FloatArray, weights: FloatArray) -> float:
    """Return the mean curvature at the best constant of a loss with a logarithmic link."""
    mean = float(weights @ y) / float(weights.sum())
    if not isinstance(loss, Curved) or not mean > 0.0:
        return 1.0
    u = np.full(y.shape, np.log(mean))
    if not np.allclose(loss.mean(u), mean):
        return 1.0
    return _positive(float(weights @ loss.second_derivative(u, y)))


def _median(y: FloatArray, weights: FloatArray) -> float:
    """Return the middle of all medians: rounded weights do not choose between the two ends."""
    order = np.argsort(y, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    ends = np.searchsorted(reached, [0.5 - _EVEN, 0.5 + _EVEN])
    return float(y[order[np.minimum(ends, y.size - 1)]].mean())


def _positive(scale: float) -> float:
    return float(_same_everywhere(np.array(scale))) if 0.0 < scale < np.inf else 1.0


def _weighted(X: Any, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean squares and means of the columns."""
    squared = np.square(X, dtype=np.float64) if isinstance(X, np.ndarray) else X.multiply(X)
    return np.asarray(squared.T @ weights).ravel(), np.asarray(X.T @ weights).ravel()


def _variance(X: Any, mean: FloatArray, weights: FloatArray | None) -> FloatArray:
    if weights is None:
        return np.asarray(X.var(axis=0, dtype=np.float64))
    return np.asarray(weights @ np.square(X - mean, dtype=np.float64))


def _same_everywhere(values: FloatArray) -> FloatArray:
    """Return positive numbers to three digits, the same on machines that round sums otherwise.

    A certificate is about one ridge, bit by bit. Rounding up from an odd share of a step leaves
    no value that real data would hit exactly between two results.
    """
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.floor(mantissa * 2048.0 + 0.4142135623730951), exponent - 11))
