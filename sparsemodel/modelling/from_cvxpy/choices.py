"""Choices written with boolean variables: ``cp.abs(w) <= M * z``, ``cp.sum(z) <= k``, prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np

from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.losses.residuals.linear import LinearLoss
from sparsemodel.modelling.expressions.affine import Affine
from sparsemodel.modelling.expressions.cardinality import card, chosen
from sparsemodel.modelling.expressions.comparisons import Requirement, semicontinuous
from sparsemodel.modelling.expressions.foreign import is_cvxpy, value_of
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Objective
from sparsemodel.modelling.expressions.parameters import Quantity
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.from_cvxpy.affine_expressions import affine_of, kind_of, proxy_of, shown
from sparsemodel.modelling.from_cvxpy.goals import BOOLEANS

Row: TypeAlias = tuple[FloatArray, float]
"""``c @ z <= most``."""


@final
@dataclass(frozen=True, slots=True)
class Choices:
    """A declaration without the boolean variables that are understood."""

    objective: Objective
    constraints: list[Any]
    marked: tuple[tuple[Any, Variable], ...] = ()
    """Each such variable with the one whose nonzeros it marks."""


def choices_of(objective: Objective, given: Iterable[Any]) -> Choices:
    """Return the declaration without boolean variables, and what each of these marks.

    ``z`` marks the nonzeros of ``w`` where it bounds both ends of every entry, ``cp.abs(w) <= M *
    z`` or ``w <= M * z`` beside ``w >= -M * z``, ``w >= 0`` or ``w >= m * z``. What is left are
    limits, budgets and prices of ``z`` alone, which say the same of ``sm.chosen(w)``. What is
    written in any other way is left as it is.
    """
    found = Choices(objective, list(_flat(given)))
    booleans = {
        z.id: z
        for item in found.constraints
        if is_cvxpy(item)
        for z in item.variables()
        if z.attributes["boolean"]
    }
    for z in booleans.values():
        read = _read(z, found)
        if read is None:
            _refuse(z, found)
        found = read or found
    return found


def _refuse(z: Any, here: Choices) -> None:
    """Name the first constraint on ``z`` that is not understood, if it is one alone."""
    mine = [c for c in here.constraints if is_cvxpy(c) and any(v is z for v in c.variables())]
    sized = False
    for item in sorted(mine, key=lambda c: -len(c.variables())):  # what z marks comes first
        known, hint = kind_of(item) in ("Inequality", "Equality") and len(item.args) == 2, ""
        if known and len(item.variables()) > 1:
            left, right = item.args
            link = None if kind_of(item) == "Equality" else _link(left, right, z)
            known = link is not None
            sized = sized or (link is not None and "least" in link[1])
            if any(v.attributes["boolean"] and v is not z for v in item.variables()):
                hint = (
                    "It has two booleans, and each is read by itself. For positions of both signs "
                    "write w = u - v with u, v >= 0, a boolean for each of them."
                )
        elif known:
            rows = _rows(item, proxy_of(z))
            known = (
                rows is not None
                and _limits(proxy_of(z), rows, closed=not sized, exact=sized) is not None
            )
        if not known:
            raise ModelError(
                f"The constraint {shown(item)} on the boolean variable {z.name()} is not "
                f"understood. {hint or BOOLEANS}"
            )


def _read(z: Any, here: Choices) -> Choices | None:
    """Return the declaration with ``w`` in the place of ``z``; None where it cannot be."""
    rows: list[Row] = []
    ends: dict[str, FloatArray] = {}
    owner, others = None, list[Any]()
    for item in here.constraints:
        if not is_cvxpy(item) or all(v.id != z.id for v in item.variables()):
            others.append(item)
            continue
        if kind_of(item) not in ("Inequality", "Equality") or len(item.args) != 2:
            return None
        if len(item.variables()) == 1:
            about = _rows(item, proxy_of(z))
            if about is None:
                return None
            rows += about
            continue
        left, right = item.args
        link = None if kind_of(item) == "Equality" else _link(left, right, z)
        if link is None or (owner is not None and owner is not link[0]):
            return None
        owner = link[0]
        for end, size in link[1].items():
            ends[end] = (np.maximum if end == "least" else np.minimum)(ends.get(end, size), size)
    if owner is None or z.ndim != 1 or owner.shape != z.shape:
        return None
    if "lower" not in ends and ("least" in ends or _nonnegative(owner, others)):
        ends["lower"] = np.zeros(z.shape)
    w, paid = proxy_of(owner), _paid(here.objective, proxy_of(z))
    if not {"lower", "upper"} <= ends.keys() or paid is None:
        return None
    objective, prices = paid
    exact = "least" in ends and bool(np.all(ends["least"] > 0.0))
    limits = _limits(w, rows, closed="least" not in ends and not prices.any(), exact=exact)
    if limits is None:
        return None
    if prices.any():
        even = np.all(prices == prices[0])
        objective += float(prices[0]) * card(w) if even else prices @ chosen(w)
    made = [*limits, w <= ends["upper"], w >= -ends["lower"]]
    if "least" in ends:
        made.append(semicontinuous(w, ends["least"], np.maximum(ends["upper"], ends["least"])))
    return Choices(objective, [*others, *made], (*here.marked, (z, w)))


def _rows(constraint: Any, z: Variable) -> list[Row] | None:
    """Return a constraint about ``z`` alone as rows ``c @ z <= most``, two for an equality."""
    left, right = (affine_of(side) for side in constraint.args)
    sizes = [(side.value_shape() or (1,))[0] for side in (left, right)]
    if 1 in sizes and max(sizes) > 1 and not any(p.design for p in (*left.pieces, *right.pieces)):
        every = np.ones((max(sizes), 1))  # one entry beside several
        left = left.__rmatmul__(every) if sizes[0] == 1 and left.pieces else left
        right = right.__rmatmul__(every) if sizes[1] == 1 and right.pieces else right
    expression = left - right
    shape = expression.value_shape()
    found = np.zeros(((shape or (1,))[0], z.size))
    if isinstance(expression.offset, Quantity) or len(shape) > 1 or found.size > 10**7:
        return None
    for i, row in enumerate(found):
        unit = np.zeros(len(found))
        unit[i] = 1.0
        if not _add_to(row, expression, unit):
            return None
    most = -np.broadcast_to(0.0 if expression.offset is None else expression.offset, len(found))
    rows = [(row, float(end)) for row, end in zip(found, most, strict=True)]
    if kind_of(constraint) == "Equality":
        rows += [(-row, -end) for row, end in rows]
    return rows


def _add_to(coefficients: FloatArray, expression: Affine, slope: FloatArray) -> bool:
    """Add those of ``slope @ expression``, which is about one vector; False where unknown."""
    for piece in expression.pieces:
        if isinstance(piece.design, Quantity) or piece.right is not None:
            return False
        if piece.shape != slope.shape and slope.size > 1:
            return False
        here = slope if piece.design is None else piece.design.rmatvec(slope)
        places = slice(None) if piece.rows is None else piece.rows
        coefficients[places] += piece.factor * here
    return True


def _limits(w: Variable, rows: list[Row], *, closed: bool, exact: bool) -> list[Any] | None:
    """Return what rows about ``z`` say of the nonzeros of ``w``; None where it cannot be said.

    ``closed``: ``z`` may be one where ``w`` is zero, at no price. ``exact``: it is one where ``w``
    is not zero, which has a least size then, and nowhere else.
    """
    made: list[Any] = []
    asked: list[tuple[FloatArray, int]] = []
    whole: list[int] = []
    free = np.ones(w.size, dtype=bool)
    """In no limit but those on all."""
    for c, most in rows:
        inside, size = c != 0.0, float(np.abs(c).max(initial=0.0))
        even = bool(np.all(np.abs(c[inside]) == size))
        if np.all(c <= 0.0):  # at least so many
            need = int(np.ceil(-most / size - 1e-9)) if size else 0
            if (not even and most < 0.0) or need > inside.sum() or (not size and most < 0.0):
                return None
            asked += [(inside, need)] if need > 0 else []
        elif np.any(c < 0.0):
            needs = _needs(w, c, most)
            if needs is None:
                return None
            made.append(needs)
        elif most < 0.0:
            return None
        elif c.sum() > most:
            k = int(np.floor(most / size + 1e-9))
            if even and inside.all():
                whole.append(k)
            else:
                free &= ~inside
            if not even:
                made.append(c[inside] @ chosen(w[inside]) <= most)
            else:
                made.append(card(w[inside]) <= k if k else w[inside] == 0.0)
    if exact:
        return [*made, *(card(w[inside]) >= need for inside, need in asked)]
    if asked and not closed:
        return None
    most_in_all = min(whole, default=0)
    asked = [
        (inside, need)
        for inside, need in asked
        if not inside.all() or need > min(most_in_all, np.sum(free))
    ]
    return [*made, *(card(w[inside]) >= need for inside, need in asked)]


def _needs(w: Variable, c: FloatArray, most: float) -> Requirement | None:
    """Return what ``c @ z <= 0`` says of entries that are nonzero only beside others."""
    child, parents = np.flatnonzero(c > 0.0), np.flatnonzero(c < 0.0)
    asked, room = c[child], -c[parents]
    if most == 0.0 and parents.size == 1 and asked.sum() <= room[0]:
        return chosen(w[child]) <= chosen(w[parents])
    if most == 0.0 and child.size == 1 and np.all(room >= asked[0]):
        return chosen(w[child]) <= card(w[parents])
    if most == 0.0 and child.size == 1 and room.sum() == asked[0]:
        return chosen(w[child]) <= chosen(w[parents])  # all of them
    return None


def _paid(objective: Objective, z: Variable) -> tuple[Objective, FloatArray] | None:
    """Return the objective without ``z``, and what each of its entries costs there."""
    prices, constant = np.zeros(z.size), objective.constant
    kept: list[Any] = []
    for term in objective.terms:
        expression = term.prediction if isinstance(term, LossTerm) else term.expression
        pieces = expression.pieces if isinstance(expression, Affine) else ()
        mine = tuple(piece for piece in pieces if piece.variable is z)
        if not mine:
            kept.append(term)
            continue
        if not isinstance(term, LossTerm) or not isinstance(expression, Affine):
            return None
        weights: Any = 1.0 if term.weights is None else term.weights
        target: Any = term.target
        numbers = (target, term.scale, weights, expression.offset)
        if not isinstance(term.loss, LinearLoss) or term.reduction == "mean":
            return None
        if any(isinstance(number, Quantity) for number in numbers):
            return None
        slope = np.asarray(term.scale * target * weights)
        if not _add_to(prices, Affine(mine), slope):
            return None
        others = tuple(piece for piece in pieces if piece.variable is not z)
        if others:
            kept.append(replace(term, prediction=Affine(others, expression.offset)))
        elif expression.offset is not None:
            constant += float(np.sum(slope * expression.offset))
    return None if np.any(prices < 0.0) else (Objective(tuple(kept), constant), prices)


def _link(left: Any, right: Any, z: Any) -> tuple[Any, dict[str, FloatArray]] | None:
    """Return ``w`` and how far its ends may be from zero where ``z`` is one."""
    size, inside = _multiple(right, z), left
    if size is not None and np.all(size >= 0.0):
        if kind_of(inside) == "abs":
            w = inside.args[0]
            return (w, {"upper": size, "lower": size}) if kind_of(w) == "Variable" else None
        if kind_of(inside) == "NegExpression" and kind_of(inside.args[0]) == "Variable":
            return inside.args[0], {"lower": size}
        return (inside, {"upper": size}) if kind_of(inside) == "Variable" else None
    size = _multiple(left, z)  # -M * z <= w, or m * z <= w
    if size is not None and kind_of(right) == "Variable":
        if np.all(size <= 0.0):
            return right, {"lower": -size}
        return (right, {"least": size}) if np.all(size > 0.0) else None
    return None


def _multiple(expression: Any, z: Any) -> FloatArray | None:
    """Return ``M`` of ``M * z``, entry by entry; None for anything else."""
    kind = kind_of(expression)
    if expression is z:
        return np.ones(z.shape)
    if kind == "NegExpression":
        inside = _multiple(expression.args[0], z)
        return None if inside is None else -inside
    if kind in ("multiply", "MulExpression") and len(expression.args) == 2:
        for constant, other in (expression.args, expression.args[::-1]):
            whole = kind == "multiply" or constant.size == 1
            inside = _multiple(other, z) if constant.is_constant() and whole else None
            if inside is not None:
                return np.asarray(inside * np.asarray(value_of(constant), dtype=np.float64))
    return None


def _nonnegative(w: Any, others: list[Any]) -> bool:
    """Return whether ``w`` is declared nonnegative, or bounded by zero as a whole."""
    if w.attributes["nonneg"] or w.attributes["pos"]:
        return True
    return any(
        is_cvxpy(item)
        and kind_of(item) == "Inequality"
        and item.args[1] is w
        and item.args[0].is_constant()
        and bool(np.all(np.asarray(value_of(item.args[0])) >= 0.0))
        for item in others
    )


def _flat(given: Iterable[Any]) -> Iterable[Any]:
    for item in given:
        if isinstance(item, (list, tuple)):
            yield from _flat(item)
        else:
            yield item
