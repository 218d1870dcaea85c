"""A small problem as one matrix for each loss: what the search for its optimum works on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import DataFit, FloatArray, IntArray
from sparsemodel.losses import SquaredLoss
from sparsemodel.losses.residuals.linear import LinearLoss
from sparsemodel.modelling.expressions.affine import Affine, Piece
from sparsemodel.modelling.expressions.comparisons import (
    Bound,
    CardinalityConstraint,
    Counted,
    LinearConstraint,
    Picked,
    Requirement,
    Semicontinuous,
)
from sparsemodel.modelling.expressions.norms import NormConstraint
from sparsemodel.modelling.expressions.objective_terms import (
    Budget,
    LossTerm,
    Objective,
    Price,
    Ridge,
    counted_in,
)
from sparsemodel.modelling.expressions.symmetric import EdgeCount
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.precision_matrices.terms_and_constraints import EdgePattern
from tests.referee.expressions import Unjudged, Values, dense, present
from tests.referee.objective import constant_of, data_of, prediction_of, ridge_piece
from tests.referee.textbook_losses import Long, bend, long, slope, total

ENTRIES = 20_000
"""Numbers in the matrices of a problem up to which its optimum is looked for."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One loss of ``matrix @ z + offset``; ``shape`` is that of the predictions."""

    loss: DataFit
    matrix: Long
    offset: Long
    shape: tuple[int, ...]
    target: Long
    factors: Long


@final
@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """The whole objective over one vector ``z`` of all unknowns."""

    variables: tuple[Variable, ...]
    basis: FloatArray
    """The variables' entries, one after the other, from ``z``."""
    rows: tuple[Rows, ...]
    ridge: Long
    constant: Long
    prices: tuple[tuple[FloatArray, tuple[IntArray, ...]], ...]
    """What each counted unit costs, and the places of the units in ``z``."""
    budgets: tuple[tuple[FloatArray, float], ...]
    """What each of :attr:`units` takes of a budget, and the budget."""
    units: tuple[IntArray, ...]
    """The counted units, as places in ``z``."""
    limit: int
    """How many of them may be nonzero."""
    parts: tuple[tuple[frozenset[int], int], ...]
    """Further limits: which units, and how many of them may be nonzero."""
    orders: tuple[tuple[int, frozenset[int]], ...]
    """Units that are chosen only beside one of others."""
    free: IntArray
    """Places that are not counted."""
    constraints: tuple[Any, ...]
    """What there is beside cardinalities and patterns."""

    @property
    def size(self) -> int:
        """Return the number of unknowns."""
        return int(self.basis.shape[1])

    @property
    def quadratic(self) -> bool:
        """Return whether every loss is squared or linear."""
        return all(type(r.loss) in (SquaredLoss, LinearLoss) for r in self.rows)

    def value(self, z: Long) -> Any:
        """Return the objective without prices."""
        found = self.constant + np.sum(self.ridge * z * z) / 2
        for r in self.rows:
            u = (r.matrix @ z + r.offset).reshape(r.shape)
            found = found + total(r.loss, u, r.target, r.factors)
        return found

    def gradient(self, z: Long) -> Long:
        """Return the gradient of :meth:`value`."""
        found = self.ridge * z
        for r in self.rows:
            u = (r.matrix @ z + r.offset).reshape(r.shape)
            found = found + r.matrix.T @ slope(r.loss, u, r.target, r.factors).ravel()
        return long(found)

    def hessian(self, z: Long) -> Long | None:
        """Return the Hessian of :meth:`value`; None where a loss has no formula for it."""
        found = np.diag(self.ridge)
        for r in self.rows:
            u = (r.matrix @ z + r.offset).reshape(r.shape)
            weights = bend(r.loss, u, r.target, r.factors)
            if weights is None:
                return None
            found = found + (r.matrix.T * weights.ravel()) @ r.matrix
        return long(found)

    def values(self, z: Any) -> Values:
        """Return the value of each variable at ``z``."""
        x, start, out = self.basis @ np.asarray(z, dtype=np.float64), 0, {}
        for variable in self.variables:
            out[id(variable)] = x[start : start + variable.size].reshape(variable.shape)
            start += variable.size
        return out

    def coordinates(self, values: Values) -> FloatArray:
        """Return the ``z`` of the variables' values."""
        x = np.concatenate([np.ravel(values[id(v)]) for v in self.variables])
        return np.asarray(self.basis.T @ x / self.basis.sum(axis=0))

    @property
    def _fewer(self) -> bool:
        """Whether supports that leave room may be the best."""
        gaps = any(isinstance(c, Semicontinuous) for c in self.constraints)
        return bool(self.prices or self.parts or self.budgets or self.orders or gaps)

    def supports(self, most: int) -> Iterator[IntArray]:
        """Yield the places that may be nonzero together, for at most ``most`` supports."""
        largest = min(self.limit, len(self.units))
        sizes = range(largest + 1) if self._fewer else (largest,)
        every = chain.from_iterable(combinations(range(len(self.units)), size) for size in sizes)
        for chosen in islice(every, most):
            if any(len(among.intersection(chosen)) > allowed for among, allowed in self.parts):
                continue
            picked = list(chosen)
            if any(np.sum(costs[picked]) > most * (1.0 + 1e-12) for costs, most in self.budgets):
                continue
            if any(i in chosen and not some.intersection(chosen) for i, some in self.orders):
                continue
            parts = [self.free, *(self.units[i] for i in chosen)]
            yield np.unique(np.concatenate(parts)).astype(np.intp)

    @property
    def number_of_supports(self) -> float:
        """Return how many supports there are."""
        from math import comb

        largest = min(self.limit, len(self.units))
        sizes = range(largest + 1) if self._fewer else (largest,)
        return float(sum(comb(len(self.units), size) for size in sizes))


