r"""ADMM for the likelihood on a support between eigenvalue bounds.

.. math:: \min_{\alpha I \preceq \Omega \preceq \beta I} -\log\det\Omega + \langle S,\Omega\rangle
          \quad\text{s.t. } \Omega = \Theta,\ \mathrm{supp}(\Theta) \subseteq F

(Yuan, Li and Zhang, JMLR 2018, problem (31) and Appendix D.2), with over-relaxation and residual
balancing (Boyd et al. 2011, sections 3.4.1 and 3.4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray
from sparsemodel.numerics.budget import budget, eigenvalue_cost, eigenvector_cost
from sparsemodel.numerics.precision.log_det_newton import minimise_by_barriers
from sparsemodel.numerics.precision.pattern import Pattern
from sparsemodel.numerics.precision.spectral import eigenvalues, spectral_infimum

RELAXATION = 1.6
_BALANCE_EVERY = 10


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdmmResult:
    """A feasible matrix exactly on the support, with a bound on how far it is from optimal."""

    omega: FloatArray
    value: float
    bound: float
    """Value of the dual: no matrix on the support and within the bounds lies below it."""
    dual: FloatArray
    """The dual point behind ``bound``: ``S`` on the support."""
    iterations: int
    converged: bool


_BRIEFLY, _SMALL = 250, 500
"""Iterations before Newton's method with barriers is tried, and entries of a pattern up to which:
where ADMM converges fast, it does in fewer, and that method takes as long as about so many."""
_NEAR, _TIMES = 1e-6, 100.0
"""Nats between primal and dual value that need no other method: at least, and in units of the
tolerance of ADMM, which leaves about ten where variables are in like units."""


def minimise_between_bounds(
    S: FloatArray,
    pattern: Pattern,
    alpha: float,
    beta: float,
    *,
    start: FloatArray | None = None,
    tol: float = 1e-10,
    max_iter: int = 5000,
    escaped: bool = False,
) -> AdmmResult:
    """Minimise as :func:`minimise_admm` does, and by barriers where that leaves a gap.

    Residuals say little of variables in small units, and ADMM is slow between variables in units
    far apart; the gap between primal and dual value depends on no units. Where the likelihood alone
    has no optimum below the upper bound (``escaped``) ADMM seldom converges, and comes second.
    """
    if pattern.size > _SMALL:
        return minimise_admm(S, pattern, alpha, beta, start=start, tol=tol, max_iter=max_iter)
    near, found = max(_NEAR, _TIMES * tol), None
    if not escaped:
        most = min(_BRIEFLY, max_iter)
        found = minimise_admm(S, pattern, alpha, beta, start=start, tol=tol, max_iter=most)
        if found.converged and found.value - found.bound <= near:
            return found
        start = found.omega
    other = minimise_by_barriers(S, pattern, alpha, beta, gap=1e-3 * near)
    if other is None:
        if found is not None and found.converged:
            return found
        return minimise_admm(S, pattern, alpha, beta, start=start, tol=tol, max_iter=max_iter)
    factor, dual = other
    value = float(np.vdot(S, factor.omega)) - factor.logdet
    bound = spectral_infimum(eigenvalues(dual), alpha, beta)
    if found is None:
        return AdmmResult(factor.omega, value, bound, dual, 0, True)
    if bound < found.bound:
        bound, dual = found.bound, found.dual
    omega = factor.omega
    if found.value < value:
        value, omega = found.value, found.omega
    return AdmmResult(omega, value, bound, dual, found.iterations, True)


def minimise_admm(
    S: FloatArray,
    pattern: Pattern,
    alpha: float,
    beta: float,
    *,
    start: FloatArray | None = None,
    tol: float = 1e-10,
    max_iter: int = 5000,
) -> AdmmResult:
    r"""Minimise the likelihood on ``pattern`` with all eigenvalues in ``[alpha, beta]``.

    Parameters
    ----------
    tol
        Relative size of the primal and dual residuals at which to stop.

    Notes
    -----
    One eigendecomposition an iteration. The multiplier :math:`\Gamma` vanishes on the support, so
    :math:`S - \Gamma` is dual feasible and its :func:`spectral_infimum` bounds the optimum. The
    returned :math:`\Theta` is pulled towards a multiple of the identity by just enough to lie
    within the bounds.
    """
    p = pattern.order
    inside = pattern.scatter(np.ones(pattern.size))
    theta = np.diag(np.clip(1.0 / np.maximum(np.diagonal(S), 1e-300), alpha, beta))
    if start is not None:
        theta = start * inside
    gamma = np.zeros((p, p))
    rho = max(float(np.trace(S)) / p, 1e-300) ** 2
    scale = float(np.linalg.norm(S))
    converged, iteration = False, 0
    left, afterwards = budget(), 2.0 * eigenvalue_cost(p)
    for iteration in range(1, max_iter + 1):
        if left.over() or not left.fits(eigenvector_cost(p), afterwards):
            break
        M = theta - (S - gamma) / rho
        lam, V = np.linalg.eigh(M)
        root = np.sqrt(lam**2 + 4.0 / rho)
        # The positive root without cancellation, whatever the sign of the eigenvalue.
        larger = root + np.abs(lam)
        t = np.where(lam > 0.0, 0.5 * larger, (2.0 / rho) / larger)
        omega = (V * np.clip(t, alpha, beta)) @ V.T
        relaxed = RELAXATION * omega + (1.0 - RELAXATION) * theta
        last, theta = theta, (relaxed - gamma / rho) * inside
        gamma = gamma - rho * (relaxed - theta)
        gamma *= 1.0 - inside  # zero there up to rounding; keep it exact
        primal = float(np.linalg.norm(omega - theta)) / max(float(np.linalg.norm(theta)), 1e-300)
        dual = rho * float(np.linalg.norm(theta - last)) / scale
        if primal <= tol and dual <= tol:
            converged = True
            break
        if iteration % _BALANCE_EVERY == 0:
            ratio = np.sqrt(primal / max(dual, 1e-300))
            if ratio > 2.0 or ratio < 0.5:
                rho *= float(np.clip(ratio, 0.1, 10.0))
    theta = 0.5 * (theta + theta.T)
    theta, spectrum = _pulled_inside(theta, alpha, beta)
    value = float(np.vdot(S, theta)) - float(np.log(spectrum).sum())
    dual_point = S - 0.5 * (gamma + gamma.T)
    bound = spectral_infimum(eigenvalues(dual_point), alpha, beta)
    return AdmmResult(theta, value, bound, dual_point, iteration, converged)


def _pulled_inside(theta: FloatArray, alpha: float, beta: float) -> tuple[FloatArray, FloatArray]:
    """Return a matrix with eigenvalues in ``[alpha, beta]`` on the same support, and them."""
    spectrum = eigenvalues(theta)
    p = theta.shape[0]
    low = max(alpha, 1e-14 * abs(float(spectrum[-1])))
    high = beta
    centre = 0.5 * (alpha + beta) if np.isfinite(beta) else max(2.0 * alpha, float(spectrum[-1]))
    pull = 0.0
    if spectrum[0] < low:
        pull = (low - spectrum[0]) / (centre - spectrum[0])
    if spectrum[-1] > high:
        pull = max(pull, (spectrum[-1] - high) / (spectrum[-1] - centre))
    if pull > 0.0:
        pull = min(1.0, pull * (1.0 + 1e-10) + 1e-15)
        theta = (1.0 - pull) * theta
        theta[np.diag_indices(p)] += pull * centre
        spectrum = np.clip((1.0 - pull) * spectrum + pull * centre, alpha, beta)
    return theta, spectrum
