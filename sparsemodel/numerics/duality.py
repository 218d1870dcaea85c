r"""The dual of a sparse regression with a ridge, as the dual methods maximise it.

With :math:`\theta_t = c_t \circ a_t` (weights inside) and :math:`q = \sum_t A_t^\top \theta_t`,

.. math:: D(a) = \sum_t \Big( \theta_t^\top o_t - \sum_i c_{ti}\, \ell_t^*(a_{ti}) \Big)
          - \text{the } k \text{ largest } \frac{q_u^2}{2 \lambda_u} + \text{constant}

bounds the problem from below for every ``a`` in the domain of the conjugates, and
:math:`w(a) = H_k(-q / \lambda)` is where the minimum over ``w`` is taken (Yuan, Liu, Wang, Liu and
Metaxas, JMLR 2020, Section 2). Groups, prices, bounds and unequal ridges enter the selection.
"""

from __future__ import annotations

from typing import TypeAlias, cast

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    IntervalConjugable,
    Objective,
    SparseRegression,
)
from sparsemodel.numerics.support.selection import top_k

Dual: TypeAlias = tuple[FloatArray, ...]
"""``a``, one array per term, without the weights."""

_POWER_STEPS = 2000
"""Steps of a power iteration at most; it ends when the norm does not grow any more."""
_DIFFERENCE = 1e-6
"""Relative width of the difference quotients of a conjugate."""


def primal_of(form: SparseRegression, q: FloatArray) -> tuple[IntArray, FloatArray, float]:
    r"""Return the support and the values of ``w(a)``, and the minimum over ``w`` it attains.

    Within bounds every coordinate has :math:`w_j = \mathrm{clip}(-q_j / \lambda_j)`, and being in
    the support gains :math:`-q_j w_j - \lambda_j w_j^2 / 2`, which is
    :math:`q_j^2 / (2 \lambda_j)` where no bound binds. The minimum is minus the largest sum of
    gains, plus the price of each unit.
    """
    sparsity, ridge, box = form.sparsity, form.ridge, form.box
    if box is None:
        gains = np.square(q / np.sqrt(ridge))  # squares of small numbers would underflow
        gains *= 0.5
    else:
        inside = np.clip(-q / ridge, box.lower, box.upper)
        gains = -inside * (q + 0.5 * ridge * inside)
    units = sparsity.unit_scores(gains)
    chosen = top_k(units, sparsity.budget)
    chosen = chosen[units[chosen] > sparsity.price]
    support = sparsity.coordinates(chosen)
    least = -float(gains[support].sum()) + sparsity.price * chosen.size
    values = -q[support] / ridge[support] if box is None else inside[support]
    return support, values, least


def dual_value(form: SparseRegression, a: Dual, least: float) -> float:
    """Return ``D(a)`` from ``a`` and the minimum over ``w``, in plain arithmetic.

    A certificate recomputes it with its rounding accounted for.
    """
    total = form.constant + least
    for term, part in zip(form.terms, a, strict=True):
        conjugate = cast("IntervalConjugable", term.loss).conjugate(part, term.target)
        # A weight of zero makes its observation vanish, even where the conjugate is infinite.
        used = term.weights > 0.0
        total -= float(np.dot(term.weights[used], conjugate[used]))
        if term.offset is not None:
            total += float(np.dot(term.weights * part, term.offset))
    return total


def conjugate_slope(loss: IntervalConjugable, a: FloatArray, y: FloatArray) -> FloatArray:
    r"""Return :math:`(\ell^*)'(a)`, by a difference quotient that stays in the domain.

    Exact up to rounding where the conjugate is quadratic or linear, at the ends of the domain as
    well, where it is that of the parabola through three points. Where the slope is infinite there
    (logistic loss) it is finite and points inwards.
    """
    low, high = loss.dual_interval(y)
    width = np.minimum(high - low, 1.0 + np.abs(a))
    h = _DIFFERENCE * width
    middle = np.clip(a, low + h, high - h)
    left, right = np.maximum(middle - h, low), np.minimum(middle + h, high)
    rise, drop = loss.conjugate(right, y), loss.conjugate(left, y)
    out, inside = np.zeros_like(a), right > left
    np.divide(rise - drop, right - left, out=out, where=inside)
    moved = inside & (middle != a)
    if np.any(moved):
        bend = (rise + drop - 2.0 * loss.conjugate(middle, y))[moved] / h[moved] ** 2
        out[moved] += bend * (a - middle)[moved]
    return out