def make_dense(
    objective: Objective,
    constraints: tuple[Any, ...],
    variables: tuple[Variable, ...],
    k: int | None = None,
) -> Dense:
    """Return a small problem in this form.

    Raises
    ------
    Unjudged
        When it is too large, or of a kind whose optimum is not looked for here.
    """
    width = sum(v.size for v in variables)
    if width > 80:
        raise Unjudged("too many unknowns for its optimum")
    starts, start = {}, 0
    for variable in variables:
        starts[id(variable)] = np.arange(start, start + variable.size).reshape(variable.shape)
        start += variable.size
    basis = _basis(variables, starts, width)
    rows, constant = [], long(objective.constant)
    ridge, prices = long(np.zeros(width)), []
    for term in objective.terms:
        if isinstance(term, LossTerm):
            rows.append(_rows(term, variables, starts, width, basis))
            constant = constant + constant_of(term, rows[-1].target)
        elif isinstance(term, Ridge):
            ridge += _ridge(term, variables, starts, width)
        elif isinstance(term, Price):
            prices.append(_costs(term, starts, basis))
        else:
            raise Unjudged("matrix terms are enumerated elsewhere")
    spent = [c for c in constraints if isinstance(c, Budget)]
    ordered = [c for c in constraints if isinstance(c, Requirement)]
    others = tuple(c for c in constraints if not isinstance(c, (Budget, Requirement)))
    units, limit, parts, others = _limits(others, starts, basis, k)
    asked = [*prices, *(_costs(term, starts, basis) for c in spent for term in c.terms)]
    counted = [_units(p, starts, basis) for c in (*others, *ordered) for p in counted_in(c)]
    if (asked or counted) and not units:
        some_units = [*(some for _, some in asked), *counted]
        every = {tuple(unit): unit for some in some_units for unit in some}
        units, limit = tuple(every.values()), len(every)
    free = np.setdiff1d(np.arange(basis.shape[1]), np.concatenate([*units, np.empty(0)]))
    return Dense(
        variables,
        basis,
        tuple(rows),
        long(basis.T) @ ridge,
        constant,
        tuple(prices),
        tuple(_budget(c, units, starts, basis) for c in spent),
        units,
        limit,
        parts,
        tuple(order for c in ordered for order in _orders(c, units, starts, basis)),
        free.astype(np.intp),
        others,
    )


