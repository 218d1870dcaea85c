"""A first point that satisfies the constraints, where zero does not."""

from __future__ import annotations

from collections.abc import Iterator

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
from sparsemodel.numerics.support.hard_threshold import select, select_scores

_TOLERANCE = 1e-9
_REWEIGHTINGS = 8


def inside(box: Box | None, x: FloatArray, tolerance: float = _TOLERANCE) -> bool:
    """Return whether ``x`` is within bounds; always where there are none."""
    if box is None:
        return True
    slack = tolerance * (1.0 + np.abs(x))
    if box.least is not None and np.any((x != 0.0) & (np.abs(x) < box.least - slack)):
        return False
    return not (np.any(x < box.lower - slack) or np.any(x > box.upper + slack))


def satisfied(form: Form, x: FloatArray, tolerance: float = _TOLERANCE) -> bool:
    """Return whether ``x`` is within the bounds and the region of ``form``."""
    if not inside(form.box, x, tolerance):
        return False
    return form.region is None or form.region.violation(x) <= tolerance


def feasible_start(objective: Objective, restricted: RestrictedSolver) -> Point | None:
    """Return a feasible point with at most ``k`` units, or None where zero is one.

    Tries the free coordinates alone, then the steepest ``k`` units, then supports of sparse
    solutions of the linear constraints (linear programs with reweighted absolute values).

    Raises
    ------
    InfeasibleError
        When the constraints exclude each other, or no point of at most ``k`` units was found.
    """
    form = objective.form
    if not isinstance(form, SparseRegression) or (form.box is None and form.region is None):
        return None
    origin = objective.origin()
    if satisfied(form, origin.x):
        return None
    tried = set[bytes]()
    for support in _candidates(objective, restricted, form, origin):
        if support.tobytes() in tried:
            continue
        tried.add(support.tobytes())
        point = restricted(objective, support, origin)
        if np.isfinite(point.value):
            return point
    words = [] if form.region is None else [form.region.describe()]
    words += ["bounds"] if form.box is not None else []
    raise InfeasibleError(
        f"No point with at most {form.sparsity.k} nonzeros was found that satisfies "
        f"{' and '.join(words)}. Allow more nonzeros, or pass a feasible start=."
    )


def _candidates(
    objective: Objective, restricted: RestrictedSolver, form: SparseRegression, origin: Point
) -> Iterator[IntArray]:
    """Yield supports, those that cost more to find after the others."""
    sparsity, region = form.sparsity, form.region
    yield sparsity.free
    yield select(sparsity, objective.gradient(origin))
    if region is not None and region.linear and not form.matrix:
        yield from (select(sparsity, x) for x in _sparse_vertices(form))
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


def _sparse_vertices(form: SparseRegression) -> Iterator[FloatArray]:
    """Yield solutions of the linear constraints with few nonzeros, sparser from one to the next.

    Minimises :math:`\\sum_j c_j |x_j|` over the counted coordinates, with
    :math:`c_j = 1/(|x_j| + \\epsilon)` from the last solution.
    """
    from scipy.optimize import linprog

    size = form.sparsity.size
    region = form.region
    if region is None:
        return
    matrix = np.concatenate([part.design.to_array() for part in region.linear])
    low = np.concatenate([part.lower for part in region.linear])
    high = np.concatenate([part.upper for part in region.linear])
    equal = low == high
    both = np.concatenate([matrix[~equal], -matrix[~equal]])
    limits = np.concatenate([high[~equal], -low[~equal]])
    kept = np.isfinite(limits)
    counted: BoolArray = form.sparsity.counted
    lower = np.full(size, -np.inf) if form.box is None else form.box.lower
    upper = np.full(size, np.inf) if form.box is None else form.box.upper
    # x = r - s with r, s >= 0; bounds of x are bounds of r and s where they exclude a sign.
    bounds = np.concatenate(
        [
            np.column_stack([np.maximum(lower, 0.0), np.maximum(upper, 0.0)]),
            np.column_stack([np.maximum(-upper, 0.0), np.maximum(-lower, 0.0)]),
        ]
    )
    cost = counted.astype(np.float64)
    for _ in range(_REWEIGHTINGS):
        program = linprog(
            np.concatenate([cost, cost]),
            A_ub=np.hstack([both[kept], -both[kept]]) if kept.any() else None,
            b_ub=limits[kept] if kept.any() else None,
            A_eq=np.hstack([matrix[equal], -matrix[equal]]) if equal.any() else None,
            b_eq=low[equal] if equal.any() else None,
            bounds=bounds,
            method="highs-ds",
        )
        if program.status == 2:
            raise InfeasibleError("No point satisfies the linear constraints and the bounds.")
        if program.x is None:
            return
        x = program.x[:size] - program.x[size:]
        yield x
        scale = float(np.abs(x).max(initial=0.0)) or 1.0
        cost = np.where(counted, 1.0 / (np.abs(x) / scale + 1e-3), 0.0)
