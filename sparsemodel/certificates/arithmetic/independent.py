r"""Columns with the same span as others, but far from dependent on each other.

:math:`A^T (c a) = 0` can be proved of floats only where the columns of ``A`` are independent by
more than rounding. Columns that are nearly a combination of others (equal ones, classes beside an
intercept, totals beside their parts) are replaced by what they differ from it by, in whole numbers,
which do not round; where nothing is left they are left out. All sums vanish if these do.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sparsemodel.interfaces import FloatArray
from sparsemodel.interfaces.numeric import least_squares

_CLOSE = 1e-3
"""Sine of the angle to the span of others below which a column is replaced."""

_ROUNDS = 6
"""How often a column is: coefficients of a combination are rounded, and leave some of it."""

_DENOMINATORS, _NEAR = range(1, 9), 1e-7
"""Denominators of coefficients that are tried first, and how close to them they have to be."""

_DIGITS = 100
"""Binary digits of coefficients that are no such ratios."""

_LEAST = 2.0**-1000
"""Entries below that may have lost digits."""


class _Whole(NamedTuple):
    """A column as whole numbers, how many binary digits they have, and as floats up to one."""

    numbers: np.ndarray
    digits: int
    floats: FloatArray


def independent(columns: Sequence[FloatArray]) -> list[FloatArray]:
    """Return columns of which ``A' (c a)`` is exactly zero if and only if it is for these.

    Near one in size, by powers of two. Those that are replaced are rounded once.
    """
    stacked = np.concatenate(columns)
    scale = np.ldexp(1.0, np.frexp(np.abs(stacked).max(axis=0, initial=0.0))[1] - 1)
    # Small entries may underflow beside one that is large.
    scale = np.where(np.all((stacked / scale) * scale == stacked, axis=0), scale, 1.0)
    stacked = (stacked / scale)[:, stacked.any(axis=0)]
    if not _apart(stacked):
        # Columns span no more than there are different rows.
        rows, places = np.unique(stacked, axis=0, return_inverse=True)
        stacked = _replaced(rows)[places.ravel()]
    return np.split(stacked, np.cumsum([len(c) for c in columns])[:-1])


def _apart(columns: FloatArray) -> bool:
    """Return whether no column is near the span of the others."""
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.sqrt(np.sum(np.square(columns), axis=0))
        units = columns / sizes
        matrix = units.T @ units
    if not np.all(np.isfinite(matrix)):
        return False
    return columns.shape[1] < 2 or float(np.linalg.eigvalsh(matrix)[0]) > _CLOSE**2


def _replaced(columns: FloatArray) -> FloatArray:
    kept: list[_Whole] = []
    for f in columns.T:
        if len(kept) == len(columns):
            break  # these span everything
        column: _Whole | None = _whole(f)
        for _ in range(_ROUNDS):
            if column is None or not kept:
                break
            basis = np.column_stack([other.floats for other in kept])
            ratios = least_squares(basis, column.floats)
            left = np.linalg.norm(column.floats - basis @ ratios)
            if left > _CLOSE * np.linalg.norm(column.floats):
                break
            column = _less(column, kept, ratios)
        if column is not None:
            kept.append(column)
    found = np.column_stack([column.floats for column in kept])
    # Digits that are lost are no zeros: the columns as they are prove nothing, or enough.
    lost = any(np.any((c.numbers != 0) & (np.abs(c.floats) < _LEAST)) for c in kept)
    return columns if lost else found


def _whole(f: FloatArray) -> _Whole:
    mantissa, exponent = np.frexp(f)
    exponent = np.where(f == 0.0, exponent.max(initial=0), exponent)
    least = int(exponent.min(initial=0))
    digits = np.ldexp(mantissa, 53).astype(np.int64).tolist()
    shifts = (exponent - least).tolist()
    numbers = [d << s for d, s in zip(digits, shifts, strict=True)]
    return _held(np.array(numbers, dtype=object))


def _less(column: _Whole, others: list[_Whole], ratios: FloatArray) -> _Whole | None:
    """Return a multiple of a column less a combination of others; None where nothing is left."""
    factor, factors = _factors(ratios)
    most = max(column.digits, *(other.digits for other in others))
    numbers = column.numbers * (factor << (most - column.digits))
    for other, times in zip(others, factors, strict=True):
        if times:
            numbers = numbers - other.numbers * (times << (most - other.digits))
    return _held(numbers) if any(numbers) else None


def _held(numbers: np.ndarray) -> _Whole:
    """Return whole numbers with floats up to one beside them."""
    digits = max(abs(number).bit_length() for number in numbers)
    one = 1 << digits  # whole numbers divide with one rounding
    return _Whole(numbers, digits, np.array([number / one for number in numbers]))


def _factors(ratios: FloatArray) -> tuple[int, list[int]]:
    """Return a whole number and whole multiples of it that are near ``ratios``."""
    for whole in _DENOMINATORS:
        near = np.rint(ratios * whole)
        if np.all(np.abs(ratios * whole - near) <= _NEAR):
            return whole, [int(r) for r in near]
    one = 1 << _DIGITS
    return one, [int(Fraction(float(r)) * one) for r in ratios]
