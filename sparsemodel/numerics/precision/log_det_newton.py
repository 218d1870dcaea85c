r"""Newton's method for the Gaussian likelihood on a support, without eigenvalue bounds.

In the entries :math:`x` of the support, :math:`f(x) = -\log\det\Omega + \langle S,\Omega\rangle`
has, with :math:`W = \Omega^{-1}` and :math:`c` the multiplicities,

.. math:: \nabla f = c \circ (S - W)_F, \qquad
          \nabla^2 f\, v = c \circ (W V W)_F, \qquad
          (\nabla^2 f)_{ab} = \tfrac{c_a c_b}{2}(W_{ik} W_{jl} + W_{il} W_{jk})

for entries :math:`a = (i,j)`, :math:`b = (k,l)`. It is self-concordant, so the Newton decrement
measures the distance to the optimum in nats, whatever the units of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray
from sparsemodel.numerics.budget import budget, cholesky_cost, inverse_cost
from sparsemodel.numerics.precision.cholesky import Factor, factorise
from sparsemodel.numerics.precision.pattern import Pattern
from sparsemodel.numerics.precision.products_compiled import product_on
from sparsemodel.threads import keep_to_one

FULL_ACCURACY = 1e-4
"""Newton decrement before the last step; the step squares it, to the rounding of the value."""

DIRECT_LIMIT = 1500
"""Entries up to which the Hessian may be formed and factored."""

_MAX_CG = 500
_ARMIJO = 1e-4


@final
@dataclass(frozen=True, slots=True, eq=False)
class NewtonResult:
    """Where Newton's method ended."""

    factor: Factor
    value: float
    decrement: float
    """Newton decrement at the last step; about ``sqrt(2 (f - f*))`` when small."""
    converged: bool
    escaped: bool
    """A diagonal entry passed the ceiling: the optimum lies beyond it, or does not exist."""
    late: bool = False
    """Time was up; the matrix is definite and on the support, and not the optimum."""


_STEPS = 200
"""Newton steps at most."""


def minimise_newton(
    S: FloatArray,
    pattern: Pattern,
    start: Factor,
    *,
    tol: float = FULL_ACCURACY,
    ceiling: FloatArray | None = None,
) -> NewtonResult:
    """Minimise the likelihood over matrices on ``pattern``, from ``start`` (on ``pattern``).

    Parameters
    ----------
    tol
        Newton decrement below which one more step is the last. The error is ``tol**2 / 2`` nats
        before that step and far less after it.
    ceiling
        Give up once a diagonal entry exceeds its own; None for no limits.

    Notes
    -----
    O(p^3) per conjugate-gradient step, or ``O(p (p + size))`` where the support is sparse enough
    for that to be less; small supports factor their Hessian instead.
    """
    c = pattern.multiplicity
    s = pattern.gather(S)
    factor = start
    x = pattern.gather(factor.omega)
    value = float(np.dot(c * s, x)) - factor.logdet
    decrement = np.inf
    step_cost = inverse_cost(pattern.order) + 2.0 * cholesky_cost(pattern.order)
    for _ in range(_STEPS):
        if not budget().fits(step_cost) or budget().over():
            return NewtonResult(factor, value, decrement, False, False, late=True)
        gradient = c * (s - pattern.gather(factor.inverse))
        step = _newton_step(factor, pattern, gradient, tol)
        slope = float(np.dot(gradient, step))
        decrement = float(np.sqrt(max(-slope, 0.0)))
        t = 1.0
        # Changes below the rounding of the value decide nothing.
        slack = 1e-14 * (abs(value) + abs(factor.logdet) + pattern.order)
        while True:
            tried = x + t * step
            following = factorise(pattern.scatter(tried))
            if following is not None:
                after = float(np.dot(c * s, tried)) - following.logdet
                if after <= value + _ARMIJO * t * slope + slack:
                    break
            t *= 0.5
            if t < 1e-12:
                return NewtonResult(factor, value, decrement, decrement <= tol, False)
        factor, x, value = following, tried, after
        if decrement <= tol:
            return NewtonResult(factor, value, decrement, True, False)
        if ceiling is not None and np.any(np.diagonal(factor.omega) > ceiling):
            return NewtonResult(factor, value, decrement, False, True)
    return NewtonResult(factor, value, decrement, False, False)


def _newton_step(factor: Factor, pattern: Pattern, gradient: FloatArray, tol: float) -> FloatArray:
    """Return an (inexact) solution of ``H d = -gradient``."""
    m, p = pattern.size, pattern.order
    few = m <= DIRECT_LIMIT and m**2 < 0.08 * p**3  # where measured to be the faster
    if few and product_on(pattern) is None and budget().fits(cholesky_cost(m)):
        solution = _solved(hessian(factor.inverse, pattern), gradient)
        if solution is not None:
            return solution
    return _conjugate_gradients(factor, pattern, gradient, tol)


