r"""Minimise on a support with kinks and constraints: the proximal method of multipliers.

Losses with kinks and constraints are treated alike. Each is a convex function ``h`` of a linear
image of the unknowns, replaced by its smooth envelope around a multiplier,

.. math:: h_{\mu,a}(z) = \max_b\; b z - h^*(b) - \tfrac{\mu}{2} (b - a)^2 ,

which for a constraint is the augmented Lagrangian and for a loss the smoothed loss at the shifted
argument :math:`z + \mu a`. The smooth problem, with a small proximal term, is solved by projected
semismooth Newton; then the multipliers move to the maximisers. Piecewise linear-quadratic
problems are solved after finitely many such rounds, to the accuracy of the arithmetic
(Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm in convex
programming, Math. Oper. Res. 1976).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sparsemodel.interfaces import (
    Box,
    FloatArray,
    IntArray,
    Objective,
    Point,
    SparseRegression,
    UnsupportedProblemError,
)
from sparsemodel.numerics.budget import budget
from sparsemodel.numerics.minimisers.balls import (
    BallEnvelope,
    ImageEnvelope,
    OneNormEnvelope,
    SpectrumEnvelope,
)
from sparsemodel.numerics.minimisers.boxed import box_newton
from sparsemodel.numerics.minimisers.envelopes import (
    ConstraintEnvelope,
    Envelope,
    NonsmoothTerm,
    RowsEnvelope,
    SmoothTerm,
    TermEnvelope,
)
from sparsemodel.numerics.minimisers.feasible import FEASIBLE, in_one_unit, satisfied
from sparsemodel.numerics.minimisers.newton import farthest
from sparsemodel.numerics.objectives.regression import RegressionObjective

_ROUNDS = 100
_SHARPEN = 3.0
"""The smoothing shrinks by this factor a round: few Newton steps each, ten rounds in all."""
_IDLE = 20
"""Rounds in a row that come no nearer, after which none will: the kinks are 1e9 times sharper."""
_EXACT = 1e-12
"""Relative gap, violation and proximal residual at the end."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """A restricted minimiser with what was learnt about it."""

    point: Point
    duals: tuple[FloatArray, ...]
    """For each term, the gradient of its loss that proves the minimum (weights inside)."""
    feasible: bool


def minimise_with_multipliers(
    objective: Objective, support: IntArray, start: Point, near: FloatArray | None = None
) -> Solved:
    """Return ``argmin f(x)`` over the ``x`` on ``support`` in the form's box and region.

    The point's value is ``inf`` when the support admits no feasible point that is found; a
    feasible start on the support is one. Its ``normal`` is what
    the constraints' multipliers add to the gradient.

    Parameters
    ----------
    objective
        Of a vector problem; every loss is twice differentiable or has smooth approximations.
    support
        Sorted indices; free coordinates included.
    start
        Its values on ``support`` are where the search begins.
    near
        Where it begins instead; it need not satisfy the constraints.

    Notes
    -----
    :math:`O(n q^2 + q^3)` for each Newton step in ``q`` unknowns, a few dozen steps in all.
    """
    if not isinstance(objective, RegressionObjective) or len(objective.shape) > 1:
        raise UnsupportedProblemError(
            "Linear constraints and bounds on a norm are kept for vector variables, and this "
            "variable is a matrix. Leave them out and add a ridge, or bound the entries."
        )
    form = objective.form
    v = (start.x if near is None else near)[support].copy()
    terms = _terms(form, objective, support, v)
    function = _Augmented(list(terms), form.ridge[support], v)
    curvature, inner, scale = function.prepare(v, terms)
    constraints = _constraints(form, support, curvature)
    function.parts += constraints
    box = form.ends_on(support).chosen
    possible = all(part.possible for part in constraints)
    last, left, far = np.inf, budget(), farthest(objective)
    stuck, idle, least = 0, 0, np.inf
    for _ in range(_ROUNDS if possible else 0):
        function.center = v
        v = inner.minimiser(v, box.lower, box.upper, tol=1e-13 * scale, far=far)
        if float(np.linalg.norm(v)) > far:
            break
        moved = float(np.linalg.norm(inner.units * function.proximal * (v - function.center)))
        function.evaluate(v)
        gap, size = sum(part.gap() for part in terms), sum(part.size() for part in terms)
        residual = max((part.residual() for part in constraints), default=0.0)
        for part in function.parts:
            part.update()
        for part in terms:
            part.sharpen(_SHARPEN)
        if gap <= _EXACT * size and residual <= _EXACT and moved <= _EXACT * scale:
            break
        error = max(gap / max(size, 1e-300), residual, moved / scale)
        idle = 0 if error < least else idle + 1
        least = min(least, error)
        if idle == _IDLE:
            break
        if residual > max(0.25 * last, _EXACT):
            stuck += 1
            for part in constraints:
                part.stiffen(5.0)
            if stuck % 4 == 3 and not _can_be_feasible(constraints, box.lower, box.upper):
                break
        last = residual
        function.proximal = 0.5 * function.proximal
        if left.over() and (_within(constraints) or _stands(form, support, start)):
            break  # never without a feasible point: that would be reported as infeasible
    v = _held_at_zero(function, constraints, v, curvature, box) if possible else v
    feasible = possible and _within(constraints)
    point = objective.point(support, v)
    if not feasible and _stands(form, support, start):
        feasible, point = True, objective.point(support, start.x[support])
    elif not feasible:
        point = replace(point, value=np.inf)
    spectra = [part for part in constraints if isinstance(part, SpectrumEnvelope)]
    if feasible and spectra:
        point = _drawn_in(objective, spectra, point, support)
    if constraints:
        normal = sum((c.normal(form.sparsity.size) for c in constraints), np.zeros(1))
        point = replace(point, normal=normal)
    return Solved(point, tuple(part.dual() for part in terms), feasible)


def _held_at_zero(
    function: _Augmented,
    constraints: Sequence[ConstraintEnvelope],
    v: FloatArray,
    curvature: FloatArray,
    box: Box,
) -> FloatArray:
    """Return ``v``, where it is not feasible with zero for what is rounding.

    Entries that constraints hold at zero have nothing else in their rows.
    """
    if _within(constraints):
        return v
    units = np.sqrt(curvature)
    natural = np.max(units * np.abs(v), initial=0.0) / units
    v = np.clip(np.where(np.abs(v) <= _EXACT * natural, 0.0, v), box.lower, box.upper)
    function.evaluate(v)
    return v


def _drawn_in(
    objective: Objective, spectra: list[SpectrumEnvelope], point: Point, support: IntArray
) -> Point:
    """Return a point nearby with all eigenvalues inside their bounds, where others hold as well."""
    x = point.x
    for part in spectra:
        x = part.drawn_in(x)
    moved = objective.point(support, x[support])
    return moved if satisfied(objective.form, x) and np.isfinite(moved.value) else point


@final
class _Augmented:
    """The smooth function of one round: parts, ridge, and the proximal term."""

    def __init__(self, parts: list[Envelope], ridge: FloatArray, center: FloatArray) -> None:
        self.parts = parts
        self.center = center
        self.proximal: FloatArray = np.zeros_like(ridge)
        self._ridge = ridge

    def prepare(
        self, v: FloatArray, terms: Sequence[TermEnvelope]
    ) -> tuple[FloatArray, _InUnits, float]:
        """Set the proximal weights; return curvatures, the function in units, and its steepness.

        A curvature that is small at ``v`` is judged by the column's size, not by the curvature of
        the other columns: these may have other units, and where there is none anywhere, as among
        outliers of the Huber loss, by the most that losses have. In the units that are chosen,
        powers of two, all curvatures are near one. Where curvatures have no limit, zero may be far
        out: the gradient there counts up to the size of what adds up to the one at ``v``.
        """
        gradients = [self.evaluate(at)[1] for at in (np.zeros_like(v), v)]
        reach = sum((part.reach() for part in terms), self._ridge * np.abs(v))
        diagonal = np.diag(self.hessian(v))
        mean = float(diagonal.mean()) if diagonal.size and diagonal.mean() > 0.0 else 1.0
        squares = sum((part.squares() for part in terms), np.zeros(v.size))
        known = squares > 0.0
        losses = diagonal - self._ridge  # a ridge bends the loss of no other column
        bend = np.divide(losses, squares, out=np.zeros(v.size), where=known).max(initial=0.0)
        bend = bend or max((part.bend for part in terms), default=0.0)
        typical = np.where(known & (bend > 0.0), bend * squares, mean)
        flat = self._ridge < 1e-6 * typical
        curvature = np.maximum(diagonal, 1e-3 * typical)
        self.proximal = np.where(flat, 1e-3 * curvature, 0.0)
        units = np.exp2(-np.round(0.5 * np.log2(np.clip(curvature, 1e-300, 1e300))))
        sizes = [float(np.linalg.norm(units * gradient)) for gradient in gradients]
        most = float(np.linalg.norm(units * reach)) if any(p.endless for p in terms) else np.inf
        return curvature, _InUnits(self, units), max(min(max(sizes), most), 1e-300)

    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        step = v - self.center
        value = 0.5 * float(np.dot(self._ridge, v * v) + np.dot(self.proximal, step * step))
        gradient = self._ridge * v + self.proximal * step
        for part in self.parts:
            more, slope = part.evaluate(v)
            value += more
            gradient = gradient + slope
        return value, gradient

    def hessian(self, v: FloatArray) -> FloatArray:
        total = np.diag(self._ridge + self.proximal)
        for part in self.parts:
            total += part.hessian()
        return total


@final
class _InUnits:
    """A function of unknowns in other units: ``u -> f(units * u)``."""

    def __init__(self, function: _Augmented, units: FloatArray) -> None:
        self._function, self.units = function, units

    def evaluate(self, u: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = self._function.evaluate(self.units * u)
        return value, self.units * gradient

    def minimiser(
        self, v: FloatArray, lower: FloatArray, upper: FloatArray, *, tol: float, far: float
    ) -> FloatArray:
        """Return a minimiser between bounds from ``v``, all in the units outside."""
        units = self.units
        ends, beyond = (lower / units, upper / units), far / float(units.min(initial=np.inf))
        return units * box_newton(self, v / units, *ends, tol=tol, far=beyond, max_iter=60)

    def hessian(self, u: FloatArray) -> FloatArray:
        both = self.units[:, None] * self.units
        return both * self._function.hessian(self.units * u)


def require_steps(form: SparseRegression) -> None:
    """Raise an error that names a loss for which no minimiser on a support is known."""
    for term in form.terms:
        if not (term.traits.has_hessian or term.traits.smoothable):
            raise UnsupportedProblemError(
                f"{term.loss.name} has neither a second derivative nor smooth approximations, and "
                "nothing here minimises it without: inherit Curved and write second_derivative, or "
                "inherit Smoothable."
            )


def _terms(
    form: SparseRegression, objective: RegressionObjective, support: IntArray, v: FloatArray
) -> tuple[TermEnvelope, ...]:
    out: list[TermEnvelope] = []
    for term, design in zip(form.terms, objective.columns(support), strict=True):
        if term.traits.has_hessian:
            out.append(SmoothTerm(term, design))
        elif term.traits.smoothable:
            out.append(NonsmoothTerm(term, design, v))
        else:
            require_steps(form)
    return tuple(out)


def _constraints(
    form: SparseRegression, support: IntArray, curvature: FloatArray
) -> list[ConstraintEnvelope]:
    if form.region is None:
        return []
    rows = [RowsEnvelope(part, support, curvature) for part in form.region.linear]
    balls = [BallEnvelope(part, support, curvature) for part in form.region.balls]
    diamonds = [OneNormEnvelope(part, support, curvature) for part in form.region.one_norms]
    images = [ImageEnvelope(part, support, curvature) for part in form.region.images]
    spectra = [SpectrumEnvelope(part, support, curvature) for part in form.region.spectra]
    return [*rows, *balls, *diamonds, *images, *spectra]


def _within(constraints: Sequence[ConstraintEnvelope]) -> bool:
    return max((part.violation() for part in constraints), default=0.0) <= FEASIBLE


def _stands(form: SparseRegression, support: IntArray, start: Point) -> bool:
    """Return whether the start vanishes outside ``support`` and is feasible: then it is kept."""
    inside = np.zeros(start.x.shape, dtype=bool)
    inside[support] = True
    return not np.any(start.x[~inside]) and satisfied(form, start.x)


def _can_be_feasible(
    constraints: Sequence[ConstraintEnvelope], lower: FloatArray, upper: FloatArray
) -> bool:
    """Return whether the linear constraints and the bounds are compatible, by a linear program."""
    from scipy.optimize import linprog

    rows = [part for part in constraints if isinstance(part, RowsEnvelope)]
    if not rows or not lower.size:
        return not rows or all(part.violation() <= FEASIBLE for part in rows)
    parts = [(part.matrix, part.lower, part.upper) for part in rows]
    matrix, low, high, bounds, _ = in_one_unit(parts, lower, upper)
    both = np.concatenate([matrix, -matrix])
    limits = np.concatenate([high, -low])
    kept = np.isfinite(limits)
    found = linprog(
        np.zeros(lower.size),
        A_ub=both[kept],
        b_ub=limits[kept],
        bounds=bounds,
        method="highs",
    )
    return bool(found.status != 2)  # 2: infeasible
