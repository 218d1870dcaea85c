"""Turn the language's constraints into the compiler's records, with present values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from sparsemodel.compiler import Block, BoundSpec, CardSpec, CountedSpec, LinearSpec, NormSpec
from sparsemodel.interfaces import DataError, FloatArray, ModelError
from sparsemodel.modelling.expressions.affine import Piece
from sparsemodel.modelling.expressions.comparisons import (
    Bound,
    CardinalityConstraint,
    Counted,
    LinearConstraint,
)
from sparsemodel.modelling.expressions.norms import NormConstraint
from sparsemodel.modelling.expressions.objective_terms import Price
from sparsemodel.modelling.expressions.parameters import as_float, resolve
from sparsemodel.modelling.expressions.values import cardinality_bound, real_number

Numbers: TypeAlias = dict[int, int]
"""The position of each variable, by identity."""


def card_spec(constraint: CardinalityConstraint, number: Numbers) -> CardSpec:
    """Return ``card(...) <= k``."""
    k = cardinality_bound(resolve(constraint.k, "The k of card(...) <= k"))
    return CardSpec(tuple(_counted(part, number) for part in constraint.counted), k)


def price_spec(term: Price, number: Numbers) -> CardSpec:
    """Return ``gamma * card(...)``."""
    value = as_float(resolve(term.gamma, "The price of card"))
    gamma = real_number(value, where="The price of card", minimum=0.0)
    return CardSpec((_counted(term.counted, number),), None, gamma)


def _counted(part: Counted, number: Numbers) -> CountedSpec:
    piece = part.expression.pieces[0]
    return CountedSpec(number[id(piece.variable)], piece.rows, part.groups)


def bound_spec(constraint: Bound, number: Numbers) -> BoundSpec:
    """Return ``lower <= w <= upper``."""
    piece = constraint.expression.pieces[0]
    ends = [
        None if end is None else as_float(resolve(end, "A bound"))
        for end in (constraint.lower, constraint.upper)
    ]
    return BoundSpec(number[id(piece.variable)], piece.rows, *ends)


def norm_spec(constraint: NormConstraint, number: Numbers) -> NormSpec:
    """Return ``norm(w - center) <= radius``, for a factor in front of ``w`` of one."""
    piece, offset = constraint.expression.pieces[0], constraint.expression.offset
    value = as_float(resolve(constraint.radius, "The bound on norm(...)"))
    radius = real_number(value, where="The bound on norm(...)", minimum=0.0)
    center = None
    if offset is not None:
        numbers = as_float(resolve(offset, "The centre of norm(...)"))
        shape = piece.shape if np.ndim(numbers) == 0 or np.shape(numbers) == piece.shape else None
        if shape is None:
            raise DataError(
                f"norm: a constant of shape {np.shape(numbers)} does not fit {piece.shape}."
            )
        center = np.broadcast_to(-numbers / piece.factor, shape)
    factor = abs(piece.factor)
    if factor == 0.0:
        raise ModelError("norm(0 * w) constrains nothing.")
    return NormSpec(
        number[id(piece.variable)], piece.rows, constraint.order, radius / factor, center
    )


def linear_spec(
    constraint: LinearConstraint,
    number: Numbers,
    blocks: Callable[[tuple[Piece, ...], Numbers], tuple[Block, ...]],
) -> LinearSpec:
    """Return ``sum of blocks <= d`` or ``== d``."""
    expression = constraint.expression
    shape = expression.value_shape()
    if len(shape) > 1:
        raise ModelError(
            f"The linear constraint {constraint!r} on a matrix variable is not understood; "
            "constrain its entries (`W >= 0`), or write it for vector variables."
        )
    offset: Any = resolve(expression.offset, "The right-hand side of a linear constraint")
    rows = shape[0] if shape else 1
    upper: FloatArray = np.zeros(rows)
    if offset is not None:
        upper = upper - as_float(offset)
    lower = upper if constraint.relation == "==" else np.full(rows, -np.inf)
    return LinearSpec(blocks(expression.pieces, number), lower, upper)


__all__ = ["bound_spec", "card_spec", "linear_spec", "norm_spec", "price_spec"]
