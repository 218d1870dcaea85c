"""Whether a minimiser is one: objectives that fall for ever, or towards what they never reach."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import (
    DataError,
    FloatArray,
    InfeasibleError,
    IntArray,
    Loss,
    Point,
    RestrictedSolver,
    SeparableDataError,
    UnboundedError,
)
from sparsemodel.numerics.budget import budget
from sparsemodel.numerics.curvatures.curvature import full_diagonal
from sparsemodel.numerics.linear_programs.formulation import has_bounded_minimum
from sparsemodel.numerics.minimisers.feasible import in_time, misplaced, satisfied
from sparsemodel.numerics.minimisers.newton import FAR, farthest
from sparsemodel.numerics.objectives.regression import (
    OfRegression,
    RegressionObjective,
    margins,
)
from sparsemodel.numerics.support.selection import select, top_k

_NEAR = 8.0
"""Predictions up to this size are no sign of a minimiser at infinity: exp(-8) is a curvature."""
_FLAT = 1e-7
"""Curvature, relative to that at zero, below which a direction may lead to infinity."""
_TRIED = 20
"""Coordinates without curvature that are tried one by one, those of the steepest slope."""
_MOST = 300
"""Unknowns up to which the flat directions are looked for."""


def check_bounded(objective: RegressionObjective, restricted: RestrictedSolver) -> None:
    """Raise when the steepest coordinates lead to infinity, or one that is linear alone.

    Algorithms that add coordinates by their gradients would pass by the latter. Nothing is
    computed where the objective has a lower bound, as it has without linear terms and custom
    losses.

    Raises
    ------
    UnboundedError
    """
    sparsity = objective.cardinality
    if np.isfinite(objective.infimum()) or len(objective.shape) > 1 or not sparsity.budget:
        return
    if has_bounded_minimum(objective.form):
        return
    origin = objective.origin()
    _try(objective, restricted, select(sparsity, objective.gradient(origin)))
    if not objective.form.traits.curved:
        return
    diagonal = full_diagonal(objective, origin)
    if diagonal is None:
        return
    flat = diagonal <= 1e-14 * float(diagonal.max(initial=0.0))
    pull = sparsity.unit_scores(np.where(flat, np.square(objective.gradient(origin)), 0.0))
    for unit in top_k(pull, min(_TRIED, pull.size)):
        if not pull[unit]:
            return
        _try(objective, restricted, sparsity.coordinates(np.array([unit])))


def _try(objective: RegressionObjective, restricted: RestrictedSolver, support: IntArray) -> None:
    point = restricted(objective, support, objective.origin())
    if float(np.linalg.norm(point.x)) > 0.1 * FAR and np.isfinite(point.value):
        raise _unbounded(objective, point)


def check_attained(objective: OfRegression, point: Point) -> None:
    """Raise when ``point``, found as a minimiser on its support, stands for one at infinity.

    Looks along ``point`` itself and along its part in the directions without curvature: at a
    minimiser, going on ten times as far does not lower the objective. For losses that are
    strictly convex wherever they are not affine, being level there is as bad when the objective
    was higher on the way: separable data, counts that are zero wherever a column is not.

    Raises
    ------
    SeparableDataError, UnboundedError
        With what to do about it.
    """
    form = objective.form
    x = point.x[point.support]
    if budget().over():
        return  # the minimisation was broken off: it may have begun anywhere
    if objective.quadratic and np.isfinite(objective.infimum()):
        return  # a quadratic that is bounded below attains its minimum, however far
    if np.all(form.ridge[point.support] > 0.0) or not np.any(x):
        return
    if float(np.linalg.norm(x)) > 0.1 * farthest(objective):
        raise _unbounded(objective, point)
    for direction in _directions(objective, point):
        ahead = point.x.copy()
        ahead[point.support] += 10.0 * direction
        if not satisfied(form, ahead):
            continue  # constraints keep the coefficients from growing
        far, back = _values_along(objective, point, direction, np.array([10.0, -1.0]))
        floor = objective.infimum()
        size = 0.5 * (point.value - floor) if np.isfinite(floor) else 1e-14 * abs(point.value)
        if np.isfinite(floor) and not form.traits.strictly_convex:  # it may have reached its floor
            size = max(size, 1e-14 * (objective.origin().value - floor))
        if far < point.value - size:
            raise _unbounded(objective, point)
        if form.traits.strictly_convex:
            rounding = 1e-14 * _summands(objective, point)
            risen = 1e-6 * (objective.origin().value - point.value)
            higher = back > point.value + max(risen, rounding)
            if far <= point.value + rounding and higher and back > far:
                raise _unbounded(objective, point)


def _values_along(
    objective: OfRegression, point: Point, direction: FloatArray, lengths: FloatArray
) -> FloatArray:
    """Return the values at some lengths; predictions are linear, and those of the point known."""
    values = point.x[point.support]
    if not isinstance(objective, RegressionObjective):
        return objective.values_along(point.support, values, direction, lengths)
    moved = point.state
    if not np.array_equal(direction, values):
        moved = objective.point(point.support, direction).state
    return np.array(
        [
            objective.value_at(
                point.support,
                values + t * direction,
                tuple(z + t * d for z, d in zip(point.state, moved, strict=True)),
            )
            for t in lengths
        ]
    )


def _summands(objective: OfRegression, point: Point) -> float:
    """Return the size of what adds up to the value at ``point``, which says how it rounds.

    The value at zero is no measure of it: an offset of 700 makes that as large as exp(700).
    """
    total = abs(point.value)
    if not isinstance(objective, RegressionObjective):  # predictions are elsewhere
        return total + abs(objective.origin().value)
    for term, z in zip(objective.form.terms, point.state, strict=True):
        loss, u = term.loss, margins(term, z)
        if not isinstance(loss, Loss):
            return total + abs(objective.origin().value)
        sizes = loss.value_magnitude(u, term.target, loss.value(u, term.target))
        total += float(np.dot(term.weights, sizes))
    return total


def _directions(objective: OfRegression, point: Point) -> list[FloatArray]:
    """Return the directions in which a minimiser at infinity would be sought."""
    x = point.x[point.support]
    found = [x]
    if objective.quadratic or x.size > _MOST or not objective.explicit_hessian(point.support):
        return found
    if not objective.twice_differentiable:
        return found
    here = isinstance(objective, RegressionObjective)
    if here and max(float(np.abs(z).max(initial=0.0)) for z in point.state) < _NEAR:
        return found
    diagonal = objective.hessian_diagonal(objective.origin(), point.support)
    scale = np.sqrt(np.maximum(diagonal, 1e-300)).ravel()
    hessian = objective.hessian(point, point.support) / np.outer(scale, scale)
    if not np.all(np.isfinite(hessian)):
        return found
    eigenvalues, vectors = np.linalg.eigh(hessian)
    flat = vectors[:, eigenvalues < _FLAT]
    if flat.shape[1]:
        part = (flat @ (flat.T @ (scale * x.ravel()))) / scale
        found.append(part.reshape(x.shape))
    return found


def _unbounded(objective: OfRegression, point: Point) -> UnboundedError | InfeasibleError:
    here = isinstance(objective, RegressionObjective)
    if here and (outside := misplaced(objective.form, point)):
        return InfeasibleError(outside + in_time())
    what = " + ".join(sorted({term.loss.name for term in objective.form.terms}))
    if not np.isfinite(objective.infimum()):
        return UnboundedError(
            f"The objective ({what}) is unbounded below: it decreases without limit along the "
            "coefficients that were found. Bound them (`w <= 10`, `sm.norm(w) <= 10`), or add a "
            "ridge, for example sm.ridge(w, 1e-3)."
        )
    separable = any(term.traits.separable for term in objective.form.terms)
    why = (
        "the data are separable there, and it"
        if separable
        else "some observations are fitted perfectly by ever larger coefficients, and it"
    )
    form = objective.form
    cure = "Add a ridge, for example sm.ridge(w, 1e-3), or bounds."
    if np.all(form.ridge[form.sparsity.counted] > 0.0):
        cure = (
            "The coefficients that are not counted (an intercept) have no ridge: leave them out if "
            "all targets are equal, or give them a ridge or bounds as well."
        )
    message = (
        f"The {what} has no minimiser on the support that was found: {why} decreases without end "
        f"as the coefficients grow. {cure}"
    )
    kind = SeparableDataError if separable else UnboundedError
    return kind(message, form, point.x)


def check_range(objective: RegressionObjective, point: Point) -> None:
    """Raise where a loss is not its own formula: outside its domain, or where it would overflow.

    Raises
    ------
    DataError, InfeasibleError
    """
    form = objective.form
    if not form.traits.everywhere and (outside := misplaced(form, point)):
        raise InfeasibleError(outside + in_time())
    for term, z in zip(form.terms, point.state, strict=True):
        loss = term.loss
        if not isinstance(loss, Loss):
            continue
        u, y = margins(term, z), term.target
        magnitude = loss.value_magnitude(u, y, loss.value(u, y))
        over = magnitude == np.inf
        if np.any(over & (term.weights > 0.0)):
            worst, targets = float(np.abs(u[over]).max()), float(np.abs(y[over]).max(initial=0.0))
            if targets > worst:
                raise DataError(
                    f"The target of {loss.name} holds values of {targets:.3g}, where the loss "
                    "overflows. Divide the target by a constant."
                )
            raise DataError(
                f"The predictions of {loss.name} reach {worst:.3g} at the solution, where it "
                "overflows: rescale the data matrix or the target, add an intercept or a ridge, or "
                "choose another start."
            )
