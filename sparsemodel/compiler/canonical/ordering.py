"""What is nonzero only beside something else, as requirements of units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemodel.compiler.canonical.declaration import CountedSpec, Declaration
from sparsemodel.interfaces import IntArray, ModelError, Order


def order_of(
    declaration: Declaration, numbers: Callable[[CountedSpec], IntArray], units: int
) -> Order | None:
    """Return the requirements of a declaration; None where there are none.

    Parameters
    ----------
    numbers
        Gives the units of what is counted, -1 for what is in no limit and so always in.
    units
        How many units there are.

    Raises
    ------
    ModelError
        When units require each other, so that none of them can be the first.
    """
    child, parents = [], []
    for spec in declaration.orders:
        own, *rest = (
            numbers(part) if places is None else numbers(part)[places]
            for part, places in (spec.child, *spec.parents)
        )
        if spec.pooled:
            rest = list(np.concatenate(rest)[:, None])
        sides = np.broadcast_arrays(own, *rest)
        for one, *any_of in zip(*(side.tolist() for side in sides), strict=True):
            if one != -1 and one not in any_of and -1 not in any_of:  # else it asks for nothing
                child.append(one)
                parents.append(sorted(set(any_of)))
    if not child:
        return None
    most = max(map(len, parents))
    padded = [[*row, *[-2] * (most - len(row))] for row in parents]
    rows = np.unique(np.column_stack([child, padded]), axis=0)
    order = Order(rows[:, 0], rows[:, 1:])
    _refuse_circles(order, units, declaration)
    return order


def _refuse_circles(order: Order, units: int, declaration: Declaration) -> None:
    """Raise an error where units cannot come in one after the other."""
    inside = np.zeros(units, dtype=bool)
    while True:
        free = order.addable(np.flatnonzero(inside), units)
        if not np.any(free & ~inside):
            break
        inside |= free
    if not inside.all():
        label = declaration.variables[declaration.orders[0].child[0].variable].label
        raise ModelError(
            f"{units - int(inside.sum())} entries of {label} require each other in a circle. "
            "Declare entries that are selected together as one group, "
            "`sm.card(w, groups=labels) <= k` with the same label for all of them."
        )
