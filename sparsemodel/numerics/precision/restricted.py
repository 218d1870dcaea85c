"""The likelihood on a support: closed forms, Newton, and ADMM where an eigenvalue bound is active.

This is step (S3) of the modified GraHTP (Yuan, Li and Zhang, JMLR 2018, problem (13)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Objective, Point, UnboundedError
from sparsemodel.numerics.precision.admm import minimise_between_bounds
from sparsemodel.numerics.precision.cholesky import Factor, factorise, within_bounds
from sparsemodel.numerics.precision.forests import cyclic_components, forest_entries
from sparsemodel.numerics.precision.log_det_newton import FULL_ACCURACY, minimise_newton
from sparsemodel.numerics.precision.objective import PrecisionObjective
from sparsemodel.numerics.precision.pattern import Pattern


@final
@dataclass(frozen=True, slots=True, eq=False)
class RestrictedFit:
    """The optimum on a support."""

    factor: Factor
    multiplied: FloatArray | None = None
    """Where an eigenvalue bound is active, the inverse with the bound's multiplier, which is ``S``
    on the support. None elsewhere; the inverse is such a matrix itself."""

    @property
    def dual(self) -> FloatArray:
        """Return a matrix that is ``S`` on the support and proves the optimum."""
        return self.factor.inverse if self.multiplied is None else self.multiplied

    @property
    def bounded(self) -> bool:
        """Return whether an eigenvalue bound is active."""
        return self.multiplied is not None


def minimise_precision_on_support(
    objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
) -> Point:
    """Return the minimiser of a :class:`PrecisionObjective` over ``support``.

    Parameters
    ----------
    objective
        A :class:`PrecisionObjective`.
    support
        Sorted coordinates; free ones included.
    start
        Any point; what it has on ``support`` is where the search begins.
    tol
        Newton decrement at which to stop: the error is then about ``tol**2 / 2`` nats. None
        asks for the accuracy of the arithmetic.

    Raises
    ------
    UnboundedError
        When there is no upper eigenvalue bound and the likelihood has no maximum on the support.
    """
    goal = cast("PrecisionObjective", objective)
    form = goal.form
    pattern = Pattern(form.order, form.rows[support], form.cols[support])
    fit = minimise_on_pattern(
        form.covariance,
        pattern,
        alpha=form.alpha,
        beta=form.beta,
        start=None if start.state is None else start.state.omega,
        tol=tol,
    )
    goal.work.factorizations += 1
    return goal.point_of(fit.factor, support)


def minimise_on_pattern(
    S: FloatArray,
    pattern: Pattern,
    *,
    alpha: float = 0.0,
    beta: float = np.inf,
    start: FloatArray | None = None,
    tol: float | None = None,
) -> RestrictedFit:
    """Minimise the likelihood over matrices on ``pattern`` with eigenvalues in the bounds.

    The connected components of the support are solved apart: trees in closed form, the others
    by Newton's method from ``start`` and, where a bound turns out to be active, by ADMM.
    """
    number, labels = pattern.components()
    cyclic = cyclic_components(pattern, number, labels)
    x = forest_entries(S, pattern)
    sizes = np.bincount(labels, minlength=number)[cyclic]
    if float((sizes.astype(float) ** 3).sum()) > 0.5 * float(sizes.sum()) ** 3:
        groups = [np.flatnonzero(np.isin(labels, cyclic))]
    else:
        order = np.argsort(labels, kind="stable")
        first = np.searchsorted(labels[order], cyclic)
        groups = [np.sort(order[a : a + size]) for a, size in zip(first, sizes, strict=True)]
    for variables in groups:
        if not variables.size:
            continue
        if variables.size == pattern.order:
            x = pattern.gather(_newton(S, pattern, start, beta, tol))
            continue
        part, entries = pattern.restricted(variables)
        block = np.ix_(variables, variables)
        begin = None if start is None else np.ascontiguousarray(start[block])
        omega = _newton(np.ascontiguousarray(S[block]), part, begin, beta, tol)
        x[entries] = part.gather(omega)
    factor = factorise(pattern.scatter(x)) if np.all(np.isfinite(x)) else None
    if factor is not None and within_bounds(factor, alpha, beta):
        return RestrictedFit(factor)
    if factor is None and not np.isfinite(beta):
        # A matrix along which the likelihood grows for ever is semidefinite: adding it keeps
        # every lower bound, so that none helps.
        raise UnboundedError(
            "The likelihood has no maximum on this support: there are too few samples for so many "
            "edges. Bound the eigenvalues from above (Omega << beta), or allow fewer edges."
        )
    if factor is not None:
        start = factor.omega
    return _bounded(S, pattern, (alpha, beta), start, tol, escaped=factor is None)


_STALLED = 1e-2
"""Newton decrement (5e-5 nats) up to which a search that rounding ended counts as finished."""


def _newton(
    S: FloatArray, pattern: Pattern, start: FloatArray | None, beta: float, tol: float | None
) -> FloatArray:
    """Return the unbounded optimum, or a matrix of NaN when it does not exist below ``4 beta``."""
    result = minimise_newton(
        S,
        pattern,
        definite_start(S, pattern, start),
        tol=FULL_ACCURACY if tol is None else tol,
        ceiling=4.0 * np.minimum(beta, 1e10 / np.diagonal(S)),
    )
    if result.late:
        return result.factor.omega
    # Far from an optimum with no progress left: the matrix has become numerically singular.
    if result.escaped or not (result.converged or result.decrement < _STALLED):
        return np.full_like(S, np.nan)
    return result.factor.omega


def definite_start(S: FloatArray, pattern: Pattern, start: FloatArray | None) -> Factor:
    """Return a positive definite matrix on ``pattern`` close to ``start``.

    Entries off the pattern are dropped and those off the diagonal shrunk until a Cholesky
    factorisation succeeds; without a start, the optimum among diagonal matrices.
    """
    if start is not None:
        x = pattern.gather(start)
        off = pattern.rows != pattern.cols
        for shrink in (1.0, 0.9, 0.7, 0.5, 0.25):
            factor = factorise(pattern.scatter(np.where(off, shrink * x, x)))
            if factor is not None:
                return factor
    diagonal = 1.0 / np.diagonal(S)
    factor = factorise(np.diag(diagonal))
    if factor is None:
        raise UnboundedError(
            "The likelihood is unbounded: a variable has zero variance. Drop constant variables."
        )
    return factor


def _bounded(
    S: FloatArray,
    pattern: Pattern,
    bounds: tuple[float, float],
    start: FloatArray | None,
    tol: float | None,
    *,
    escaped: bool,
) -> RestrictedFit:
    """Return the optimum between the bounds; ``escaped`` where there is none without the upper."""
    accuracy = 1e-10 if tol is None else float(np.clip(1e-4 * tol, 1e-10, 1e-4))
    found = minimise_between_bounds(S, pattern, *bounds, start=start, tol=accuracy, escaped=escaped)
    factor = factorise(found.omega)
    if factor is None:
        raise UnboundedError(
            "No positive definite matrix was found between the eigenvalue bounds "
            f"[{bounds[0]:.3g}, {bounds[1]:.3g}]. Raise the lower bound."
        )
    return RestrictedFit(factor, found.dual)
