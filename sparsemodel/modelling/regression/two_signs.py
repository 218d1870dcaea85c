"""Entries whose sizes are zero or within bounds: differences of two that are not negative."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.modelling.expressions.affine import Affine, Piece
from sparsemodel.modelling.expressions.comparisons import (
    AtLeast,
    CardinalityConstraint,
    Constraint,
    Counted,
    Semicontinuous,
)
from sparsemodel.modelling.expressions.objective_terms import Budget, Objective, Price, counted_in
from sparsemodel.modelling.expressions.variables import Variable

_Parts: TypeAlias = tuple[Variable, Variable]


def without_two_signs(
    objective: Objective, constraints: tuple[Constraint, ...]
) -> tuple[Objective, tuple[Constraint, ...]]:
    r"""Return the declaration with :math:`|e_j| \ge l_j` or :math:`e_j = 0` said of two variables.

    For an expression ``e`` these are ``e == up - down``, both zero or within the bounds, of which
    one alone is nonzero in each entry. Where ``e`` was counted, both are.

    Raises
    ------
    ModelError
        Where the same variable is counted in another way.
    """
    for sized in [c for c in constraints if isinstance(c, Semicontinuous) and c.both_signs]:
        objective, constraints = _split(objective, constraints, sized)
    return objective, constraints


def _split(
    objective: Objective, constraints: tuple[Constraint, ...], sized: Semicontinuous
) -> tuple[Objective, tuple[Constraint, ...]]:
    (piece,) = sized.expression.pieces
    variable, size = piece.variable, piece.row_count
    own = variable.names
    names = None if own is None else [own[j] for j in piece.row_places.tolist()]
    up, down = (
        Variable(
            size,
            name=f"{variable.label} {way}",
            names=None if names is None else [f"{name} {way}" for name in names],
        )
        for way in ("up", "down")
    )
    made: list[Constraint] = [sized.expression == up - down]
    made += [Semicontinuous(one.as_affine(), sized.lower, sized.upper) for one in (up, down)]
    for j in range(size):
        pair = tuple(Counted(one[[j]].as_affine()) for one in (up, down))
        made.append(CardinalityConstraint(pair, 1))
    terms: list[Any] = []
    for term in objective.terms:
        terms += _priced(term, sized, (up, down)) if isinstance(term, Price) else [term]
    for constraint in constraints:
        if constraint is sized:
            continue
        if isinstance(constraint, (CardinalityConstraint, AtLeast)):
            parts = [_counts(part, sized, (up, down)) for part in constraint.counted]
            made.append(replace(constraint, counted=tuple(one for part in parts for one in part)))
        elif isinstance(constraint, Budget):
            priced = [_priced(term, sized, (up, down)) for term in constraint.terms]
            made.append(replace(constraint, terms=tuple(one for term in priced for one in term)))
        else:
            for part in counted_in(constraint):
                _counts(part, sized, None)
            made.append(constraint)
    return Objective(tuple(terms), objective.constant), tuple(made)


def _priced(term: Price, sized: Semicontinuous, parts: _Parts) -> list[Price]:
    return [replace(term, counted=one) for one in _counts(term.counted, sized, parts)]


def _counts(part: Counted, sized: Semicontinuous, parts: _Parts | None) -> list[Counted]:
    """Return what is counted of ``up`` and ``down`` in the place of their difference."""
    variable = sized.expression.pieces[0].variable
    if all(piece.variable is not variable for piece in part.expression.pieces):
        return [part]
    (piece, *others), known = part.expression.pieces, sized.expression.pieces[0].row_places
    rows = piece.row_places
    within = not others and piece.bare and part.groups is None and np.isin(rows, known).all()
    places = np.searchsorted(known, rows)
    if (
        not within
        or parts is None
        or np.any(_offset(part.expression) != piece.factor * _offset(sized.expression)[places])
    ):
        raise ModelError(
            f"{part!r} stands beside {sized!r}, and counts {variable.label} in another way. Count "
            f"that expression or a slice of it, `sm.card({variable.label} - w0) <= k`, or prices "
            "and budgets of it, or leave both_signs=True out."
        )
    return [Counted(Affine((Piece(one, places, None),))) for one in parts]


def _offset(expression: Affine) -> FloatArray:
    offset: Any = 0.0 if expression.offset is None else expression.offset
    return np.broadcast_to(np.asarray(offset, dtype=np.float64), expression.value_shape())
