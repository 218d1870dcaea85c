"""When descents from many supports are compiled, and how rows are fetched for them."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, MissingDependencyError
from sparsemodel.numerics.budget import NUMBA_LOADING, budget, numba_in_time
from sparsemodel.numerics.exchange.hessian_rows import HessianRows

_WORK = 2**15
"""Squared size times columns from which searches of all sizes take longer than loading this."""


def worthwhile(most: int, linear: FloatArray, rows: HessianRows) -> bool:
    """Return whether searches up to ``most`` coordinates are to be made by what is compiled.

    One column of unknowns, exact rows, much work, time to load it, and Numba.
    """
    simple = len(linear) == 1 and rows.exact and most * most * rows.size >= _WORK
    return simple and numba_in_time() and _compiled() is not None


def descend_from(
    rows: HessianRows, linear: FloatArray, guard: float, members: IntArray, limits: FloatArray
) -> FloatArray:
    """Fill supports, ``(R, k)`` with -1 in places to fill, and descend from them, in place.

    Returns what they explain, 0 where fewer than ``k`` coordinates are independent.

    Parameters
    ----------
    guard
        What must be left of the curvature of a column that enters.
    limits
        Gains that are rounding: a share of what the support explains, and of what a removal costs.
    """
    values, place = np.zeros(len(members)), np.zeros(2, dtype=np.intp)
    rows.fetch(np.unique(members[members >= 0]))
    while place[0] < len(members):
        store, slots = rows.held
        _compiled()(store, slots, linear[0], rows.diagonal, guard, limits, members, values, place)
        if place[0] < len(members):
            rows.fetch(place[1:])
    return values


@cache
def _compiled() -> Any:
    """Return the compiled search; None where Numba cannot be imported."""
    try:
        from sparsemodel.numerics.along_k.descents_compiled import descended
    except MissingDependencyError:
        return None
    began = time.perf_counter()
    one, none = np.ones(1), np.zeros(1, dtype=np.intp)
    place = np.zeros(2, dtype=np.intp)
    descended(np.ones((1, 1)), none, one, one, 0.0, np.zeros(2), none[None] - 1, one.copy(), place)
    budget().extend(max(time.perf_counter() - began - NUMBA_LOADING, 0.0))  # once on a machine
    return descended
