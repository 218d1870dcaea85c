"""A first point that satisfies the constraints, where zero does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparsemodel.interfaces import (
    Box,
    FloatArray,
    Form,
    InfeasibleError,
    NotSolvedError,
    Objective,
    Point,
    RestrictedSolver,
    SparseRegression,
    coordinate_scores,
)
from sparsemodel.numerics.budget import budget
from sparsemodel.numerics.minimisers.convex_starts import ConvexStarts
from sparsemodel.numerics.minimisers.feasible_supports import feasible_support
from sparsemodel.numerics.objectives.regression import margins
from sparsemodel.numerics.support.selection import select, select_scores

FEASIBLE = 1e-9
"""Violation of bounds and convex constraints, relative to their size, that counts as rounding."""
_TOLERANCE = 1e-9


def inside(box: Box | None, x: FloatArray, tolerance: float = _TOLERANCE) -> bool:
    """Return whether ``x`` is within bounds; always where there are none."""
    return box is None or not any(part.any() for part in box.broken(x, tolerance))


def satisfied(form: Form, x: FloatArray, tolerance: float = _TOLERANCE) -> bool:
    """Return whether ``x`` is within the bounds and the region of ``form``."""
    if not inside(form.box, x, tolerance):
        return False
    return form.region is None or form.region.violation(x) <= tolerance


def misplaced(form: SparseRegression, point: Point) -> str:
    """Return what is wrong with a point at which a loss is not defined, or nothing."""
    if form.traits.everywhere:
        return ""
    for term, z in zip(form.terms, point.state, strict=True):
        on = term.weights > 0.0
        found = term.loss.misplaced(margins(term, z)[on], term.target[on])
        if found:
            return found
    return ""


def feasible_start(
    objective: Objective, restricted: RestrictedSolver, convex: ConvexStarts | None = None
) -> Point | None:
    """Return a feasible point with at most ``k`` units, or None where zero is one.

    Where a loss is not defined at zero it is one where it is, if the candidates have one.

    Tries the free coordinates alone, the steepest ``k`` units, what the convex problem is rounded
    to, then whether any support is feasible
    (:func:`~sparsemodel.numerics.minimisers.feasible_supports.feasible_support`).

    Raises
    ------
    InfeasibleError
        When it is proved that no point satisfies the constraints, or none of at most ``k`` units;
        or when none was found where a loss is defined.
    NotSolvedError
        When none was found before a limit ended the search.
    """
    form = objective.form
    if not isinstance(form, SparseRegression):
        return None
    if form.box is None and form.region is None and form.traits.everywhere:
        return None
    origin = objective.origin()
    allowed = satisfied(form, origin.x)
    if allowed and not misplaced(form, origin):
        return None
    outside = ""
    for point in _candidates(objective, restricted, form, origin, convex):
        if np.isfinite(point.value):
            if not (wrong := misplaced(form, point)):
                return point
            outside = outside or wrong
    if allowed:
        return None
    if outside:  # the constraints hold there, but a loss is not defined
        raise InfeasibleError(outside + in_time())
    sizes = None if convex is None or convex.relaxed is None else convex.sizes(convex.relaxed.x)
    decision = feasible_support(objective, restricted, sizes)
    if decision.point is not None:
        if wrong := misplaced(form, decision.point):
            raise InfeasibleError(wrong + in_time())
        return decision.point
    words = [] if form.region is None else [form.region.describe()]
    words += ["bounds"] if form.box is not None else []
    what = " and ".join(words)
    if decision.impossible:
        raise InfeasibleError(
            f"No point {decision.impossible} satisfies {what}. "
            + ("Allow more." if "at most" in decision.impossible else "They exclude each other.")
        )
    raise NotSolvedError(
        f"No point with at most {form.sparsity.k} nonzero "
        f"{'entry' if form.sparsity.k == 1 else 'entries'} was found that satisfies {what}, and "
        "it is not known whether there is one. Allow more of them or more time (time_limit=60 "
        f"seconds, for example), bound the entries, or pass a feasible start=.{in_time()}"
    )


def in_time() -> str:
    """Return what to add where a search found nothing before the time was up."""
    if not budget().over():
        return ""
    return (
        " The time limit ended the search, so it is not known whether the problem is feasible; "
        "allow more time."
    )


def _candidates(
    objective: Objective,
    restricted: RestrictedSolver,
    form: SparseRegression,
    origin: Point,
    convex: ConvexStarts | None,
) -> Iterator[Point]:
    """Yield minimisers on supports, those that cost more to find after the others."""
    yield restricted(objective, form.sparsity.free, origin)
    yield restricted(objective, select(form.sparsity, objective.gradient(origin)), origin)
    for ball in () if form.region is None else form.region.every_ball:
        if ball.center is not None:
            wanted = np.zeros(form.shape)
            wanted[ball.index] = ball.center
            support = select_scores(form.sparsity, coordinate_scores(wanted))
            yield restricted(objective, support, origin)
    if convex is not None:
        yield from convex.points()


def in_one_unit(
    parts: Sequence[tuple[FloatArray, FloatArray, FloatArray]], lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """Return ``C, l, u`` of linear constraints, bounds ``(n, 2)``, and what one stands for in them.

    Linear programs ask for rows and numbers near one: tiny ones are zero to them, large ones none.
    """
    matrix, low, high = (np.concatenate(each) for each in zip(*parts, strict=True))
    size = np.abs(matrix).max(axis=1, initial=0.0)
    size[size == 0.0] = 1.0
    bounds = np.column_stack([lower, upper])
    ends = np.abs(np.concatenate([low / size, high / size, bounds.ravel()]))
    unit = float(ends[np.isfinite(ends)].max(initial=0.0)) or 1.0
    return matrix / size[:, None], low / size / unit, high / size / unit, bounds / unit, unit
