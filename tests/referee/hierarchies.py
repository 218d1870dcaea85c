"""Hierarchies: whether what is not zero may be in, with parents that are zero by chance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from sparsemodel.modelling.expressions.comparisons import (
    CardinalityConstraint,
    Counted,
    Picked,
    Requirement,
)
from sparsemodel.modelling.expressions.objective_terms import Budget, Price
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.problem import Problem
from tests.referee.expressions import Unjudged, Values, entries_of, present
from tests.referee.objective import Worth, objective_at

Unit: TypeAlias = frozenset[int]
"""What is counted once: the numbers of its entries among all."""


def without_parents(
    constraints: Iterable[Any], variables: tuple[Variable, ...], values: Values, k: int | None
) -> list[str]:
    """Return the hierarchies that are broken; those whose parents have room are not.

    A parent counts and costs as if it were nonzero, which its coefficient need not be. Every parent
    that may be missing is tried, and those that it needs itself.
    """
    listed = list(constraints)
    requirements = [c for c in listed if isinstance(c, Requirement)]
    if not requirements:
        return []
    numbers, on = _numbered(variables, values)
    lacking = {c: sum(_lacks(on, need) for need in _needs(c, numbers)) for c in requirements}
    if not any(lacking.values()) or any(True for _ in _completions(listed, numbers, on, k)):
        return []
    return [f"{c!r}: {number} are nonzero without" for c, number in lacking.items() if number]


def worth_at(problem: Problem, values: Values, k: int | None) -> Worth:
    """Return the objective; parents that are zero by chance have prices."""
    objective, constraints = problem.goal.objective, list(problem.constraints)
    worth = objective_at(objective, problem.variables, values)
    paid = [term for term in objective.terms if isinstance(term, Price)]
    if not paid or not any(isinstance(c, Requirement) for c in constraints):
        return worth
    numbers, on = _numbered(problem.variables, values)
    costs = [_costs(price, numbers) for price in paid]

    def price(on: set[int]) -> float:
        return sum(cost for each in costs for unit, cost in each.items() if unit & on)

    least = min(map(price, _completions(constraints, numbers, on, k)), default=price(on))
    return replace(worth, value=worth.value + np.longdouble(least - price(on)))


def _numbered(variables: tuple[Variable, ...], values: Values) -> tuple[Values, set[int]]:
    """Return a number for each entry of the variables, and the numbers of those not zero."""
    numbers: Values = {}
    for v in variables:
        first = sum(found.size for found in numbers.values())
        numbers[id(v)] = np.asarray(first + np.arange(v.size).reshape(v.shape))
    on = {int(n) for v in variables for n in numbers[id(v)][np.asarray(values[id(v)]) != 0.0]}
    return numbers, on


def _completions(
    constraints: list[Any], numbers: Values, on: set[int], k: int | None
) -> Iterator[set[int]]:
    """Yield what may be in where ``on`` is not zero: with a parent for each, within limits."""
    needs = [n for c in constraints if isinstance(c, Requirement) for n in _needs(c, numbers)]
    limits = [limit for c in constraints if (limit := _limit(c, numbers, k)) is not None]
    waiting = [on]
    while waiting:
        here = waiting.pop()
        spent = [sum(cost for u, cost in costs.items() if u & here) for costs, _ in limits]
        if any(s > most for s, (_, most) in zip(spent, limits, strict=True)):
            continue
        lacking = next((need for need in needs if _lacks(here, need)), None)
        if lacking is None:
            yield here
        else:
            waiting += [here | parent for parent in lacking[1]]


def _lacks(on: set[int], need: tuple[Unit, list[Unit]]) -> bool:
    return bool(need[0] & on) and not any(parent & on for parent in need[1])


def _needs(c: Requirement, numbers: Values) -> Iterator[tuple[Unit, list[Unit]]]:
    """Yield each child with its parents, of which it needs one."""
    child, sides = _picked(c.child, numbers), [_picked(part, numbers) for part in c.parents]
    sides = [[one] for side in sides for one in side] if c.pooled else sides
    for i in range(max(map(len, (child, *sides)))):
        yield child[i % len(child)], [side[i % len(side)] for side in sides]


def _picked(part: Picked, numbers: Values) -> list[Unit]:
    every = _units(part.counted, numbers)
    return every if part.places is None else [every[i] for i in part.places.tolist()]


def _limit(c: Any, numbers: Values, k: int | None) -> tuple[dict[Unit, float], float] | None:
    """Return what each unit takes of a limit or a budget, and how much there is of it."""
    if isinstance(c, CardinalityConstraint):
        counted = [unit for part in c.counted for unit in _units(part, numbers)]
        return dict.fromkeys(counted, 1.0), float(present(c.k)) if k is None else k
    if not isinstance(c, Budget):
        return None
    costs = {unit: cost for term in c.terms for unit, cost in _costs(term, numbers).items()}
    return costs, float(present(c.most)) * (1.0 + 2e-12)


def _costs(term: Price, numbers: Values) -> dict[Unit, float]:
    units = _units(term.counted, numbers)
    each = np.broadcast_to(np.asarray(present(term.gamma), dtype=np.float64), len(units))
    return dict(zip(units, each.tolist(), strict=True))


def _units(part: Counted, numbers: Values) -> list[Unit]:
    if not part.plain:
        raise Unjudged("a hierarchy of what an expression counts")
    place = entries_of(part.expression.pieces[0], numbers)
    labels = np.arange(len(place)) if part.groups is None else np.asarray(part.groups)
    return [frozenset(np.ravel(place[labels == one]).tolist()) for one in np.unique(labels)]
