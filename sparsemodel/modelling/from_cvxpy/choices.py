"""Choices written with boolean variables: ``cp.abs(w) <= M * z``, ``cp.sum(z) <= k``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sparsemodel.interfaces import FloatArray
from sparsemodel.modelling.expressions.cardinality import card
from sparsemodel.modelling.expressions.comparisons import Constraint
from sparsemodel.modelling.expressions.foreign import is_cvxpy, value_of
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.from_cvxpy.affine_expressions import kind_of, proxy_of


def choices_of(given: Iterable[Any]) -> tuple[list[Any], list[tuple[Any, Variable]]]:
    """Return the constraints without boolean variables, and what each of these marks.

    ``z`` marks the nonzeros of ``w`` where it bounds both ends of every entry, ``cp.abs(w) <= M *
    z`` or ``w <= M * z`` beside ``w >= -M * z`` or ``w >= 0``, and is only summed up otherwise.
    Then ``cp.sum(z) <= k`` says the same as ``sm.card(w) <= k``, and the others as bounds. What is
    written in any other way is left as it is.
    """
    items = list(_flat(given))
    booleans = {
        z.id: z
        for item in items
        if is_cvxpy(item)
        for z in item.variables()
        if z.attributes["boolean"]
    }
    found: list[tuple[Any, Variable]] = []
    for z in booleans.values():
        about, others = list[Any](), list[Any]()
        for item in items:
            mentions = is_cvxpy(item) and any(v.id == z.id for v in item.variables())
            (about if mentions else others).append(item)
        read = _read(z, about, others)
        if read is not None:
            made, w = read
            items = [*others, *made]
            found.append((z, w))
    return items, found


def _read(z: Any, about: list[Any], others: list[Any]) -> tuple[list[Constraint], Variable] | None:
    """Return the constraints on ``w`` that those about ``z`` make; None where they are others."""
    limits: list[Any] = []
    ends: dict[str, FloatArray] = {}
    owner: Any = None
    for item in about:
        if kind_of(item) not in ("Inequality", "Equality") or len(item.args) != 2:
            return None
        left, right = item.args
        if kind_of(left) == "Sum" and left.args[0] is z and right.is_constant():
            limits.append(right)
            continue
        if kind_of(item) == "Equality":
            return None
        link = _link(left, right, z)
        if link is None or (owner is not None and owner is not link[0]):
            return None
        owner = link[0]
        for end, size in link[1].items():
            ends[end] = np.minimum(ends.get(end, np.inf), size)
    if owner is None or not limits or owner.shape != z.shape:
        return None
    if "lower" not in ends and _nonnegative(owner, others):
        ends["lower"] = np.zeros(z.shape)
    if set(ends) != {"lower", "upper"}:
        return None
    w = proxy_of(owner)
    made: list[Any] = [card(w) <= value_of(limit) for limit in limits]
    return [*made, w <= ends["upper"], w >= -ends["lower"]], w


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
    size = _multiple(left, z)  # -M * z <= w
    if size is not None and np.all(size <= 0.0) and kind_of(right) == "Variable":
        return right, {"lower": -size}
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