def constant_step(form: SparseRegression) -> float:
    r"""Return the step that is right on the support of the solution; 0 where there is none.

    In units of the weights. Theorems 17 and 22 have :math:`\mu_D / \ell_D^2` with
    :math:`\mu_D = \mu / n`. By Lemma 31(a), :math:`\ell_D = \ell / n + \|X\|^2 / (\lambda n^2)`
    while the support is that of the solution; with other supports it is larger (31(b)). The step,
    over ``n``, is
    :math:`\mu / (\ell + \|C^{1/2} X \Lambda^{-1/2}\|^2)^2` for losses that are
    :math:`1/\mu`-smooth and :math:`1/\ell`-strongly convex. The norm comes from a power iteration,
    a pass each.
    """
    low, high = form.traits.lower, form.traits.upper
    if not (low > 0.0 and np.isfinite(high)):
        return 0.0
    root = 1.0 / np.sqrt(form.ridge)
    v = np.random.default_rng(0).standard_normal(form.sparsity.size)
    square = last = 0.0
    for _ in range(_POWER_STEPS):
        v /= float(np.linalg.norm(v)) or 1.0
        image = np.zeros_like(v)
        for term in form.terms:
            image += term.design.rmatvec(term.weights * term.design.matvec(root * v))
        v = root * image
        last, square = square, float(np.linalg.norm(v))
        if square - last <= 1e-13 * square:
            break
    return (1.0 / high) / (1.0 / low + square) ** 2


def project_dual(form: SparseRegression, a: Dual) -> Dual:
    """Return ``a`` moved into the domains of the conjugates."""
    return tuple(
        cast("IntervalConjugable", term.loss).project_dual(part, term.target)
        for term, part in zip(form.terms, a, strict=True)
    )


def weighted(form: SparseRegression, a: Dual) -> Dual:
    """Return ``theta = c * a``: the dual point as gradients of the terms, weights inside."""
    return tuple(term.weights * part for term, part in zip(form.terms, a, strict=True))


def correlations(objective: Objective, a: Dual) -> FloatArray:
    """Return ``q``, the sum of ``A.T @ (c * a)`` over the terms; half a pass."""
    form = cast("SparseRegression", objective.form)
    q = np.zeros(form.sparsity.size)
    for term, theta in zip(form.terms, weighted(form, a), strict=True):
        q += term.design.rmatvec(theta)
    objective.work.passes += 0.5
    return q


def shrink_dual(form: SparseRegression, a: Dual, q: FloatArray) -> float:
    """Return the ``s`` in (0, 1] that makes ``D(s a)`` largest, given the correlations of ``a``.

    ``s a`` is feasible when zero is, its correlations are ``s q`` and ``D`` is concave along it, so
    the search reads no data: ``O(n)`` (with a price or bounds ``O(p)``) for each of some forty
    values.
    Returns 1 when zero is not in the domain.
    """
    from scipy.optimize import minimize_scalar

    for term in form.terms:
        zero = np.zeros(term.target.shape)
        used = term.weights > 0.0
        at_zero = cast("IntervalConjugable", term.loss).conjugate(zero, term.target)[used]
        if not np.all(np.isfinite(at_zero)):
            return 1.0
    unit = primal_of(form, q)[2]
    homogeneous = form.sparsity.price == 0.0 and form.box is None

    def lost(s: float) -> float:
        least = s * s * unit if homogeneous else primal_of(form, s * q)[2]
        return -dual_value(form, tuple(s * part for part in a), least)

    # The best factor may be tiny: it is sought by its size.
    found = minimize_scalar(
        lambda e: lost(float(np.exp(e))),
        bounds=(np.log(1e-8), 0.0),
        method="bounded",
        options={"xatol": 1e-4},
    )
    s = float(np.exp(found.x))
    return s if lost(s) < lost(1.0) else 1.0


def unpenalised_free(form: SparseRegression) -> bool:
    """Return whether a coordinate that is always in has no ridge."""
    return bool(np.any(form.ridge[form.sparsity.free] <= 0.0))
