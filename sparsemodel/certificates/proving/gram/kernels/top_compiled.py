"""What the searches of all forms compile, with Numba where it can be imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemodel import loading
from sparsemodel.interfaces import MissingDependencyError


def compiled(function: Callable[..., Any]) -> Any:
    """Return a function compiled, or itself where Numba cannot be imported."""
    try:
        numba = loading.numba()
    except MissingDependencyError:
        return function
    return numba.njit(cache=True, error_model="numpy")(function)


@compiled
def filled(values, costs, k):  # type: ignore[no-untyped-def]
    """Return the most that shares of the values give whose costs add up to ``k``, and the value per
    cost of the last one (0 where all of them have room)."""
    worth = np.empty(values.size)
    for i in range(values.size):
        worth[i] = values[i] / costs[i] if costs[i] > 0.0 else np.inf
    total = 0.0
    for i in np.argsort(-worth):
        if not costs[i] <= k:
            return total + max(k, 0.0) * worth[i], worth[i]
        total += values[i]
        k -= costs[i]
    return total, 0.0


@compiled
def top(values, k):  # type: ignore[no-untyped-def]
    """Return the sum of the ``k`` largest values and the least of them; reorders ``values``."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    total, least = 0.0, np.inf
    for i in range(min(k, values.size)):
        total += values[i]
        least = min(least, values[i])
    return total, least
