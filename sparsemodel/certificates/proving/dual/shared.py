"""Which problems are searched with dual points, and the data that all parts of one share."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.dualised_rows import DualisedRows, row_term
from sparsemodel.certificates.arithmetic.scaling import Scaling, scaling
from sparsemodel.certificates.dual_bounds.gains import forced_units
from sparsemodel.certificates.proving.dual.subproblem import held
from sparsemodel.certificates.relaxation.from_files import Models
from sparsemodel.certificates.relaxation.regulariser import objection
from sparsemodel.certificates.statements.numbers import Rows, constraints_of
from sparsemodel.interfaces import (
    BoolArray,
    Box,
    FloatArray,
    IntArray,
    Point,
    SparseRegression,
    Term,
    UnboundedError,
)
from sparsemodel.numerics import RegressionObjective
from sparsemodel.numerics.budget import eigenvalue_cost, products_cost
from sparsemodel.numerics.linear_programs.formulation import has_round_limits, is_straight
from sparsemodel.numerics.linear_programs.formulation import objections as straight_objections
from sparsemodel.numerics.minimisers.dispatch import minimise_restricted

FEW = 2000
"""Supports up to which a problem is searched without being asked to: about a second."""

_SUPPORTS = 20_000
"""Supports up to which a search looks at all of them, where there is no better way."""

_READINGS = 4.0
"""How often curvature is read: here, and where the bound at the root is evaluated from its
witness, once the search has used up its share of the time."""


def objections(form: SparseRegression) -> tuple[str, ...]:
    """Return every reason why nodes of ``form`` cannot be bounded by dual points."""
    out = list[str]()
    unknown = _names([t for t in form.terms if not t.traits.conjugable])
    if unknown and (bent := _names([t for t in form.terms if not t.traits.has_hessian])):
        out.append(
            f"the conjugate of {unknown} is not known, so that all terms need a Hessian, and "
            f"{bent} has none (sm.norm(w, 1) is an absolute_loss); certify() bounds such problems"
        )
    elif unknown and np.any(loose_coordinates(form)):
        out.append(f"the conjugate of {unknown} is not known, so that all needs a ridge or bounds")
    if np.any(forced_units(form.sparsity, form.box)):
        out.append("bounds keep counted coordinates away from zero")
    reason = objection(form, form.ridge)
    if reason and reason not in out and not _countable(form):
        out.append(reason)
    return tuple(out)


def _names(terms: list[Term]) -> str:
    return ", ".join(sorted({t.loss.name for t in terms}))


def few_supports(form: SparseRegression) -> bool:
    """Return whether there are no more than ``FEW`` supports to tell apart."""
    sparsity = form.sparsity
    largest = min(sparsity.budget, sparsity.units)
    smallest = 0 if form.fewer else largest
    count = 0
    for size in range(smallest, largest + 1):
        count += math.comb(sparsity.units, size)
        if count > FEW:
            return False
    return True


def loose_coordinates(form: SparseRegression) -> BoolArray:
    """Return which coordinates have neither ridge nor two bounds, in the shape of ``x``."""
    loose = np.broadcast_to(form.ridge == 0.0, form.shape[::-1]).T
    return loose if form.box is None else loose & ~np.isfinite(form.box.upper - form.box.lower)


def is_linear_program(form: SparseRegression, points: SparseRegression) -> bool:
    """Return whether nodes of ``form`` are linear programs.

    There is no curvature in the ``points``' losses, all counted coordinates have bounds, and what
    constrains them is linear.
    """
    if not all(map(is_straight, points.terms)):
        return False
    loose = loose_coordinates(form)[form.sparsity.counted]
    bare = replace(form, terms=tuple(t for t in form.terms if not is_left_out(t)), region=None)
    return not (np.any(loose) or straight_objections(bare) or has_round_limits(points))


def is_left_out(term: Term) -> bool:
    """Return whether a term is that of rows, or a square that a bound does not need."""
    return isinstance(term.loss, DualisedRows) or term.traits.square


def _countable(form: SparseRegression) -> bool:
    """Return whether parts can be bounded without a relaxation, and are few enough for that.

    Each takes a minimisation: of all that it may still use, where the limit on units is dropped.
    """
    sparsity = form.sparsity
    rows = sum(t.design.shape[0] for t in form.terms)
    few = sparsity.size < rows or math.comb(sparsity.units, sparsity.budget) <= _SUPPORTS
    solvable = all(t.traits.has_hessian or t.traits.smoothable for t in form.terms)
    loose = bool(np.any(loose_coordinates(form)[sparsity.counted]))
    return few and solvable and loose and form.traits.conjugable


@final
@dataclass(frozen=True, slots=True, eq=False)
class SharedData:
    """The data that all parts of a problem share."""

    form: SparseRegression
    """Scaled by powers of two, which is exact: a bound on it is one on the problem itself."""
    scaling: Scaling | None
    points: RegressionObjective
    """The problem whose points are asked for, scaled as well."""
    ends: RegressionObjective
    """The problem whose minimum on a support bounds a part: ``points``, or without its region."""
    unit: IntArray
    """The unit of each coordinate, -1 for the free ones."""
    rows: Rows | None
    """The linear constraints of ``points``, where each part has slopes of its own for them."""
    linear: bool = False
    """Whether parts are linear programs, see :func:`is_linear_program`."""
    models: Models = field(default_factory=Models)
    """Models of the data in files that were read."""

    @classmethod
    def of(cls, form: SparseRegression, points: SparseRegression) -> SharedData:
        """Choose the scaling."""
        unit, other = form.sparsity.unit_of, scaling(form, points)
        if other is not None:
            form, points = other.form, other.points
        objective = RegressionObjective(points)
        without = points.region is not None and form.region is None
        ends = RegressionObjective(form) if without else objective
        linear = is_linear_program(form, points)
        return cls(form, other, objective, ends, unit, _rows_beside(form, points), linear)

    def minimum(
        self,
        support: IntArray,
        objective: RegressionObjective,
        tol: float | None = None,
        start: Point | None = None,
    ) -> Point | None:
        """Return the minimum on a support, if there is one; to ``tol`` where files are read."""
        if start is None:
            start = objective.origin()
            if self.models.known:
                near = self.models.minimiser(support, self.form.ridge, start.x)
                start = replace(start, x=near).with_gradient(None)
        try:
            tol = tol if self.models.known else None
            point = minimise_restricted(objective, support, start, tol=tol)
        except UnboundedError:
            return None
        return point if np.isfinite(point.value) else None

    @property
    def semicontinuous(self) -> bool:
        """Return whether coordinates have minimum sizes: parts differ by the units that are in."""
        return self.form.box is not None and self.form.box.least is not None

    def with_minimum_sizes(self, units: IntArray) -> SharedData:
        """Return them with the minimum sizes of ``units`` in force, and none of others."""
        on = np.isin(self.unit, units)

        def apart(form: SparseRegression) -> SparseRegression:
            box = form.box and held(form.box, on)
            return replace(form, box=box and Box(box.lower, box.upper))

        points, ends = (RegressionObjective(apart(o.form)) for o in (self.points, self.ends))
        return replace(self, form=apart(self.form), points=points, ends=ends)

    def start(self, x: FloatArray) -> FloatArray:
        """Return a point in the scaled coordinates."""
        return x if self.scaling is None else self.scaling.start(x)

    def restored(self, x: FloatArray) -> FloatArray:
        """Return a scaled point in the form's coordinates."""
        return x if self.scaling is None else self.scaling.restore(x)


def _rows_beside(form: SparseRegression, points: SparseRegression) -> Rows | None:
    """Return the constraints whose slopes are a term of ``form``, in the coordinates of both."""
    place = row_term(form)
    loss = None if place is None else form.terms[place].loss
    if not isinstance(loss, DualisedRows):
        return None
    rows = constraints_of(points)
    return rows if rows is None or loss.rows.norms else replace(rows, norms=())


def reading_cost(form: SparseRegression) -> float:
    """Return the cost of the curvature in the data, as often as a proof reads it."""
    designs, p = [term.design for term in form.terms], form.sparsity.size
    rows = sum(design.shape[0] for design in designs)
    sums = sum(design.gram_operations for design in designs)
    once = sums + products_cost(designs, rows + 2.0 * p)
    return _READINGS * (once + eigenvalue_cost(p))
