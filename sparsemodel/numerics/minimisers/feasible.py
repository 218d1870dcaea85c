"""A first point that satisfies the constraints, where zero does not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np

from sparsemodel.interfaces import (
    BoolArray,
    Box,
    FloatArray,
    Form,
    InfeasibleError,
    IntArray,
    Objective,
    Point,
    RestrictedSolver,
    SparseRegression,
    coordinate_scores,
)
from sparsemodel.numerics.budget import budget
from sparsemodel.numerics.objectives.regression import margins
from sparsemodel.numerics.support.selection import select, select_scores

FEASIBLE = 1e-9
"""Violation of bounds and convex constraints, relative to their size, that counts as rounding."""
_TOLERANCE = 1e-9
_REWEIGHTINGS = 8
_FEW = 500
"""Supports up to which all are tried."""


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


def feasible_start(objective: Objective, restricted: RestrictedSolver) -> Point | None:
    """Return a feasible point with at most ``k`` units, or None where zero is one.

    Where a loss is not defined at zero it is one where it is, if the candidates have one.

    Tries the free coordinates alone, then the steepest ``k`` units, then supports of sparse
    solutions of the linear constraints (linear programs with reweighted absolute values), then all
    supports where they are few.

    Raises
    ------
    InfeasibleError
        When the constraints exclude each other, or no point of at most ``k`` units was found.
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
    tried, outside = set[bytes](), ""
    for support in _candidates(objective, restricted, form, origin):
        if support.tobytes() in tried:
            continue
        tried.add(support.tobytes())
        point = restricted(objective, support, origin)
        if np.isfinite(point.value):
            if not (wrong := misplaced(form, point)):
                return point
            outside = outside or wrong
    if allowed:
        return None
    if outside:  # the constraints hold there, but a loss is not defined
        raise InfeasibleError(outside + in_time())
    words = [] if form.region is None else [form.region.describe()]
    words += ["bounds"] if form.box is not None else []
    raise InfeasibleError(
        f"No point with at most {form.sparsity.k} nonzero "
        f"{'entry' if form.sparsity.k == 1 else 'entries'} was found that satisfies "
        f"{' and '.join(words)}. Allow more, or pass a feasible start=.{in_time()}"
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
    objective: Objective, restricted: RestrictedSolver, form: SparseRegression, origin: Point
) -> Iterator[IntArray]:
    """Yield supports, those that cost more to find after the others."""
    sparsity, region = form.sparsity, form.region
    yield sparsity.free
    yield select(sparsity, objective.gradient(origin))
    if region is not None and region.linear and not form.matrix:
        for x in _sparse_vertices(form):
            units = sparsity.active_units(x)
            if sparsity.within(units):  # what is zero may have to stay so
                yield sparsity.coordinates(units)
            yield select(sparsity, x)
    elif region is not None:
        for ball in region.every_ball:
            if ball.center is not None:
                wanted = np.zeros(form.shape)
                wanted[ball.index] = ball.center
                yield select_scores(sparsity, coordinate_scores(wanted))
    if region is not None and region.images:
        yield from _thinned(objective, restricted, origin)


def _thinned(objective: Objective, restricted: RestrictedSolver, origin: Point) -> list[IntArray]:
    """Return the largest units of minimisers on fewer and fewer units, the first on all."""
    sparsity = objective.cardinality
    support, size = np.arange(sparsity.size), sparsity.units
    while size > sparsity.budget:
        point = restricted(objective, support, origin)
        if not np.isfinite(point.value):
            return []
        size = max(sparsity.budget, size // 2)
        support = select(sparsity.with_budget(size), point.x)
    return [support]


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


def _both_signs(ends: FloatArray) -> FloatArray:
    """Return bounds of ``r`` then ``s``, of x = r - s with r, s >= 0 whose bounds are ``ends``."""
    return np.concatenate([np.maximum(ends, 0.0), np.maximum(-ends[:, ::-1], 0.0)])


def _sparse_vertices(form: SparseRegression) -> Iterator[FloatArray]:
    """Yield solutions of the linear constraints with few nonzeros, sparser from one to the next.

    Then one for every support that has one, where there are at most :data:`_FEW` supports.

    Minimises :math:`\\sum_j c_j |x_j|` over the counted coordinates, with
    :math:`c_j = 1/(|x_j| + \\epsilon)` from the last solution.
    """
    from scipy.optimize import linprog

    size = form.sparsity.size
    region = form.region
    if region is None:
        return
    parts = [(part.design.to_array(), part.lower, part.upper) for part in region.linear]
    matrix, low, high, ends, unit = in_one_unit(parts, form.ends.lower, form.ends.upper)
    equal = low == high
    both = np.concatenate([matrix[~equal], -matrix[~equal]])
    limits = np.concatenate([high[~equal], -low[~equal]])
    kept = np.isfinite(limits)
    counted: BoolArray = form.sparsity.counted
    bounds = _both_signs(ends)
    cost = counted.astype(np.float64)

    def solved(cost: FloatArray, bounds: FloatArray) -> Any:
        return linprog(
            np.concatenate([cost, cost]),
            A_ub=np.hstack([both[kept], -both[kept]]) if kept.any() else None,
            b_ub=limits[kept] if kept.any() else None,
            A_eq=np.hstack([matrix[equal], -matrix[equal]]) if equal.any() else None,
            b_eq=low[equal] if equal.any() else None,
            bounds=bounds,
            method="highs-ds",
        )

    for _ in range(_REWEIGHTINGS):
        program = solved(cost, bounds)
        if program.status == 2:
            raise InfeasibleError("No point satisfies the linear constraints and the bounds.")
        if program.x is None:
            return
        x = program.x[:size] - program.x[size:]
        yield unit * x
        scale = float(np.abs(x).max(initial=0.0)) or 1.0
        cost = np.where(counted, 1.0 / (np.abs(x) / scale + 1e-3), 0.0)
    units, budget = form.sparsity.units, form.sparsity.budget
    sizes = range(budget if form.sparsity.plain else 1, budget + 1)
    if form.box is not None and form.box.least is not None:
        sizes, chosen = range(1, budget + 1), form.box.chosen
        bounds = _both_signs(np.column_stack([chosen.lower, chosen.upper]) / unit)
    if sum(math.comb(units, count) for count in sizes) > _FEW:
        return
    for each in chain.from_iterable(combinations(range(units), count) for count in sizes):
        on, off = np.array(each, dtype=np.intp), np.ones(size, dtype=bool)
        if not form.sparsity.within(on):
            continue
        off[form.sparsity.coordinates(on)] = False
        program = solved(cost, np.where(np.tile(off, 2)[:, None], 0.0, bounds))
        if program.status == 0:
            yield unit * (program.x[:size] - program.x[size:])
