"""The objective of a sparse regression: sums of losses over designs, with a ridge."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import (
    Access,
    Curved,
    Design,
    FloatArray,
    IntArray,
    NormBound,
    Objective,
    Point,
    SparseRegression,
    Term,
    TwiceDifferentiable,
    Work,
)
from sparsemodel.interfaces.numeric import rowwise
from sparsemodel.numerics.budget import too_late_to_read
from sparsemodel.numerics.objectives.columns import SupportColumns
from sparsemodel.numerics.objectives.hessians import derivatives, hessian_of_outputs
from sparsemodel.numerics.objectives.lower_bounds import BestBound, StrongConvexityBound

_BALANCED = 1e-6
"""Share of the pull on an unpenalised coordinate that may be left where a bound is looked for."""

_FAINT = 1e-10
"""Share of the largest pull of an observation below which it does not count for a ranking."""

_SQUARES = 16
"""Numbers of a Hessian for each of a gradient, up to which both come from one reading."""

_ROOT = 2**24
"""Entries up to which columns are written out with their weights (128 MB)."""


class OfRegression(Objective):
    """What the objectives of regressions have in common, wherever their data are."""

    def __init__(
        self, form: SparseRegression, gradient_at_zero: FloatArray | None, work: Work | None
    ) -> None:
        super().__init__(work)
        self._form, self._traits = form, form.traits
        self._gradient_at_zero = gradient_at_zero

    @property
    def form(self) -> SparseRegression:
        return self._form

    @property
    def quadratic(self) -> bool:
        return self._traits.quadratic

    @property
    def smooth(self) -> bool:
        return self._traits.smooth

    @property
    def twice_differentiable(self) -> bool:
        return self._traits.has_hessian

    def origin(self) -> Point:
        return self._origin

    @cached_property
    def _origin(self) -> Point:  # made once: asking again must not push columns out
        return super().origin().with_gradient(self._gradient_at_zero)


@final
class RegressionObjective(OfRegression):
    r"""Evaluate :math:`f(x) = \sum_t F_t(A_t x + o_t) + \frac12 \sum_j \lambda_j x_j^2 + const`.

    A point carries its predictions, so a value costs the product with the columns of its
    support and a gradient costs one ``A.T @ r`` per term. The columns of the last support are
    kept (``n |support|`` numbers), and only those that change are read again; for quadratic
    losses so is their Gram matrix.

    ``bounds`` keeps the best of the lower bounds that came with the gradients (each costs O(p)
    on top of the gradient); see :mod:`sparsemodel.numerics.objectives.lower_bounds`.
    """

    def __init__(
        self,
        form: SparseRegression,
        *,
        gradient_at_zero: FloatArray | None = None,
        work: Work | None = None,
    ) -> None:
        super().__init__(form, gradient_at_zero, work)
        self._ridge = form.ridge
        self._cheap = all(Access.COLUMNS in term.design.access for term in form.terms)
        self._columns = SupportColumns(form.terms)
        self.bounds = BestBound()
        self._last_read: list[Point] = []

    # ---- values ------------------------------------------------------------------------------

    def point(self, support: IntArray, values: FloatArray) -> Point:
        if not values.any():
            predictions = tuple(
                np.zeros((t.design.shape[0], *self.shape[1:])) for t in self._form.terms
            )
            return self.predicted(support, values, predictions)
        if not self._cheap and self._read_at_once(support):
            return self._point_in_one_reading(support, values)
        predictions = tuple(design.matvec(values) for design in self.columns(support))
        self.work.products += 1
        self._count_restricted()
        return self.predicted(support, values, predictions)

    def predicted(
        self, support: IntArray, values: FloatArray, predictions: tuple[FloatArray, ...]
    ) -> Point:
        """Return a point whose predictions are known."""
        x = np.zeros(self.shape)
        x[support] = values
        return Point(x, support, self.value_at(support, values, predictions), predictions)

    def _read_at_once(self, support: IntArray) -> bool:
        """Return whether a reading that predicts had better bring all else that is asked for."""
        if self._traits.quadratic or not self._in_one_reading:
            return False
        self.columns(support)
        return not self._columns.at_hand

    def _point_in_one_reading(self, support: IntArray, values: FloatArray) -> Point:
        """Return a point with its gradient, and its Hessian where that is cheap beside it."""
        for known in self._last_read:
            if np.array_equal(known.support, support) and np.array_equal(known.x[support], values):
                return known
        few = support.size**2 <= _SQUARES * self.shape[0]
        found, gradient, hessian = derivatives(self._form, support, values, hessian=few)
        self.work.passes += 0.5
        self.work.gradients += 1
        at = self.predicted(support, values, found)
        at.memo.gradient, at.memo.hessian = gradient, hessian
        if self._has_bound:
            self._keep_bound(at, gradient, self.prediction_gradients(at))
        self._last_read[:] = [at]
        return at

    def value_at(
        self, support: IntArray, values: FloatArray, predictions: tuple[FloatArray, ...]
    ) -> float:
        """Return the value of coordinates whose predictions are known."""
        total = self._form.constant
        for term, z in zip(self._form.terms, predictions, strict=True):
            total += term.loss.total(margins(term, z), term.target, term.weights)
        if not support.size:
            return total
        # Not ridge times squares: those of small coefficients underflow.
        rooted = rowwise(np.sqrt(self._ridge[support]), values)
        return total + 0.5 * float(np.vdot(rooted, rooted))

    # ---- gradients ---------------------------------------------------------------------------

    def prediction_gradients(self, at: Point) -> tuple[FloatArray, ...]:
        """Return the gradient of each term in its predictions (weights inside)."""
        return tuple(
            term.loss.gradient(margins(term, z), term.target, term.weights)
            for term, z in zip(self._form.terms, at.state, strict=True)
        )

    def gradient(self, at: Point) -> FloatArray:
        if at.gradient is None:
            self.work.gradients += 1
            pulls = self.prediction_gradients(at)
            at.memo.gradient = out = self._with_ridge(at, pulls)
            if self._has_bound:
                self._keep_bound(at, out, pulls)
            return out
        return at.gradient

    def _keep_bound(self, at: Point, gradient: FloatArray, pulls: tuple[FloatArray, ...]) -> None:
        """Keep the bound of a point if it is the best; a balanced point where none can be stated.

        Unpenalised coordinates leave a bound only where their gradient vanishes exactly. Where it
        nearly does, the point is worth a certificate's care, and nothing is claimed about it here.
        """
        merit = self._ridge_bound(at, gradient)
        if self.bounds.no_better(at, merit):
            return
        left = gradient[self._ridge_bound.unpenalised]
        if left.size and np.any(np.abs(left) > _BALANCED * self._ridge_bound.pull(pulls)):
            return
        self.bounds.offer(at, merit, proved=not (left.size and left.any()))

    @cached_property
    def _has_bound(self) -> bool:
        ridged = self._ridge[self._form.sparsity.counted]
        return ridged.size > 0 and bool((ridged > 0.0).all())

    @cached_property
    def _ridge_bound(self) -> StrongConvexityBound:
        return StrongConvexityBound(self._form)

    def bound_at(self, point: Point) -> None:
        """Take the gradient at ``point`` if the bounds so far say no more than the infimum does.

        Half a pass, after plans that never looked at a gradient of a point as good; nothing without
        a ridge, or where time is up and the data take long to read.
        """
        needed = self._has_bound and self.smooth and not self.bounds.merit > self.infimum()
        needed = needed and not self.bounds.looked_at(point)
        if needed and not too_late_to_read(term.design for term in self._form.terms):
            self.gradient(point)

    def ranking_gradient(self, at: Point) -> FloatArray:
        """Return the gradient up to errors that do not change which entries are large.

        Where few observations still pull (nearly separable classes, hinges), the others, whose
        pull is below ``1e-10`` of the largest, are left out and their rows not read. Such a
        gradient is not kept. Everywhere else this is :meth:`gradient`.
        """
        if at.gradient is not None:
            return at.gradient
        pulls = [without_faint(r) for r in self.prediction_gradients(at)]
        many = sum(map(np.count_nonzero, pulls)) > 0.3 * sum(r.size for r in pulls)
        if many or at.x.ndim > 1:
            return self.gradient(at)
        self.work.gradients += 1
        return self._with_ridge(at, pulls)

    def _with_ridge(self, at: Point, pulls: Iterable[FloatArray]) -> FloatArray:
        out = rowwise(self._ridge, at.x)
        for term, r in zip(self._form.terms, pulls, strict=True):
            out += term.design.rmatvec(r)
        self.work.passes += 0.5
        return out

    def steepness(self, support: IntArray, size: float) -> float:
        everywhere = self._traits.everywhere
        at = self._origin if everywhere else self._inside
        own = float(np.linalg.norm(self.restricted_gradient(at, support)))
        return max(size, own) if everywhere else own

    @cached_property
    def _inside(self) -> Point:
        """Return ordinary predictions, of no coefficients."""
        states = tuple(
            z if term.traits.everywhere else term.loss.inside(term.target) - margins(term, 0.0 * z)
            for term, z in zip(self._form.terms, self._origin.state, strict=True)
        )
        return replace(self._origin, state=states).with_gradient(None)

    def restricted_gradient(self, at: Point, support: IntArray) -> FloatArray:
        if at.gradient is not None:
            return at.gradient[support]
        if not self._cheap and self._read_at_once(support):
            return self.gradient(at)[support]  # for the same reading
        out = rowwise(self._ridge[support], at.x[support])
        for design, r in zip(self.columns(support), self.prediction_gradients(at), strict=True):
            out += design.rmatvec(r)
        self.work.products += 1
        self._count_restricted()
        return out

    # ---- curvature ---------------------------------------------------------------------------

    def hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        out = rowwise(self._ridge[support], v)
        for term, z, design in zip(self._form.terms, at.state, self.columns(support), strict=True):
            loss = cast("TwiceDifferentiable", term.loss)
            w = loss.hessian_product(margins(term, z), term.target, term.weights, design.matvec(v))
            out += design.rmatvec(w)
        self.work.products += 2
        self._count_restricted(2)
        return out

    def full_hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        out = np.zeros(self.shape)
        out[support] = rowwise(self._ridge[support], v)
        for term, z, design in zip(self._form.terms, at.state, self.columns(support), strict=True):
            loss = cast("TwiceDifferentiable", term.loss)
            w = loss.hessian_product(margins(term, z), term.target, term.weights, design.matvec(v))
            out += term.design.rmatvec(w)
        self.work.passes += 0.5
        return out

    def hessian_diagonal(self, at: Point, support: IntArray) -> FloatArray:
        if len(self.shape) > 1 or not self._traits.curved:
            return super().hessian_diagonal(at, support)
        out = self._ridge[support].copy()
        for term, z, design in zip(self._form.terms, at.state, self.columns(support), strict=True):
            out += design.column_square_norms(curvatures_of(term, z))
        return out

    def hessian(self, at: Point, support: IntArray) -> FloatArray:
        if len(self.shape) > 1 or not self._traits.curved:
            u = tuple(map(margins, self._form.terms, at.state))
            self._count_restricted(support.size * math.prod(self.shape[1:]))
            return hessian_of_outputs(self._form, u, self.columns(support), support)
        if at.memo.hessian is not None and np.array_equal(support, at.support):
            return at.memo.hessian
        weights = tuple(map(curvatures_of, self._form.terms, at.state))
        if self._traits.quadratic:
            total = self._columns.gram(support, weights)
        else:
            total = np.zeros((support.size, support.size))
            for design, h in zip(self.columns(support), weights, strict=True):
                total += design.gram(h)
        self._count_restricted(1 if self._in_one_reading else support.size)
        total[np.diag_indices_from(total)] += self._ridge[support]
        return total

    def hessian_root(self, at: Point, support: IntArray) -> FloatArray | None:
        """Return the columns times the roots of their weights above those of the ridge."""
        rows = sum(term.design.shape[0] for term in self._form.terms)
        curved = len(self.shape) == 1 and self._traits.curved
        if not curved or rows * support.size > _ROOT or not self.explicit_hessian(support):
            return None
        parts = [np.diag(np.sqrt(self._ridge[support]))]
        for term, z, design in zip(self._form.terms, at.state, self.columns(support), strict=True):
            h = np.maximum(curvatures_of(term, z), 0.0)
            parts.append(np.sqrt(h)[:, None] * design.to_array())
        return np.concatenate(parts)

    # ---- columns -----------------------------------------------------------------------------

    def columns(self, support: IntArray) -> tuple[Design, ...]:
        """Return each term's design on ``support``; the last ones are kept."""
        if self._cheap:
            return self._columns.designs(support)
        changed = not self._columns.holds(support)
        designs = self._columns.designs(support)
        # Out of core, the columns are read in half a pass and then at hand.
        if changed and self._columns.at_hand and support.size:
            self.work.passes += 0.5
        return designs

    def explicit_hessian(self, support: IntArray) -> bool:
        if not self._cheap:
            self.columns(support)
        return self._cheap or self._columns.at_hand or self._in_one_reading

    @property
    def _in_one_reading(self) -> bool:
        """Return whether a Hessian costs one reading of files, where every product costs some."""
        plain = len(self.shape) == 1 and self._traits.curved
        return plain and all(term.design.streamed for term in self._form.terms)

    def _count_restricted(self, products: int = 1) -> None:
        if not (self._cheap or self._columns.at_hand):
            self.work.passes += 0.5 * products

    # ---- constants ---------------------------------------------------------------------------

    def smoothness(self) -> NormBound:
        total, kinds = 0.0, set()
        for term in self._form.terms:
            norm = term.design.spectral_norm()
            self.work.passes += 10.0 if norm.kind == "estimate" else 0.0
            total += term.traits.upper * float(term.weights.max(initial=0.0)) * norm.value**2
            kinds.add(norm.kind)
        total += float(self._ridge.max(initial=0.0))
        kind = next((k for k in ("estimate", "upper") if k in kinds), "exact")
        return NormBound(total, kind)  # type: ignore[arg-type]

    def strong_convexity(self) -> float:
        return float(self._ridge.min(initial=np.inf)) if self._ridge.size else 0.0

    def infimum(self) -> float:
        return self._infimum

    @cached_property
    def _infimum(self) -> float:
        return self._form.infimum()


def predictions(objective: Objective, at: Point) -> tuple[FloatArray, ...]:
    """Return ``A x`` for each term: known where the observations are here, else half a pass."""
    if isinstance(at.state, tuple):
        return at.state
    objective.work.passes += 0.5
    terms = cast("SparseRegression", objective.form).terms
    return tuple(term.design.matvec(at.x) for term in terms)


def margins(term: Term, z: FloatArray) -> FloatArray:
    """Return ``A x + o`` from ``A x``."""
    return z if term.offset is None else z + term.offset


def curvatures_of(term: Term, z: FloatArray) -> FloatArray:
    """Return the weights of the observations in the Hessian. Only where ``traits.curved``."""
    loss = cast("Curved", term.loss)
    return term.weights * loss.second_derivative(margins(term, z), term.target)


def without_faint(r: FloatArray) -> FloatArray:
    """Return ``r`` with zeros where it is below ``1e-10`` of its largest entry."""
    return np.where(np.abs(r) > _FAINT * np.abs(r).max(initial=0.0), r, 0.0)
