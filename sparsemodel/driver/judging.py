"""Judging what a stage returned: is it allowed, is it better?"""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import (
    BackendContractError,
    Objective,
    Point,
    Result,
    Stop,
    priced,
)
from sparsemodel.numerics import inside, satisfied
from sparsemodel.numerics.minimisers.feasible import FEASIBLE

_FEASIBLE_CVXPY = 1e-6
"""The same where CVXPY keeps the constraints, whose solvers stop at such an accuracy."""


def better(objective: Objective, last: Result, best: Result) -> bool:
    """Return whether ``last`` replaces ``best``: lower, or as low and come to its own end."""
    new, old = priced(objective, last.point), priced(objective, best.point)
    if last.stop is Stop.CONVERGED and best.stop is not Stop.CONVERGED:
        return new <= old + 1e-12 * abs(old)
    return new < old


def check_contract(name: str, result: Result, objective: Objective) -> None:
    """Recompute feasibility; a backend that breaks it is named."""
    if not (isinstance(result, Result) and isinstance(result.point, Point)):
        raise BackendContractError(
            f"The backend {name!r} returned no Result with a Point, but {repr(result)[:80]}. "
            "This is a bug in the backend."
        )
    sparsity = objective.cardinality
    x = result.point.x
    if x.shape != objective.shape or not np.isfinite(x).all():
        raise BackendContractError(f"The backend {name!r} returned a point that is not finite.")
    count = sparsity.count(x)
    if count > sparsity.budget:
        raise BackendContractError(
            f"The backend {name!r} returned {count} nonzero units, and it may choose "
            f"{sparsity.budget}. This is a bug in the backend."
        )
    if not sparsity.plain and not sparsity.within(sparsity.active_units(x)):
        raise BackendContractError(
            f"The backend {name!r} returned a point with more nonzero units than a limit on a part "
            "of them allows. This is a bug in the backend."
        )
    form = objective.form
    if not inside(form.box, x, FEASIBLE):
        raise BackendContractError(f"The backend {name!r} returned a point outside the bounds.")
    loose = x.ndim > 1 and form.region is not None and form.region.one_norms
    if not satisfied(form, x, _FEASIBLE_CVXPY if loose else 10.0 * FEASIBLE):
        raise BackendContractError(
            f"The backend {name!r} returned a point that violates a constraint."
        )