def _basis(variables: tuple[Variable, ...], starts: dict[int, Any], width: int) -> FloatArray:
    """Return which entries hang together: the two of a pair of a symmetric matrix."""
    owner = np.arange(width)
    for variable in variables:
        if variable.symmetric:
            place = starts[id(variable)]
            owner[place.ravel()] = np.minimum(place, place.T).ravel()
    distinct = np.unique(owner)
    return np.asarray(owner[:, None] == distinct[None, :], dtype=np.float64)


def _places(piece: Piece, starts: dict[int, Any]) -> Any:
    owner = piece.variable.owner
    place = starts[id(piece.variable)] if owner is None else starts[id(owner)].ravel()
    return place if piece.rows is None else place[piece.rows]


def _linear(affine: Affine, shape: tuple[int, ...], starts: dict[int, Any], width: int) -> Long:
    """Return the matrix that makes an expression of this shape, without its constant."""
    out = long(np.zeros((int(np.prod(shape)), width)))
    for piece in affine.pieces:
        place = _places(piece, starts)
        if piece.design is None:
            one = long(np.zeros((place.size, width)))
            one[np.arange(place.size), place.ravel()] = 1
            made: tuple[int, ...] = place.shape
        else:
            entries = dense(piece.design, max(place.shape[:1], default=1))
            if place.ndim == 2:
                entries = np.kron(entries, long(np.eye(place.shape[1])))
            one = long(np.zeros((len(entries), width)))
            one[:, np.atleast_1d(place.ravel())] = entries
            made = (piece.design.shape[0], *place.shape[1:])
        if piece.right is not None:
            right = long(piece.right).reshape(len(piece.right), -1)
            parted = one.reshape(made[0], -1, width)
            one = long(np.einsum("imw,mq->iqw", parted, right).reshape(-1, width))
            made = (made[0], *piece.right.shape[1:])
        spread = np.broadcast_to(np.arange(len(one)).reshape(made), shape).ravel()
        out += long(piece.factor) * one[spread]
    return out


def _rows(
    term: LossTerm,
    variables: tuple[Variable, ...],
    starts: dict[int, Any],
    width: int,
    basis: FloatArray,
) -> Rows:
    affine = prediction_of(term, variables)
    shape = affine.value_shape()
    if int(np.prod(shape)) * width > ENTRIES:
        raise Unjudged("too many numbers for its optimum")
    offset = long(0.0) if affine.offset is None else long(present(affine.offset))
    target, factors = data_of(term, shape)
    return Rows(
        term.loss,
        _linear(affine, shape, starts, width) @ long(basis),
        long(np.broadcast_to(offset, shape)).ravel(),
        shape,
        target,
        factors,
    )


def _ridge(
    term: Ridge, variables: tuple[Variable, ...], starts: dict[int, Any], width: int
) -> Long:
    piece = ridge_piece(term, variables)
    place = np.atleast_1d(_places(piece, starts))
    weight = long(present(term.weight)) * long(piece.factor) ** 2
    weight = np.broadcast_to(weight, place.shape[:1]).reshape(-1, *[1] * (place.ndim - 1))
    out = long(np.zeros(width))
    out[place] = np.broadcast_to(weight, place.shape)
    return out


def _units(part: Counted, starts: dict[int, Any], basis: FloatArray) -> tuple[IntArray, ...]:
    if not part.plain:
        raise Unjudged("an expression is counted: its optimum is not looked for")
    place = _places(part.expression.pieces[0], starts)
    rows = np.arange(len(place)) if part.groups is None else np.asarray(part.groups)
    found = []
    for label in np.unique(rows):
        entries = np.atleast_1d(place[rows == label]).ravel()
        found.append(np.flatnonzero(basis[entries].any(axis=0)))
    return tuple(found)


