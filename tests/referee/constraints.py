"""The constraints of a declared problem at given values: what is broken, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sparsemodel.modelling.expressions.affine import Affine
from sparsemodel.modelling.expressions.comparisons import (
    Bound,
    CardinalityConstraint,
    LinearConstraint,
    Requirement,
    Semicontinuous,
)
from sparsemodel.modelling.expressions.norms import NormConstraint
from sparsemodel.modelling.expressions.objective_terms import Budget, LossLimit
from sparsemodel.modelling.expressions.symmetric import EdgeCount, EigenvalueBound
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.precision_matrices.terms_and_constraints import EdgePattern
from tests.referee.expressions import (
    EPS64,
    Unjudged,
    Values,
    entries_of,
    evaluate,
    present,
)
from tests.referee.hierarchies import without_parents
from tests.referee.objective import count, objective_at, paid
from tests.referee.textbook_losses import long

BOUNDS = 1e-9
"""Violation of bounds on entries and eigenvalues, relative to their size, that is rounding."""

CONVEX = 2e-6
"""Violation of linear constraints and norms that general convex solvers leave, relative to the
sizes of what is compared."""


def violations(
    constraints: Iterable[Any],
    variables: tuple[Variable, ...],
    values: Values,
    *,
    k: int | None = None,
    slack: float = 1.0,
) -> tuple[list[str], list[str]]:
    """Return what is broken, and which constraints could not be judged.

    Parameters
    ----------
    k
        The limit of every cardinality, in place of what was declared: at a point of a path.
    slack
        What the tolerances are multiplied by.
    """
    broken, unjudged = [], []
    listed = list(constraints)
    for variable in variables:
        value = values[id(variable)]
        if not np.all(np.isfinite(value)):
            return [f"{variable.label} has entries that are not finite"], []
        broken += _attributes(variable, np.asarray(value))
    required = [c for c in listed if isinstance(c, EdgePattern) and c.required]
    for constraint in listed:
        try:
            broken += _broken(constraint, values, required, k, slack)
        except Unjudged as reason:
            unjudged.append(str(reason))
    try:
        broken += without_parents(listed, variables, values, k)
    except Unjudged as reason:
        unjudged.append(str(reason))
    return broken, unjudged


def _broken(
    constraint: Any, values: Values, required: list[Any], k: int | None, slack: float
) -> list[str]:
    if isinstance(constraint, CardinalityConstraint):
        limit = present(constraint.k) if k is None else k
        found = count(constraint, values)
        return [f"{constraint!r}: {found} are not zero, {limit:g} may be"] * (found > limit)
    if isinstance(constraint, LossLimit):
        worth, most = objective_at(constraint.loss, (), values), present(constraint.most)
        without = objective_at(constraint.loss, (), {key: 0.0 * x for key, x in values.items()})
        slack = 1e-9 * abs(most) + 1e-14 * abs(float(without.value))  # what fits leave
        over = float(worth.value - worth.error) > most + slack
        return [f"{constraint!r}: it is {float(worth.value)!r}"] * over
    if isinstance(constraint, Budget):
        most = float(present(constraint.most))
        spent = float(sum(paid(term, values) for term in constraint.terms))
        over = spent > most * (1.0 + 2e-12)  # decimal numbers round when they are added
        return [f"{constraint!r}: the nonzero entries cost {spent:.17g}"] * over
    if isinstance(constraint, Requirement):
        return []  # judged beside the limits
    if isinstance(constraint, Semicontinuous):
        offset = constraint.expression.offset
        less = np.float64(0.0) if offset is None else -np.asarray(offset, dtype=np.float64)
        nonzero = entries_of(constraint.expression.pieces[0], values) != less
        ends = zip((constraint.lower, constraint.upper), (-np.inf, np.inf), strict=True)
        low, high = (np.where(nonzero, end + less, away) for end, away in ends)
        entries = Affine(constraint.expression.pieces)
        return list(_bounds(Bound(entries, low, high), values, slack))
    if isinstance(constraint, EdgeCount):
        return _edges(constraint, values, required, k)
    if isinstance(constraint, EdgePattern):
        return [] if constraint.required else _forbidden(constraint, values)
    if isinstance(constraint, EigenvalueBound):
        return _eigenvalues(constraint, values, slack)
    if isinstance(constraint, Bound):
        return list(_bounds(constraint, values, slack))
    if isinstance(constraint, LinearConstraint):
        return _linear(constraint, values, slack)
    if isinstance(constraint, NormConstraint):
        return _norm(constraint, values, slack)
    raise Unjudged(f"no rule for the constraint {type(constraint).__name__}")


def _attributes(variable: Variable, value: Any) -> list[str]:
    """Return what a variable was declared to be and is not."""
    given = {} if variable.proxied is None else variable.proxied.attributes
    broken = []
    if (variable.symmetric or given.get("symmetric") or given.get("PSD")) and not np.allclose(
        value, value.T, rtol=1e-12, atol=0.0
    ):
        by = float(np.abs(value - value.T).max())
        broken.append(f"{variable.label} was declared symmetric and is not, by {by:.2g}")
    if (variable.nonneg or given.get("nonneg") or given.get("pos")) and np.any(value < 0.0):
        broken.append(f"{variable.label} was declared nonnegative and has {value.min():.3g}")
    if (given.get("nonpos") or given.get("neg")) and np.any(value > 0.0):
        broken.append(f"{variable.label} was declared nonpositive and has {value.max():.3g}")
    if given.get("PSD"):
        least, largest = np.linalg.eigvalsh(value)[[0, -1]]
        if least < -BOUNDS * abs(largest):
            broken.append(f"{variable.label} was declared PSD and has the eigenvalue {least:.3g}")
    return broken


def _bounds(constraint: Bound, values: Values, slack: float) -> Iterator[str]:
    piece = constraint.expression.pieces[0]
    x = entries_of(piece, values)
    for end, sign, word in ((constraint.lower, 1.0, "below"), (constraint.upper, -1.0, "above")):
        if end is None:
            continue
        limit = np.broadcast_to(np.asarray(present(end), dtype=np.float64), x.shape)
        size = np.where(np.isfinite(limit), np.abs(limit), 0.0)
        over = sign * (limit - x) - slack * BOUNDS * size
        if np.any(over > 0.0):
            at = np.unravel_index(int(np.argmax(over)), x.shape) if x.shape else ()
            yield f"{constraint!r}: {float(x[at])!r} lies {word} {float(limit[at])!r}"


def _linear(constraint: LinearConstraint, values: Values, slack: float) -> list[str]:
    found = evaluate(constraint.expression, values)
    over = np.abs(found.value) if constraint.relation == "==" else found.value
    allowed = slack * CONVEX * found.size + found.reach + found.size * EPS64 * 64
    if not np.any(over > allowed):
        return []
    worst = int(np.argmax(np.ravel(over - allowed)))
    by, size = float(np.ravel(over)[worst]), float(np.ravel(found.size)[worst])
    return [f"{constraint!r}: broken by {by:.3g} in row {worst}, whose terms are {size:.3g}"]


def _norm(constraint: NormConstraint, values: Values, slack: float) -> list[str]:
    u = evaluate(constraint.expression, values)
    radius = long(present(constraint.radius))
    if constraint.order == 1:
        size, scale = np.sum(np.abs(u.value)), np.sum(u.size)
    else:
        size, scale = np.sqrt(np.sum(u.value * u.value)), np.sqrt(np.sum(u.size * u.size))
    if size <= radius + slack * CONVEX * np.maximum(radius, 1e-3 * scale):
        return []
    return [f"{constraint!r}: the norm is {float(size):.10g}"]


# ---- matrices --------------------------------------------------------------------------------


def _square(constraint: Any, values: Values) -> Any:
    return np.asarray(values[id(constraint.expression.pieces[0].variable)])


def _edges(constraint: EdgeCount, values: Values, required: list[Any], k: int | None) -> list[str]:
    pieces = constraint.expression.pieces
    nonzero = np.any([np.asarray(values[id(piece.variable)]) != 0.0 for piece in pieces], axis=0)
    np.fill_diagonal(nonzero, False)
    for pattern in required:
        for i, j in pattern.pairs:
            nonzero[i, j] = nonzero[j, i] = False
    found = int(np.count_nonzero(nonzero))
    limit = present(constraint.limit) if k is None else 2 * k
    return [f"{constraint!r}: {found} are not zero, {limit:g} may be"] * (found > limit)


def _forbidden(constraint: EdgePattern, values: Values) -> list[str]:
    matrix = _square(constraint, values)
    found = [pair for pair in constraint.pairs if matrix[pair] != 0.0 or matrix[pair[::-1]] != 0.0]
    return [f"{constraint!r}: the entries at {found} are not zero"] if found else []


def _eigenvalues(constraint: EigenvalueBound, values: Values, slack: float) -> list[str]:
    matrix = _square(constraint, values)
    least, largest = np.linalg.eigvalsh((matrix + matrix.T) / 2.0)[[0, -1]]
    # Eigenvalues come with the rounding of the largest of them.
    room = slack * BOUNDS * max(abs(constraint.bound), abs(largest))
    if constraint.upper and largest > constraint.bound + room:
        return [f"{constraint!r}: the largest eigenvalue is {float(largest)!r}"]
    if not constraint.upper and least < constraint.bound - room:
        return [f"{constraint!r}: the smallest eigenvalue is {float(least)!r}"]
    return []
