"""Turn the language's constraints into the compiler's records, with present values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemodel.compiler.canonical.declaration import (
    BoundSpec,
    CardSpec,
    CountedSpec,
    ImageSpec,
    LeastSpec,
    LinearSpec,
    NormSpec,
    OrderSpec,
    SpectrumSpec,
)
from sparsemodel.interfaces import DataError, FloatArray, InfeasibleError, IntArray, ModelError
from sparsemodel.interfaces.numeric import real_number
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
from sparsemodel.modelling.expressions.objective_terms import Budget, Price
from sparsemodel.modelling.expressions.parameters import as_float, resolve
from sparsemodel.modelling.expressions.symmetric import EdgeCount, EigenvalueBound
from sparsemodel.modelling.expressions.values import cardinality_bound, checked_prices
from sparsemodel.modelling.precision_matrices.terms_and_constraints import EdgePattern
from sparsemodel.modelling.regression.coordinate_map import CoordinateMap


def card_spec(constraint: CardinalityConstraint, coordinates: CoordinateMap) -> CardSpec:
    """Return ``card(...) <= k``."""
    k = cardinality_bound(resolve(constraint.k, "The k of card(...) <= k"))
    return CardSpec(tuple(_counted(part, coordinates) for part in constraint.counted), k)


def edge_spec(
    constraint: EdgeCount, patterns: Sequence[EdgePattern], coordinates: CoordinateMap
) -> CardSpec:
    """Return ``card(offdiag(W)) <= k``, which does not count what is required."""
    if len(constraint.counted.matrices) > 1:
        raise ModelError(
            f"{constraint!r} counts one pattern of several matrices, which precision matrices may "
            "have (sm.gaussian_nll); with other losses give each matrix a limit of its own."
        )
    piece = constraint.expression.pieces[0]
    off = ~np.eye(piece.shape[0], dtype=bool)
    for pattern in patterns:
        if pattern.required and pattern.expression.pieces[0].variable is piece.variable:
            rows, columns = np.transpose(pattern.pairs)
            off[rows, columns] = off[columns, rows] = False
    k = cardinality_bound(resolve(constraint.limit, "The k of card(...) <= k"))
    return CardSpec((CountedSpec(coordinates.of(piece)[0], np.flatnonzero(off)),), k)


def forbidden_spec(pattern: EdgePattern, coordinates: CoordinateMap) -> BoundSpec:
    """Return bounds of zero for entries above the diagonal."""
    piece = pattern.expression.pieces[0]
    rows, columns = np.transpose(pattern.pairs)
    return BoundSpec(coordinates.of(piece)[0], rows * piece.shape[1] + columns, 0.0, 0.0)


def price_spec(term: Price, coordinates: CoordinateMap) -> CardSpec:
    """Return ``gamma * card(...)`` or ``costs @ chosen(...)``."""
    return CardSpec((_counted(term.counted, coordinates),), None, (_prices(term),))


def budget_spec(constraint: Budget, coordinates: CoordinateMap) -> CardSpec:
    """Return ``costs @ chosen(...) + ... <= most``."""
    parts = tuple(_counted(term.counted, coordinates) for term in constraint.terms)
    value = as_float(resolve(constraint.most, "The budget of chosen(...)"))
    most = real_number(value, where="The budget of chosen(...)", minimum=0.0)
    return CardSpec(parts, None, tuple(map(_prices, constraint.terms)), most)


def with_orders(
    cards: tuple[CardSpec, ...], constraints: list[Requirement], coordinates: CoordinateMap
) -> tuple[tuple[CardSpec, ...], tuple[OrderSpec, ...]]:
    """Return what is counted together with children, and what each of these needs.

    Parents that no limit counts are always in, unless there is no other limit. Entries that are
    whole groups of a limit are meant as these: ``w["a:b"]`` are all columns of a term.
    """
    orders, sides = [], slice(1 if cards else None)
    for constraint in constraints:
        parts = (constraint.child, *constraint.parents)
        sized = [(_counted(part.counted, coordinates), part.places) for part in parts]
        child, *parents = _in_groups(sized, parts, cards, pooled=constraint.pooled)
        orders.append(OrderSpec(child, tuple(parents), constraint.pooled))
        for part, (spec, picked) in list(zip(parts, (child, *parents), strict=True))[sides]:
            some = _some(spec, picked, part.counted.size)
            cards = (*cards, CardSpec((some,), None, (0.0,)))
    return cards, tuple(orders)


_Part = tuple[CountedSpec, IntArray | None]


def _in_groups(
    sides: list[_Part], parts: Sequence[Picked], cards: Sequence[CardSpec], *, pooled: bool
) -> list[_Part]:
    """Return the sides of a hierarchy as groups, where all are whole groups of one limit each."""
    grouped = [one for card in cards for one in card.counted if one.groups is not None]
    found: list[tuple[CountedSpec, IntArray]] = []
    for (spec, picked), part in zip(sides, parts, strict=True):
        mine = np.arange(part.counted.size) if spec.rows is None else spec.rows
        mine = mine if picked is None else mine[picked]
        pairs = (_codes(mine, other) for other in grouped if other.variable == spec.variable)
        one = next((pair for pair in pairs if pair is not None), None)
        if spec.groups is not None or one is None:
            return sides
        found.append(one)
    if pooled:
        return [(spec, np.unique(codes)) for spec, codes in found]
    # Columns of a term have the same parents: one of each pair of groups is enough.
    beside = np.unique(np.stack(np.broadcast_arrays(*(codes for _, codes in found))), axis=1)
    return [(spec, row) for (spec, _), row in zip(found, beside, strict=True)]


def _codes(rows: IntArray, counted: CountedSpec) -> tuple[CountedSpec, IntArray] | None:
    """Return the group of each row; None where they are not whole groups."""
    groups: IntArray = np.asarray(counted.groups)
    own = np.arange(groups.size) if counted.rows is None else counted.rows
    if not np.isin(rows, own).all():
        return None
    order = np.argsort(own)
    codes = groups[order[np.searchsorted(own, rows, sorter=order)]]
    whole = np.isin(own[np.isin(groups, codes)], rows).all()
    return (counted, codes) if whole else None


def _some(counted: CountedSpec, picked: IntArray | None, size: int) -> CountedSpec:
    """Return those units that are ``picked``: the others need not be counted."""
    if picked is None:
        return counted
    labels = np.arange(size) if counted.groups is None else counted.groups
    on = np.flatnonzero(np.isin(labels, picked))
    groups = None if counted.groups is None else np.unique(labels[on], return_inverse=True)[1]
    return CountedSpec(counted.variable, on if counted.rows is None else counted.rows[on], groups)


def _prices(term: Price) -> float | FloatArray:
    return checked_prices(resolve(term.gamma, "The price of card"), term.counted.size)


def _counted(part: Counted, coordinates: CoordinateMap) -> CountedSpec:
    piece = part.expression.pieces[0]
    if part.plain and not coordinates.counts_expressions(piece):
        return CountedSpec(*coordinates.of(piece), groups=coordinates.labels(part.groups, piece))
    groups = coordinates.labels(part.groups, piece) if part.plain else part.groups
    return CountedSpec(*coordinates.changed(part.expression), groups)


def bound_spec(constraint: Bound, coordinates: CoordinateMap) -> BoundSpec:
    """Return ``lower <= w <= upper``."""
    piece = constraint.expression.pieces[0]
    ends = [
        None if end is None else as_float(resolve(end, "A bound"))
        for end in (constraint.lower, constraint.upper)
    ]
    return BoundSpec(*coordinates.of(piece), *(coordinates.flat(end, piece) for end in ends))


def least_specs(
    constraint: Semicontinuous, coordinates: CoordinateMap
) -> tuple[CardSpec, BoundSpec, LeastSpec]:
    """Return what is counted, the bounds with zero between them, and how far from zero it is."""
    piece = constraint.expression.pieces[0]
    variable, rows = coordinates.of(piece)
    lower, upper = np.minimum(constraint.lower, 0.0), np.maximum(constraint.upper, 0.0)
    places, offset = rows, constraint.expression.offset
    if coordinates.counts_expressions(piece):
        variable, places = coordinates.changed(constraint.expression)
        if coordinates.changes[variable].back is not None:
            raise ModelError(
                f"{constraint!r} stands beside a count of an expression of the same variable, and "
                "it is its entries that are zero or away from it. Keep one of the two."
            )
        shift = 0.0 if offset is None else offset
        lower, upper = lower - shift, upper - shift  # of the entries themselves
    least = np.minimum(np.abs(constraint.lower), np.abs(constraint.upper))
    return (
        CardSpec((CountedSpec(variable, places),), None, (0.0,)),
        BoundSpec(variable, rows, lower, upper),
        LeastSpec(variable, places, least),
    )


def image_spec(constraint: NormConstraint, coordinates: CoordinateMap) -> ImageSpec:
    """Return ``norm(A @ w + c) <= radius``."""
    expression = constraint.expression
    shape = expression.value_shape() or (1,)
    value = as_float(resolve(constraint.radius, "The bound on norm(...)"))
    radius = real_number(value, where="The bound on norm(...)", minimum=0.0)
    offset = resolve(expression.offset, "The constant in norm(...)")
    shift = np.zeros(shape) if offset is None else np.broadcast_to(as_float(offset), shape)
    blocks = coordinates.blocks(expression.pieces, shape)
    return ImageSpec(blocks, np.asarray(shift, dtype=np.float64), constraint.order, radius)


def norm_spec(constraint: NormConstraint, coordinates: CoordinateMap) -> NormSpec:
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
    center = coordinates.flat(center, piece)
    variable, rows = coordinates.of(piece)
    return NormSpec(variable, rows, constraint.order, radius / factor, center)


def linear_spec(constraint: LinearConstraint, coordinates: CoordinateMap) -> LinearSpec:
    """Return ``sum of blocks <= d`` or ``== d``."""
    expression = constraint.expression
    shape = expression.value_shape()
    offset: Any = resolve(expression.offset, "The right-hand side of a linear constraint")
    rows = int(np.prod(shape))
    upper: FloatArray = np.zeros(rows)
    if offset is not None:
        upper = upper - np.broadcast_to(as_float(offset), shape or (1,)).ravel()
    lower = upper if constraint.relation == "==" else np.full(rows, -np.inf)
    return LinearSpec(coordinates.blocks(expression.pieces, shape), lower, upper)


def spectrum_specs(
    constraints: Sequence[EigenvalueBound], coordinates: CoordinateMap
) -> list[SpectrumSpec]:
    """Return the interval of the eigenvalues of each variable.

    Raises
    ------
    InfeasibleError
        When it is empty.
    """
    spectra = []
    for variable in dict.fromkeys(c.expression.pieces[0].variable for c in constraints):
        own = [c for c in constraints if c.expression.pieces[0].variable is variable]
        lower = max((c.bound for c in own if not c.upper), default=-np.inf)
        upper = min((c.bound for c in own if c.upper), default=np.inf)
        if not lower <= upper or np.inf in (lower, -upper):
            raise InfeasibleError(
                f"No matrix has all eigenvalues at least {lower:g} and at most {upper:g}: raise "
                f"the bound `{variable.label} << {upper:g}`, or lower `{variable.label} >> ...`."
            )
        number = coordinates.of(own[0].expression.pieces[0])[0]
        spectra.append(SpectrumSpec(number, lower, upper))
    return spectra


def diagonal_orders(spectra: Sequence[SpectrumSpec], coordinates: CoordinateMap) -> list[OrderSpec]:
    """Return that entries of positive semidefinite matrices are nonzero beside two of the diagonal.

    With a larger lower bound those of the diagonal are always in.
    """
    orders = []
    for spec in spectra:
        p = coordinates.height(spec.variable)
        i, j = np.triu_indices(p, 1)
        child = CountedSpec(spec.variable, i * p + j)
        for k in (i, j) if spec.lower == 0.0 else ():
            diagonal = CountedSpec(spec.variable, np.arange(p) * (p + 1))
            orders.append(OrderSpec((child, None), ((diagonal, k),), pooled=False))
    return orders
