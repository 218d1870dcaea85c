"""Columns with the span of others, of which none is near a combination of the rest.

That sums are zero exactly is proved by solving with the columns, which must not depend on each
other but for rounding. What a column differs from a combination by is a column as good as itself,
and is computed in whole numbers, which do not round.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sparsemodel.checker.proof.arithmetic import TINY, UNIT, Ball, number, up

_NEAR = 1e-3  # sine of an angle
_DIGITS = 100  # of coefficients that are no ratios of small numbers


def independent(columns: list[Any], exact: bool) -> list[Ball]:
    """Return numbers of which ``sum_t B_t' a_t`` is zero exactly where ``sum_t A_t' a_t`` is.

    Columns that are a combination of others are left out.
    """
    b = np.concatenate(columns)
    b = b[:, b.any(axis=0)]
    if _apart(b):
        out = number(b, exact)
    else:  # columns span no more than there are different rows
        rows, places = np.unique(b, axis=0, return_inverse=True)
        out = _numbers(_replaced(rows), len(rows), exact)[places.ravel()]
    ends = np.cumsum([len(c) for c in columns])
    return [out[end - len(c) : end] for end, c in zip(ends, columns, strict=True)]


def _apart(b: Any) -> bool:
    """Return whether no column is near a combination of those before it."""
    units = b / np.abs(b).max(axis=0)
    R: Any = np.linalg.qr(units, mode="r")
    fits = R.shape[0] == R.shape[1] and bool(np.all(np.isfinite(R)))
    return fits and bool(np.all(np.abs(np.diag(R)) > _NEAR * np.linalg.norm(units, axis=0)))


def _replaced(b: Any) -> list[tuple[Any, int]]:
    """Return columns as whole numbers, with how many digits the largest has."""
    kept: list[tuple[Any, int]] = []
    least = int(np.frexp(b[b != 0.0])[1].min())
    for column in b.T:
        if len(kept) == len(b):
            break  # these span everything
        whole = _whole(column, least)
        for _ in range(6):  # coefficients are rounded, and leave some of a combination
            digits = max(abs(entry).bit_length() for entry in whole)
            basis = np.column_stack([*(_floats(*other) for other in kept), _floats(whole, digits)])
            ratios = _combination(basis)
            if ratios is None:
                break
            factor, factors = _factors(ratios)
            deep = max(digits, *(other for _, other in kept))
            whole = whole * (factor << (deep - digits))
            for (other, size), times in zip(kept, factors, strict=True):
                whole = whole - other * (times << (deep - size))
            if not whole.any():
                break
        if whole.any():
            kept.append((whole, max(abs(entry).bit_length() for entry in whole)))
    return kept


def _numbers(kept: list[tuple[Any, int]], rows: int, exact: bool) -> Ball:
    if exact:
        found = [[Fraction(entry, 1 << digits) for entry in whole] for whole, digits in kept]
        return Ball(np.array(found, dtype=object).reshape(len(kept), rows).T)
    mid = np.column_stack([_floats(*column) for column in kept])
    nonzero = np.column_stack([whole != 0 for whole, _ in kept])
    return Ball(mid, np.where(nonzero, up(UNIT * np.abs(mid)) + TINY, 0.0))


def _whole(column: Any, least: int) -> Any:
    """Return a column of floats as whole numbers, in units of ``2**(least - 53)``."""
    mantissa, exponent = np.frexp(column)
    shifts = np.where(column == 0.0, 0, exponent - least)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    each = zip(digits.tolist(), shifts.tolist(), strict=True)
    return np.array([digit << shift for digit, shift in each], dtype=object)


def _floats(whole: Any, digits: int) -> Any:
    """Return whole numbers of so many digits as floats up to one, each rounded once."""
    one = 1 << digits
    return np.array([entry / one for entry in whole])


def _combination(basis: Any) -> Any:
    """Return coefficients of the columns that the last one nearly is a combination of, or None."""
    if basis.shape[1] < 2:
        return None
    ratios = np.linalg.lstsq(basis[:, :-1], basis[:, -1], rcond=None)[0]
    left = np.linalg.norm(basis[:, -1] - basis[:, :-1] @ ratios)
    return ratios if left <= _NEAR * np.linalg.norm(basis[:, -1]) else None


def _factors(ratios: Any) -> tuple[int, list[int]]:
    """Return a whole number, and whole multiples of it that are near ``ratios``."""
    for whole in range(1, 9):
        near = np.rint(ratios * whole)
        if np.all(np.abs(ratios * whole - near) <= 1e-7):
            return whole, [int(ratio) for ratio in near]
    one = 1 << _DIGITS
    return one, [int(Fraction(float(ratio)) * one) for ratio in ratios]
