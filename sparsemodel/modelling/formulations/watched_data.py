"""Notice data that were changed in place after they were compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.sparse import SparseDesign
from sparsemodel.interfaces import DataError
from sparsemodel.modelling.declared import Reading
from sparsemodel.modelling.expressions.affine import Affine
from sparsemodel.modelling.expressions.objective_terms import FormTerm, LossTerm

_SMALL = 2**16
"""Numbers of an array up to which every one is compared (0.5 MB): what is computed of them may
be a copy."""
_MANY = 4096
"""Numbers of a larger one that are compared."""


class Watched(NamedTuple):
    """An array of the user's, and some of its numbers as they were."""

    what: str
    array: NDArray[Any]
    numbers: NDArray[Any]


def watched(declared: Reading) -> tuple[Watched, ...]:
    """Return the arrays that a declaration refers to, with what they hold now."""
    held: list[tuple[str, Any]] = []
    for term in declared.goal.objective.terms:
        if isinstance(term, LossTerm):
            expression = term.prediction
            pieces = expression.pieces if isinstance(expression, Affine) else ()
            offset = expression.offset if isinstance(expression, Affine) else None
            held += [("target", term.target), ("offset", offset)]
            held += [("matrix", piece.design) for piece in pieces]
        elif isinstance(term, FormTerm):  # a matrix S, for instance
            held += vars(term).items()
    return tuple(
        Watched(what, array, _some(array))
        for what, one in held
        if (array := _array(one)) is not None
    )


def check_unchanged(data: tuple[Watched, ...]) -> None:
    """Refuse data that hold other numbers than when they were compiled.

    Raises
    ------
    DataError
        What was computed of the old numbers is kept and would be mixed with the new ones.
    """
    for what, array, numbers in data:
        if not np.array_equal(_some(array), numbers, equal_nan=array.dtype.kind == "f"):
            raise DataError(
                f"The {what} of this problem (shape {array.shape}) was changed in place after the "
                "problem was compiled, and what was computed of the old numbers is kept. Declare "
                "the problem again with the new data; for a target or an offset that changes "
                "often, write sm.Parameter(n) and set its value."
            )


def _array(held: Any) -> NDArray[Any] | None:
    if isinstance(held, DenseDesign):
        return held.array
    if isinstance(held, SparseDesign):
        entries: NDArray[Any] = held.array.data
        return entries
    return held if isinstance(held, np.ndarray) else None


def _some(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers from all over an array, copied: 64 x 64 of a large matrix."""
    if array.size <= _SMALL:
        return array.copy()
    side = int(_MANY ** (1 / max(1, array.ndim)))
    return array[tuple(slice(None, None, -(-max(1, m) // side)) for m in array.shape)].copy()
