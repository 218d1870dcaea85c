"""Variables that stand for an expression of others: ``d == D @ w``, with ``d`` in no loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np

from sparsemodel.interfaces import FloatArray
from sparsemodel.modelling.expressions.affine import Affine, Piece
from sparsemodel.modelling.expressions.comparisons import (
    Bound,
    CardinalityConstraint,
    Constraint,
    Counted,
    LinearConstraint,
    Requirement,
    compare,
)
from sparsemodel.modelling.expressions.norms import NormConstraint, norm
from sparsemodel.modelling.expressions.objective_terms import (
    Budget,
    LossTerm,
    Objective,
    Price,
    Ridge,
    counted_in,
)
from sparsemodel.modelling.expressions.parameters import Quantity
from sparsemodel.modelling.expressions.variables import Variable

Definitions: TypeAlias = tuple[tuple[Variable, Affine], ...]
"""Each such variable with the expression that it stands for."""


@final
@dataclass(frozen=True, slots=True)
class Elimination:
    """A declaration without the variables that stand for expressions."""

    objective: Objective
    constraints: tuple[Constraint, ...]
    definitions: Definitions


def without_defined_variables(
    objective: Objective, constraints: tuple[Constraint, ...]
) -> Elimination:
    """Write expressions in the place of variables that an equality makes them stand for.

    A variable stands for an expression where it is alone, whole and a vector on one side of an
    equality, and only counted or bounded as a whole otherwise; or bounded, and as a whole in losses
    and ridges, as the residual ``r == A @ w - b``. Everything else stays as it was declared.
    """
    found = Elimination(objective, constraints, ())
    for constraint in constraints:
        if isinstance(constraint, LinearConstraint) and constraint.relation == "==":
            for piece in constraint.expression.pieces:
                tried = _eliminated(found, constraint, piece)
                if tried is not None:
                    found = tried
                    break
    return found


def _eliminated(here: Elimination, equality: LinearConstraint, piece: Piece) -> Elimination | None:
    """Return the declaration with the variable of ``piece`` replaced; None where it cannot be."""
    variable, expression = piece.variable, equality.expression
    others = tuple(p for p in expression.pieces if p is not piece)
    alone = not any(p.variable is variable for p in others) and others
    whole = piece.bare and piece.rows is None and len(variable.shape) == 1 and piece.factor
    if not alone or not whole or variable.shape != expression.value_shape():
        return None
    minimised = any(_mentions(term, variable) for term in here.objective.terms)
    parts = [t.counted for t in here.objective.terms if isinstance(t, Price)]
    parts += [part for constraint in here.constraints for part in counted_in(constraint)]
    counts = any(p.variable is variable for part in parts for p in part.expression.pieces)
    if variable.owner is not None or (minimised and counts):
        return None
    meaning = Affine(others, expression.offset).times(-1.0 / piece.factor)
    constraints: list[Constraint] = []
    for constraint in here.constraints:
        if constraint is equality:
            continue
        rewritten = _rewritten(constraint, variable, meaning)
        if rewritten is None:
            return None
        constraints += rewritten
    terms: list[Any] = []
    for term in here.objective.terms:
        if isinstance(term, Price):
            counted = _meant(term.counted, variable, meaning)
            if counted is None:
                return None
            term = replace(term, counted=counted)
        elif _mentions(term, variable):
            written = _substituted(term, variable, meaning)
            if written is None:
                return None
            term = written
        terms.append(term)
    return Elimination(
        Objective(tuple(terms), here.objective.constant),
        tuple(constraints),
        (*here.definitions, (variable, meaning)),
    )


def _mentions(term: Any, variable: Variable) -> bool:
    """Return whether a loss or a ridge is about a variable, short forms included."""
    if isinstance(term, Price):
        return False
    expression = term.prediction if isinstance(term, LossTerm) else term.expression
    if not isinstance(expression, Affine):
        return isinstance(term, (LossTerm, Ridge))  # a short form means any variable
    return any(piece.variable is variable for piece in expression.pieces)


def _substituted(term: Any, variable: Variable, meaning: Affine) -> LossTerm | None:
    """Return a loss or a ridge of what the variable stands for; None where it cannot be written."""
    if isinstance(term, Ridge) and isinstance(term.expression, Affine):
        (piece,) = term.expression.pieces
        if piece.rows is not None or not isinstance(term.weight, float):
            return None
        ((squares,), weight) = (norm(meaning) ** 2).terms, 0.5 * term.weight * piece.factor**2
        return squares.scaled(weight) if isinstance(squares, LossTerm) else None
    if not isinstance(term, LossTerm) or not isinstance(term.prediction, Affine):
        return None
    prediction = _written(term.prediction, variable, meaning)
    return None if prediction is None else replace(term, prediction=prediction)


def _written(expression: Affine, variable: Variable, meaning: Affine) -> Affine | None:
    """Return an expression with ``meaning`` for a variable; None where it takes a product."""
    kept = tuple(p for p in expression.pieces if p.variable is not variable)
    found = Affine(kept, expression.offset)
    for piece in expression.pieces:
        if piece.variable is not variable:
            continue
        if piece.bare and piece.rows is None:
            found = found.plus(meaning.times(piece.factor))
            continue
        entries = all(part.bare and part.rows is None for part in meaning.pieces)
        offset, design = meaning.offset, piece.design
        if not entries or piece.right is not None or isinstance(offset, Quantity):
            return None
        moved: Any = None
        if offset is not None and np.any(offset):
            if isinstance(design, Quantity):
                return None
            moved = np.broadcast_to(offset, variable.shape)
            moved = moved if piece.rows is None else moved[piece.rows]
            moved = piece.factor * (moved if design is None else design.matvec(moved))
        parts = [
            replace(piece, variable=part.variable, factor=piece.factor * part.factor)
            for part in meaning.pieces
        ]
        found = found.plus(Affine(tuple(parts), moved))
    return found


def _rewritten(
    constraint: Constraint, variable: Variable, meaning: Affine
) -> tuple[Constraint, ...] | None:
    """Return a constraint on what the variable stands for; None where it cannot be written."""
    if isinstance(constraint, CardinalityConstraint):
        parts = [_meant(part, variable, meaning) for part in constraint.counted]
        kept = tuple(part for part in parts if part is not None)
        return (replace(constraint, counted=kept),) if len(kept) == len(parts) else None
    if isinstance(constraint, Budget):
        terms = [(t, _meant(t.counted, variable, meaning)) for t in constraint.terms]
        spent = tuple(replace(t, counted=part) for t, part in terms if part is not None)
        return (replace(constraint, terms=spent),) if len(spent) == len(terms) else None
    expression = getattr(constraint, "expression", None)
    pieces = expression.pieces if isinstance(expression, Affine) else ()
    if isinstance(constraint, Requirement):
        pieces = tuple(p for part in counted_in(constraint) for p in part.expression.pieces)
    if not any(piece.variable is variable for piece in pieces):
        return (constraint,)
    if not isinstance(constraint, (Bound, LinearConstraint, NormConstraint)):
        return None
    written = _written(constraint.expression, variable, meaning)
    if written is None:
        return None
    if not isinstance(constraint, Bound):
        return (replace(constraint, expression=written),)
    made = []
    if constraint.lower is not None:
        made.append(compare(written, ">=", constraint.lower))
    if constraint.upper is not None:
        made.append(compare(written, "<=", constraint.upper))
    return tuple(made)


def _meant(part: Counted, variable: Variable, meaning: Affine) -> Counted | None:
    pieces = part.expression.pieces
    if not any(piece.variable is variable for piece in pieces):
        return part
    if not part.plain or pieces[0].rows is not None:
        return None
    return Counted(meaning, part.groups)


def value_of_definition(meaning: Affine) -> FloatArray:
    """Return an expression at the values of its variables; rounding next to zero is zero."""
    parts: list[Any] = [piece.value for piece in meaning.pieces]
    if meaning.offset is not None:
        parts.append(Affine((), meaning.offset).value)
    total = np.asarray(meaning.value)
    largest = np.max(sum(map(np.abs, parts)), initial=0.0)
    return np.asarray(np.where(np.abs(total) <= 1e-12 * largest, 0.0, total))