def _solved(H: FloatArray, gradient: FloatArray) -> FloatArray | None:
    """Return the solution of ``H d = -gradient``, None if ``H``, overwritten, is not definite."""
    from scipy.linalg import cho_factor, cho_solve

    d = 1.0 / np.sqrt(np.diagonal(H))
    H *= d[:, None]
    H *= d[None, :]
    try:
        keep_to_one()
        factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(-d * cho_solve(factor, d * gradient))


def _conjugate_gradients(
    factor: Factor, pattern: Pattern, gradient: FloatArray, tol: float
) -> FloatArray:
    """Solve ``H d = -gradient`` by preconditioned conjugate gradients.

    Ends when a step lowers the quadratic model by less than the forcing term's share of what all
    steps did (Nash and Sofer 1990); the term shrinks with the decrement, which keeps the outer
    convergence superlinear (Dembo, Eisenstat and Steihaug 1982).
    """
    precondition = _preconditioner(factor, pattern)
    product = hessian_operator(factor.inverse, pattern)
    d = np.zeros_like(gradient)
    r = -gradient
    z = precondition(r)
    q = z.copy()
    rz = float(np.dot(r, z))
    total = 0.0
    # Coarse solves need no more than their tolerance; exact ones square it in the last step.
    floor = 1e-2 * tol**2 * min(1.0, (100.0 * tol) ** 2)
    left = budget()
    for iteration in range(1, _MAX_CG + 1):
        if not rz > 0.0:
            break
        Hq = product(q)
        curvature = float(np.dot(q, Hq))
        if not curvature > 0.0:
            break
        step = rz / curvature
        d += step * q
        r -= step * Hq
        lowered = step * rz
        total += lowered
        if iteration * lowered <= max(min(_FORCING, total) * total, floor) or left.over():
            break
        z = precondition(r)
        last, rz = rz, float(np.dot(r, z))
        q = z + (rz / last) * q
    return d


_FORCING = 0.1


_LARGE = 500
"""Order from which such a matrix was measured to save time, on patterns with a sixtieth of all
entries at most."""


def _preconditioner(factor: Factor, pattern: Pattern) -> Callable[[FloatArray], FloatArray]:
    r"""Return ``r -> P r`` with ``P`` close to the inverse of the Hessian.

    On all entries the inverse is :math:`V \mapsto \Omega V \Omega`; its restriction to the
    support is a sparse matrix, worth forming where Hessian products are expensive. Otherwise the
    diagonal of the Hessian serves.
    """
    if pattern.order < _LARGE or 60 * pattern.size > pattern.order**2:
        h = hessian_diagonal(factor.inverse, pattern)
        return lambda r: r / h
    omega = pattern.sparse(pattern.gather(factor.omega))
    by_row, by_col = omega[pattern.rows], omega[pattern.cols]
    P = by_row[:, pattern.rows].multiply(by_col[:, pattern.cols])
    P = P + by_row[:, pattern.cols].multiply(by_col[:, pattern.rows])
    P = (0.5 * P).tocsr()
    return lambda r: P @ r


def hessian_operator(W: FloatArray, pattern: Pattern) -> Callable[[FloatArray], FloatArray]:
    """Return ``v -> H v`` in the entries of ``pattern``."""
    c, product = pattern.multiplicity, product_on(pattern)
    if product is None:
        return lambda v: c * pattern.gather(W @ pattern.scatter(v) @ W)
    return lambda v: c * product(W, v)


def hessian_diagonal(W: FloatArray, pattern: Pattern) -> FloatArray:
    """Return the diagonal of the Hessian: ``W_ii^2``, or ``2 (W_ii W_jj + W_ij^2)``."""
    d = np.diagonal(W)
    cross = pattern.gather(W) ** 2
    h = d[pattern.rows] * d[pattern.cols] + cross
    return np.where(pattern.multiplicity == 1.0, cross, 2.0 * h)


def hessian(W: FloatArray, pattern: Pattern) -> FloatArray:
    """Return the Hessian in the entries of ``pattern``, shape ``(size, size)``."""
    rows, cols, c = pattern.rows, pattern.cols, pattern.multiplicity
    across = W[:, rows]
    along = W[:, cols]
    H = across[rows] * along[cols]
    H += along[rows] * across[cols]
    H *= (0.5 * c)[:, None]
    H *= c[None, :]
    return H


_WITHIN = 1e-3
"""How far inside the bounds, as a share of them, a search with barriers begins."""
_CENTRAL, _REDUCED = 1.0, 0.05
"""Squared Newton decrement, in units of the weight of the barriers, at which that is reduced, and
to what share of itself."""
_BARRIER_STEPS = 300
_NOISE = 4.0 * float(np.finfo(np.float64).eps)
_SINGULAR, _RETREATS = 1e-12, 50
"""Share of a diagonal entry up to which too few digits of the log-determinant are known, and how
many steps are shortened for that before the optimum is taken to lie beyond."""
_ROOT = 2**21
"""Numbers in a matrix whose square is the Hessian of one logarithm, up to which it is formed."""


