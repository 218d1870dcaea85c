"""What each canonical form needs to be solved: its objective and its restricted solver.

Those of another distribution are registered here with its formulation; driver, dispatch and
backends stay as they are. No other module decides how the objective is minimised on a support:
backends, adapters, paths and proofs are given it.
"""

from __future__ import annotations

import math
from functools import singledispatch

from sparsemodel.interfaces import (
    Access,
    FloatArray,
    Form,
    Objective,
    Point,
    RestrictedSolver,
    SparseRegression,
    UnsupportedProblemError,
    Work,
)
from sparsemodel.interfaces.precision import JointPrecision, SparsePrecision
from sparsemodel.numerics import RegressionObjective, cheap_columns, minimise_restricted
from sparsemodel.numerics.minimisers.convex_starts import ConvexStarts
from sparsemodel.numerics.minimisers.unboundedness import check_attained, check_bounded, check_range
from sparsemodel.numerics.objectives.regression import OfRegression


@singledispatch
def objective_of(
    form: Form, gradient_at_zero: FloatArray | None = None, work: Work | None = None
) -> Objective:
    """Return the objective a backend is given for ``form``; it counts what it costs in ``work``."""
    raise UnsupportedProblemError(f"Nothing is registered to evaluate a {type(form).__name__}.")


@singledispatch
def restricted_of(form: Form) -> RestrictedSolver:
    """Return the service that minimises ``form``'s objective on a support."""
    raise UnsupportedProblemError(f"Nothing is registered to debias a {type(form).__name__}.")


@objective_of.register
def _(
    form: SparseRegression, gradient_at_zero: FloatArray | None = None, work: Work | None = None
) -> Objective:
    if distributed(form):
        from sparsemodel.numerics.objectives.distributed import DistributedObjective

        alike = form.outputs == 1 and DistributedObjective.fits(form)
        if alike and not DistributedObjective.is_fetched(form):
            return DistributedObjective(form, gradient_at_zero=gradient_at_zero, work=work)
    return RegressionObjective(form, gradient_at_zero=gradient_at_zero, work=work)


def distributed(form: SparseRegression) -> bool:
    """Return whether some of the data are on workers."""
    return any(Access.DISTRIBUTED in term.design.access for term in form.terms)


@restricted_of.register
def _(form: SparseRegression) -> RestrictedSolver:
    region = form.region
    if region is not None and form.matrix and region.one_norms:  # no kernel knows these
        from sparsemodel.cvx import minimise_with_cvxpy

        return minimise_with_cvxpy
    return minimise_restricted


@objective_of.register
def _(
    form: SparsePrecision, gradient_at_zero: FloatArray | None = None, work: Work | None = None
) -> Objective:
    from sparsemodel.numerics.precision import precision_objective

    return precision_objective(form, work)


@restricted_of.register
def _(form: SparsePrecision) -> RestrictedSolver:
    from sparsemodel.numerics.precision import minimise_precision_on_support

    return minimise_precision_on_support


@objective_of.register
def _(
    form: JointPrecision, gradient_at_zero: FloatArray | None = None, work: Work | None = None
) -> Objective:
    from sparsemodel.numerics.precision.joint import joint_objective

    return joint_objective(form, work)


@restricted_of.register
def _(form: JointPrecision) -> RestrictedSolver:
    from sparsemodel.numerics.precision.joint import minimise_joint_on_support

    return minimise_joint_on_support


def convex_starts_of(objective: Objective, restricted: RestrictedSolver) -> ConvexStarts | None:
    """Return what starts searches within constraints; None where there are none, or other forms."""
    form = objective.form
    fits = isinstance(form, SparseRegression) and form.constrained and cheap_columns(objective)
    return ConvexStarts(objective, restricted) if fits else None


@singledispatch
def check_start(objective: Objective, restricted: RestrictedSolver) -> None:
    """Raise an error where an objective has no minimum over a support; most have one."""


@check_start.register
def _(objective: RegressionObjective, restricted: RestrictedSolver) -> None:
    check_bounded(objective, restricted)


@singledispatch
def bounding_point(objective: Objective, last: Point) -> tuple[Point, float] | None:
    """Return the point whose gradient gives the best lower bound of a run that ended at ``last``.

    And what it proves at most, in plain arithmetic. None where none does. Raises an error where
    ``last`` shows that there is no minimum.
    """
    if isinstance(objective, OfRegression):
        check_attained(objective, last)
    return None


@bounding_point.register
def _(objective: RegressionObjective, last: Point) -> tuple[Point, float] | None:
    check_range(objective, last)
    check_attained(objective, last)
    objective.bound_at(last)
    found = objective.bounds
    if found.point is None:
        return None
    # Constraints, of which the merit knows nothing, may make a better bound of its point.
    return found.point, math.inf if objective.form.constrained else found.merit