def _costs(
    term: Price, starts: dict[int, Any], basis: FloatArray
) -> tuple[FloatArray, tuple[IntArray, ...]]:
    """Return what each unit costs, and the units."""
    units = _units(term.counted, starts, basis)
    return np.broadcast_to(np.asarray(present(term.gamma), dtype=np.float64), len(units)), units


def _budget(
    budget: Budget, units: tuple[IntArray, ...], starts: dict[int, Any], basis: FloatArray
) -> tuple[FloatArray, float]:
    """Return what each of the counted ``units`` takes of a budget, and the budget."""
    costs, number = np.zeros(len(units)), {tuple(unit): i for i, unit in enumerate(units)}
    for term in budget.terms:
        for cost, unit in zip(*_costs(term, starts, basis), strict=True):
            if tuple(unit) not in number:
                raise Unjudged("a budget over what no limit counts: its optimum is not looked for")
            costs[number[tuple(unit)]] += cost
    return costs, float(present(budget.most))


def _orders(
    requirement: Requirement,
    units: tuple[IntArray, ...],
    starts: dict[int, Any],
    basis: FloatArray,
) -> Iterator[tuple[int, frozenset[int]]]:
    """Yield each child that may be missing a parent, with its parents: numbers of ``units``."""
    number = {tuple(unit): i for i, unit in enumerate(units)}

    def numbers(part: Picked) -> list[int | None]:
        """Return the number of each unit, None for one that no limit counts: it is always in."""
        every = _units(part.counted, starts, basis)
        places = range(len(every)) if part.places is None else part.places.tolist()
        return [number.get(tuple(every[i])) for i in places]

    children, sides = numbers(requirement.child), [numbers(p) for p in requirement.parents]
    if None in children:
        raise Unjudged("a child that no limit counts: its optimum is not looked for")
    if requirement.pooled:
        sides = [[parent] for side in sides for parent in side]
    for i in range(max(len(side) for side in (children, *sides))):
        child, *parents = (side[i if len(side) > 1 else 0] for side in (children, *sides))
        if child is not None and None not in parents:
            yield child, frozenset(p for p in parents if p is not None)


def _limits(
    constraints: tuple[Any, ...], starts: dict[int, Any], basis: FloatArray, k: int | None
) -> tuple[tuple[IntArray, ...], int, tuple[tuple[frozenset[int], int], ...], tuple[Any, ...]]:
    """Return units and limit, further limits on some of the units, and the other constraints."""
    limits: list[tuple[tuple[IntArray, ...], int]] = []
    others: list[Any] = []
    for constraint in constraints:
        if isinstance(constraint, CardinalityConstraint):
            found = tuple(u for part in constraint.counted for u in _units(part, starts, basis))
            limits.append((found, int(present(constraint.k)) if k is None else k))
        elif isinstance(constraint, EdgeCount):
            place = starts[id(constraint.expression.pieces[0].variable)]
            pairs = place[np.triu_indices(len(place), 1)]
            edges = tuple(np.flatnonzero(basis[j]) for j in pairs)
            limits.append((edges, int(present(constraint.limit)) // 2 if k is None else k))
        elif isinstance(constraint, (Bound, LinearConstraint, NormConstraint, Semicontinuous)):
            others.append(constraint)
        elif isinstance(constraint, EdgePattern) or type(constraint).__name__:
            raise Unjudged(f"its optimum is not looked for under {type(constraint).__name__}")
    if len(limits) < 2:
        return (*(limits[0] if limits else ((), 0)), (), tuple(others))
    every = {tuple(unit): unit for units, _ in limits for unit in units}
    if sum(map(len, every)) > len({place for unit in every for place in unit}):
        raise Unjudged("units that overlap: its optimum is not looked for")
    number = {key: i for i, key in enumerate(every)}
    parts = tuple(
        (frozenset(number[tuple(unit)] for unit in units), allowed) for units, allowed in limits
    )
    most = min(len(every), sum(allowed for _, allowed in parts))
    return tuple(every.values()), most, parts, tuple(others)