def minimise_by_barriers(
    S: FloatArray, pattern: Pattern, alpha: float, beta: float, *, gap: float
) -> tuple[Factor, FloatArray] | None:
    r"""Return the minimiser between eigenvalue bounds up to ``gap`` nats, and its dual point.

    Newton's method on the likelihood less :math:`\mu` times the log-determinants of
    :math:`\Omega - \alpha I` and :math:`\beta I - \Omega`, where :math:`\mu` falls until
    :math:`2 p \mu` is the gap (Nesterov and Nemirovski 1994). Unlike those of ADMM, the steps do
    not depend on the units of the variables. None where no matrix lies well within the bounds, and
    when time is up.
    """
    c, s = pattern.multiplicity, pattern.gather(S)
    on_diagonal = pattern.rows == pattern.cols
    inside = np.clip(1.0 / np.maximum(s, 1e-300), (1.0 + _WITHIN) * alpha, (1.0 - _WITHIN) * beta)
    x = np.where(on_diagonal, inside, 0.0)
    least, mu, retreats = 0.5 * gap / pattern.order, 1.0, _RETREATS
    here = _Barriers.at(S, pattern, x, (alpha, beta), mu)
    for _ in range(_BARRIER_STEPS):
        if here is None or budget().over():
            return None
        gradient = c * (s - pattern.gather(here.dual))
        step = here.newton_step(pattern, gradient)
        slope = 0.0 if step is None else float(np.dot(gradient, step))
        # Large entries whose products with S cancel leave a value that is known to so much alone.
        slack = _NOISE * (abs(here.value) + pattern.order + float(np.abs(c * s * x).sum()))
        following, t = None, 1.0
        while step is not None and following is None and t > 1e-10 and retreats:
            tried = x + t * step
            following = _Barriers.at(S, pattern, tried, (alpha, beta), mu)
            if following is not None and following.value > here.value + _ARMIJO * t * slope + slack:
                following = None
            if following is not None and not following.factors[0][1].least_share > _SINGULAR:
                following, retreats = None, retreats - 1
            t *= 0.5
        if not retreats:
            break
        if following is not None:
            x, here = tried, following
        if following is None or -slope <= max(_CENTRAL * mu, slack):
            if mu <= least:
                break
            mu = max(_REDUCED * mu, least)
            here = _Barriers.at(S, pattern, x, (alpha, beta), mu)
    if here is None:
        return None
    return here.factors[0][1], here.dual + pattern.scatter(s - pattern.gather(here.dual))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Barriers:
    """The likelihood with barriers at a matrix: its value, and what it is made of."""

    value: float
    factors: list[tuple[float, Factor]]
    """The logarithms' weights, negative where the matrix is subtracted; itself first."""

    @classmethod
    def at(
        cls,
        S: FloatArray,
        pattern: Pattern,
        x: FloatArray,
        bounds: tuple[float, float],
        mu: float,
    ) -> _Barriers | None:
        """Return the value at the entries ``x``; None outside of the bounds."""
        one = np.where(pattern.rows == pattern.cols, 1.0, 0.0)
        parts = [(1.0, x)]
        parts += [(mu, x - bounds[0] * one)] if bounds[0] > 0.0 else []
        parts += [(-mu, bounds[1] * one - x)] if np.isfinite(bounds[1]) else []
        value, factors = float(np.dot(pattern.multiplicity * pattern.gather(S), x)), []
        for weight, entries in parts:
            factor = factorise(pattern.scatter(entries))
            if factor is None:
                return None
            value -= abs(weight) * factor.logdet
            factors.append((weight, factor))
        return cls(value, factors)

    @property
    def dual(self) -> FloatArray:
        """Return the matrix that is ``S`` on the pattern at the optimum."""
        return np.asarray(sum(weight * factor.inverse for weight, factor in self.factors))

    def newton_step(self, pattern: Pattern, gradient: FloatArray) -> FloatArray | None:
        """Return the solution of ``H d = -gradient``, None where rounding leaves none.

        A Hessian that is not definite in floating point is the square of a matrix that may be.
        """
        parts = (abs(w) * hessian(factor.inverse, pattern) for w, factor in self.factors)
        step = _solved(np.asarray(sum(parts)), gradient)
        return self._step_by_root(pattern, gradient) if step is None else step

    def _step_by_root(self, pattern: Pattern, gradient: FloatArray) -> FloatArray | None:
        r"""Return the same from :math:`H = \sum |w| A^\top A`, :math:`A v = L^{-1} V L^{-\top}`."""
        from scipy.linalg import LinAlgError, solve_triangular

        p, c, roots = pattern.order, pattern.multiplicity, []
        if p * p * pattern.size > _ROOT:
            return None
        for weight, factor in self.factors:
            inverse = solve_triangular(factor.cholesky, np.eye(p), lower=True)
            A = inverse[:, None, pattern.rows] * inverse[None, :, pattern.cols]
            A = 0.5 * np.sqrt(abs(weight)) * c * (A + A.transpose(1, 0, 2))
            roots.append(A.reshape(p * p, pattern.size))
        A = np.concatenate(roots)
        d = 1.0 / np.linalg.norm(A, axis=0)
        R = np.linalg.qr(A * d, mode="r")
        try:
            return np.asarray(-d * solve_triangular(R, solve_triangular(R, d * gradient, trans=1)))
        except LinAlgError:
            return None
