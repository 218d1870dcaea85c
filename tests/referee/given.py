"""What was handed over in CVXPY's language, judged by CVXPY: its values, its violations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sparsemodel.modelling.expressions.foreign import is_cvxpy
from sparsemodel.modelling.problem import Problem
from tests.referee.constraints import CONVEX
from tests.referee.expressions import Values
from tests.referee.objective import Worth

_SAME = 1e-7
"""Relative difference of two evaluations of an objective, one of them CVXPY's."""


def flat(given: Any) -> Iterator[Any]:
    """Yield constraints that were given one by one, in lists, or both."""
    for item in given:
        if isinstance(item, (list, tuple)):
            yield from flat(item)
        else:
            yield item


def _chooses(constraint: Any) -> bool:
    """Return whether a constraint has a boolean variable, which has no value of its own here."""
    return any(v.attributes["boolean"] for v in constraint.variables())


@contextmanager
def at(problem: Problem, values: Values) -> Iterator[None]:
    """Give CVXPY's variables these values for as long as the block runs."""
    theirs = [(v.proxied, values[id(v)]) for v in problem.variables if v.proxied is not None]
    before = [proxied.value for proxied, _ in theirs]
    try:
        for proxied, value in theirs:
            proxied.save_value(value)
        yield
    finally:
        for (proxied, _), value in zip(theirs, before, strict=True):
            proxied.save_value(value)


def broken_as_given(problem: Problem, values: Values, worth: Worth | None) -> list[str]:
    """Return what CVXPY finds wrong with a point in the objective and constraints it was given.

    This also judges the translation, and parameters of CVXPY that have changed since.
    """
    goal, given = problem.declared
    theirs = [c for c in flat(given) if is_cvxpy(c) and not _chooses(c)]
    broken: list[str] = []
    if not is_cvxpy(goal) and not theirs:
        return broken
    with at(problem, values):
        for constraint in theirs:
            by = np.max(np.asarray(constraint.violation()), initial=0.0)
            sizes = [np.max(np.abs(part.value), initial=0.0) for part in constraint.args]
            terms = [np.abs(v.value).sum() for v in constraint.variables()]
            size = max(float(v) for v in (*sizes, *terms, 0.0))
            if not float(by) <= 10.0 * CONVEX * size:
                broken.append(f"CVXPY's constraint {constraint}: violated by {float(by):.3g}")
        if is_cvxpy(goal) and worth is not None and np.isfinite(worth.value):
            found = float(np.asarray(goal.args[0].value).reshape(()))
            found = -found if type(goal).__name__ == "Maximize" else found
            size = max(abs(found), abs(float(worth.value)))
            if not abs(found - float(worth.value)) <= _SAME * size + 2.0**8 * worth.rounding:
                broken.append(
                    f"the objective in CVXPY's words is {found!r}, as it was read "
                    f"{float(worth.value)!r}"
                )
    return broken
