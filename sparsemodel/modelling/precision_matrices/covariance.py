"""Input of precision-matrix problems: covariances, data and eigenvalue bounds, checked."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sparsemodel.interfaces import DataError, FloatArray, InfeasibleError
from sparsemodel.interfaces.numeric import is_masked, least_squares
from sparsemodel.modelling.expressions.values import real_array

_SYMMETRY = 1e-8
"""Asymmetry, relative to the largest entry, that is taken for rounding (float32 included)."""

_DEFINITENESS = 1e-7
"""Negative eigenvalues, relative to the largest, that are taken for rounding."""

_VARIANCES = (1e-70, 1e70)
"""Variances whose fourth powers are still ordinary numbers."""

_LARGEST_ENTRY = 1e35
"""Of data: its square is the largest variance."""

XI = 1e-2
"""The constant of the default eigenvalue bounds, in units of the smallest variance."""

_DEPENDENT = 1e-12
"""Share of the variance that the others leave of a column that they determine."""

_BELOW = 0.999
"""Keeps the default lower bound away from optima that come arbitrarily close to it."""


class Covariance(NamedTuple):
    """A covariance matrix with what is known of its origin."""

    matrix: FloatArray
    samples: int | None
    names: tuple[str, ...] | None
    data: FloatArray


def check_covariance(matrix: Any, *, where: str = "S") -> FloatArray:
    """Return a covariance (or correlation) matrix as a C-ordered, exactly symmetric float64 array.

    Parameters
    ----------
    matrix
        Square, finite, symmetric and positive semidefinite up to rounding, with a positive
        diagonal. Copied only where that is needed.
    where
        Name of the argument, for the messages.

    Raises
    ------
    DataError, DataTypeError
        Saying which entry or variable is at fault and what to do.
    """
    S = _numbers(matrix, where)
    if S.ndim != 2 or S.shape[0] != S.shape[1]:
        shape = " x ".join(str(n) for n in S.shape) or "a single number"
        hint = ""
        if S.ndim == 2:
            hint = " If these are observations in rows, write sm.gaussian_nll(Omega, data=X)."
        raise DataError(f"{where} must be a square covariance matrix, not {shape}.{hint}")
    if S.shape[0] == 0:
        raise DataError(f"{where} is empty; a precision matrix needs at least one variable.")
    size = float(np.abs(S).max())
    asymmetry = np.abs(S - S.T)
    if asymmetry.max() > _SYMMETRY * size:
        i, j = np.unravel_index(int(np.argmax(asymmetry)), S.shape)
        raise DataError(
            f"{where} is not symmetric: entry ({i}, {j}) is {S[i, j]:.6g} and entry ({j}, {i}) is "
            f"{S[j, i]:.6g}. Pass (S + S.T) / 2 if that is what you mean."
        )
    if asymmetry.any():
        S = 0.5 * (S + S.T)
    _require_variances(np.diagonal(S), where)
    _require_semidefinite(S, where)
    return np.ascontiguousarray(S)


def dependent_columns(X: FloatArray) -> tuple[int, ...]:
    """Return the columns of one linear dependence among the centred columns of data, if any.

    The fewest that show it: found from the left, each column against those before it.
    """
    centred = X - X.mean(axis=0)
    sizes = np.linalg.norm(centred, axis=0)
    if not np.all(sizes > 0.0):
        return ()  # constant columns have an error of their own
    unit = centred / sizes
    R = np.linalg.qr(unit, mode="r")
    left = np.abs(np.diagonal(R))
    if left.min() ** 2 > _DEPENDENT:
        return ()
    last = int(np.argmax(left**2 <= _DEPENDENT))
    weights = least_squares(unit[:, :last], unit[:, last])
    return (*(int(j) for j in np.flatnonzero(np.abs(weights) > 1e-6)), last)


def dependence(X: FloatArray, names: Sequence[str] | None) -> str:
    """Return a sentence about columns that determine each other, "" where none do.

    With fewer observations than columns all are dependent, and the default eigenvalue bounds are
    made for that.
    """
    if X.shape[0] <= X.shape[1] or not np.all(np.isfinite(X)):
        return ""
    found = [str(j) if names is None else names[j] for j in dependent_columns(X)]
    if not found:
        return ""
    return (
        f"{', '.join(found[:-1])} and {found[-1]} are linearly dependent: once they are joined "
        "the likelihood has no maximum"
    )


def covariance_of_data(X: Any, *, where: str = "X") -> Covariance:
    r"""Return :math:`S = \frac1n \sum_i (x_i - \bar x)(x_i - \bar x)^\top`, ``n`` and the names.

    Parameters
    ----------
    X
        Samples in rows, shape ``(n, p)``; a DataFrame names the variables.

    Raises
    ------
    DataError, DataTypeError
        For fewer than two samples, entries that are not finite, constant columns, and a
        covariance matrix where data were meant.
    """
    names = tuple(str(name) for name in X.columns) if hasattr(X, "columns") else None
    data = _numbers(X, where)
    if data.ndim != 2:
        raise DataError(
            f"{where} must have samples in rows and variables in columns, not shape {data.shape}."
        )
    n, p = data.shape
    if p == 0:
        raise DataError(f"{where} has no columns; a precision matrix needs at least one variable.")
    if n < 2:
        raise DataError(f"{where} has {n} sample(s); a covariance needs at least two.")
    if n == p and n > 2 and np.array_equal(data, data.T) and np.all(np.diagonal(data) > 0.0):
        raise DataError(
            f"{where} is symmetric with a positive diagonal: it looks like a covariance matrix "
            "where data (samples in rows) were meant. Pass it as S = ... instead."
        )
    largest = float(np.abs(data).max())
    if largest > _LARGEST_ENTRY:
        raise DataError(
            f"{where} has entries up to {largest:.3g}, whose squares overflow. Measure the "
            "variables in larger units."
        )
    constant = np.flatnonzero(np.ptp(data, axis=0) == 0.0)
    if constant.size:
        labels = [names[j] if names else str(j) for j in constant[:5]]
        more = f" and {constant.size - 5} more" if constant.size > 5 else ""
        raise DataError(
            f"{where} has constant columns ({', '.join(labels)}{more}): their variance is zero and "
            "the likelihood is unbounded. Drop them."
        )
    deviations = data - data.mean(axis=0)
    S = deviations.T @ deviations / n
    return Covariance(0.5 * (S + S.T), n, names, data)


def default_bounds(
    covariance: FloatArray, *, alpha: float | None = None, beta: float | None = None
) -> tuple[float, float]:
    r"""Return eigenvalue bounds ``(alpha, beta)``, those given and the default for the others.

    The rule is that of Lu (2009, Proposition 3.1), as used by Yuan, Li and Zhang (JMLR 2018,
    section 5.3), with ``p`` the order of ``S`` and :math:`\xi` = ``XI`` times the smallest
    variance: :math:`\alpha = (\|S\|_F + p \xi)^{-1}`,
    :math:`\beta = (p - \alpha\,\mathrm{tr} S) / \xi`. It is looser than theirs in two places: the
    Frobenius norm stands for the spectral one, which would need eigenvalues, and
    :math:`\alpha` stays below :math:`1 / \mathrm{tr} S`, below which no eigenvalue of an optimum
    on any support can lie, because there :math:`(\Omega^{-1})_{ii} = S_{ii}`. :math:`\xi` in units
    of the variance makes the rule independent of the units of the data.

    Raises
    ------
    InfeasibleError
        When no matrix satisfies the given bounds.
    """
    for name, bound in (("alpha", alpha), ("beta", beta)):
        if bound is not None and np.isnan(bound):
            raise DataError(f"The eigenvalue bound {name} is NaN.")
    if beta is not None and not beta > 0.0:
        raise InfeasibleError(
            f"Omega << {beta:g} leaves no positive definite matrix; the upper bound must be "
            "positive."
        )
    if alpha is not None and np.isinf(alpha) and alpha > 0.0:
        raise InfeasibleError("No matrix has infinite eigenvalues; lower the bound Omega >> inf.")
    if alpha is not None and beta is not None and alpha > beta:
        raise InfeasibleError(
            f"No matrix has all eigenvalues at least {alpha:g} and at most {beta:g}: the lower "
            "bound of Omega >> alpha must not exceed the upper bound of Omega << beta."
        )
    p = covariance.shape[0]
    xi = XI * float(np.diagonal(covariance).min())
    trace = float(np.trace(covariance))
    low = min(1.0 / (float(np.linalg.norm(covariance)) + p * xi), _BELOW / trace)
    high = (p - low * trace) / xi if p > 1 else 1.0 / xi
    if alpha is not None:
        low = max(alpha, 0.0)
        high = max(high, 10.0 * low)
    if beta is not None:
        high = beta
        low = low if alpha is not None else min(low, beta)
    return low, high


def _numbers(values: Any, where: str) -> FloatArray:
    if is_masked(values) and np.any(np.ma.getmaskarray(values)):
        raise DataError(
            f"{where} has masked entries, and a likelihood needs them all. Impute them, or drop "
            "their rows."
        )
    if hasattr(values, "toarray"):
        values = values.toarray()
    return real_array(values, where=where, ndim=(0, 1, 2))


def _require_variances(variances: FloatArray, where: str) -> None:
    bad = np.flatnonzero(variances <= 0.0)
    extreme = np.flatnonzero((variances > _VARIANCES[1]) | (variances < _VARIANCES[0]))
    if extreme.size and not bad.size:
        j = int(extreme[0])
        raise DataError(
            f"{where} has the variance {variances[j]:.6g} at ({j}, {j}), outside of "
            f"[{_VARIANCES[0]:g}, {_VARIANCES[1]:g}]: its powers leave the range of floating "
            "point. Measure the variable in other units."
        )
    if bad.size:
        j = int(bad[0])
        what = "constant" if variances[j] == 0.0 else "impossible"
        raise DataError(
            f"{where} has the variance {variances[j]:.6g} at ({j}, {j}): variable {j} is {what}. "
            "Drop such variables; the likelihood is unbounded with them."
        )


def _require_semidefinite(S: FloatArray, where: str) -> None:
    # Scaled to a unit diagonal, so that variables in small units are not lost in the rounding.
    scale = 1.0 / np.sqrt(np.diagonal(S))
    correlations = S * scale[:, None] * scale[None, :]
    largest = float(np.vdot(correlations, correlations)) / correlations.shape[0]  # or more
    shifted = correlations.copy()
    shifted[np.diag_indices_from(shifted)] += 0.5 * _DEFINITENESS * largest
    with contextlib.suppress(np.linalg.LinAlgError):
        np.linalg.cholesky(shifted)
        return
    smallest, largest = np.linalg.eigvalsh(correlations)[[0, -1]]
    if smallest < -_DEFINITENESS * largest:
        raise DataError(
            f"{where} is not positive semidefinite: as a correlation matrix it has the eigenvalue "
            f"{smallest:.3g}. No data have such a covariance (pairwise deletion of missing values "
            "can cause it); compute it from complete rows."
        )
