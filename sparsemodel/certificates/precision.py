"""Certify a sparse precision matrix: gap on its support, and to the best support there may be."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.precision_bounds import Enclosure, dual_value, enclose
from sparsemodel.interfaces import DataError, FloatArray, InfeasibleError, IntArray
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.precision import (
    Factor,
    Pattern,
    active_bounds,
    eigenvalues,
    factorise,
    minimise_admm,
    rounding,
    spectral_infimum,
    within_bounds,
)

_U = 2.0**-53

_RATE = 5e8
"""Cubes of the order that eigendecompositions get through in a CPU second, on the low side."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrecisionCertificate:
    """What is proved about a sparse precision matrix, in units of the objective.

    Values and bounds hold for the exact problem with the given float64 data: rounding
    allowances are on the safe side in each.
    """

    value: float
    """The objective at the matrix."""
    upper: float
    """The same, rounded up."""
    bound: float
    """No matrix with at most ``k`` edges within the eigenvalue bounds lies below it."""
    trivial_bound: float
    """The same for matrices with any number of edges."""
    restricted_bound: float
    """No matrix on the same support lies below it."""
    method: str
    """Where ``bound`` came from."""
    edges: int
    weight: float
    active: tuple[str, ...]
    """Eigenvalue bounds that hold with equality."""
    assumptions: tuple[str, ...]
    seconds: float

    @property
    def gap(self) -> float:
        """Return how far the matrix may be from the best one, in objective units."""
        return max(0.0, self.upper - self.bound)

    @property
    def trivial_gap(self) -> float:
        """Return the gap to the trivial bound, which any method's result has."""
        return max(0.0, self.upper - self.trivial_bound)

    @property
    def restricted_gap(self) -> float:
        """Return how far the matrix may be from the best one on its own support."""
        return max(0.0, self.upper - self.restricted_bound)

    @property
    def nats_per_sample(self) -> float:
        """Return the gap in log-likelihood per sample: half of the unweighted objective."""
        return 0.5 * self.gap / self.weight

    def __str__(self) -> str:
        gap = f"gap       {self.gap:.3g}, that is {self.nats_per_sample:.3g} nats per sample"
        lines = [
            f"objective {self.value:.6f} with {self.edges} edges",
            f"bound     {self.bound:.6f} ({self.method})",
            f"{gap} (without sparsity: {self.trivial_gap:.3g})",
            f"on this support within {self.restricted_gap:.3g}",
        ]
        lines += [f"active: {text}" for text in self.active]
        lines += [f"assumes: {text}" for text in self.assumptions]
        return "\n".join(lines)


def certify_precision(
    form: SparsePrecision, x: FloatArray, *, time_limit: float = 5.0
) -> PrecisionCertificate:
    """Return what can be proved about the entries ``x`` as a solution of ``form``.

    Parameters
    ----------
    form
        The canonical problem.
    x
        Entries on and above the diagonal, ``form.entries(Omega)``.
    time_limit
        CPU seconds for the search of the bound; the free bounds are always computed.

    Raises
    ------
    DataError
        When ``x`` does not fit the form.
    InfeasibleError
        When the matrix has too many edges, or is not within the eigenvalue bounds.

    Notes
    -----
    One eigendecomposition per evaluation of the bound, O(p^3).
    """
    began = time.perf_counter()
    deadline = time.process_time() + time_limit
    factor = _feasible(form, np.asarray(x, dtype=np.float64))
    support = np.flatnonzero((x != 0.0) | ~form.sparsity.counted)
    inner = float(np.vdot(form.covariance, factor.omega))
    value = inner - factor.logdet
    upper = value + _value_error(form, factor)
    free = Enclosure(
        form.alpha,
        form.beta,
        np.where(form.rows == form.cols, form.beta, 0.5 * (form.beta - form.alpha)),
    )
    zero = np.zeros_like(x)
    trivial, _ = dual_value(form, zero, 0.0, free)
    bound, method = trivial, "the unconstrained likelihood"
    if math.isfinite(trivial):
        found = _search(form, x, factor, upper, free, deadline)
        if found > bound:
            bound, method = found, "the perspective relaxation of the strong convexity"
    active = active_bounds(factor, form.alpha, form.beta)
    restricted = max(_restricted(form, factor, support, bool(active), deadline), bound)
    assumptions = []
    if math.isfinite(form.beta) and not math.isfinite(dual_value(form, zero, 0.0, _open(free))[0]):
        assumptions.append(
            f"the upper eigenvalue bound {form.beta:.4g}; without one the likelihood is unbounded"
        )
    return PrecisionCertificate(
        value=_scaled(form, value),
        upper=_scaled(form, upper, 1.0),
        bound=_scaled(form, bound, -1.0),
        trivial_bound=_scaled(form, trivial, -1.0),
        restricted_bound=_scaled(form, restricted, -1.0),
        method=method,
        edges=len(form.edges(np.flatnonzero(x))),
        weight=form.weight,
        active=active,
        assumptions=tuple(assumptions),
        seconds=time.perf_counter() - began,
    )


def _feasible(form: SparsePrecision, x: FloatArray) -> Factor:
    if x.shape != form.shape or not np.all(np.isfinite(x)):
        raise DataError(
            f"The point must hold {form.shape[0]} finite entries of the matrix, not {x.shape}."
        )
    count = form.sparsity.count(x)
    if count > form.sparsity.k:
        raise InfeasibleError(f"The matrix has {count} edges, and {form.sparsity.k} are allowed.")
    factor = factorise(form.matrix(x))
    if factor is None:
        raise InfeasibleError("The matrix is not positive definite.")
    if not within_bounds(factor, form.alpha, form.beta):
        sigma = eigenvalues(factor.omega)
        raise InfeasibleError(
            f"The eigenvalues of the matrix lie in [{sigma[0]:.6g}, {sigma[-1]:.6g}], outside of "
            f"[{form.alpha:.6g}, {form.beta:.6g}]."
        )
    return factor


def _value_error(form: SparsePrecision, factor: Factor) -> float:
    """Bound the rounding error of the objective.

    A Cholesky factor is exact for a matrix that differs by at most ``gamma_{p+1} |L| |L|^T``
    (Higham 2002, Theorem 10.3); the log-determinant moves by that times the inverse.
    """
    p = form.order
    gamma = 4.0 * (p + 1) * _U
    trace = float(np.trace(factor.omega))
    logdet = gamma * trace * float(np.linalg.norm(factor.inverse)) * 2.0
    sizes = float(np.abs(form.covariance * factor.omega).sum()) + abs(factor.logdet)
    return logdet + 4.0 * (p * p + 2) * _U * sizes / p + 8.0 * p * _U * sizes


def _search(
    form: SparsePrecision,
    x: FloatArray,
    factor: Factor,
    upper: float,
    box: Enclosure,
    deadline: float,
) -> float:
    """Return the best bound found by ascent in ``U`` and shrinking enclosures."""
    best = -np.inf
    zero = np.zeros_like(x)
    diagonal = form.rows == form.cols
    slack = form.entries(factor.inverse) - form.entries(form.covariance)
    box = enclose(form, zero, upper, box)
    for _ in range(4):
        mu = box.modulus
        # At the optimum of the relaxation U = W - S + mu Omega, were the gap zero.
        begin = slack + mu * x
        value, U = _ascend(form, begin, mu, box, deadline)
        improved = value > best + 1e-3 * max(upper - best, 0.0)
        best = max(best, value)
        if not improved or upper - best <= 1e-9 * abs(upper) or time.process_time() > deadline:
            break
        box = enclose(form, np.where(diagonal, 0.0, U), upper, box)
    return best


def _ascend(
    form: SparsePrecision, begin: FloatArray, mu: float, box: Enclosure, deadline: float
) -> tuple[float, FloatArray]:
    """Maximise the bound by L-BFGS, keeping the best point met (it need not be smooth)."""
    from scipy.optimize import minimize

    best: list[tuple[float, FloatArray]] = [(-np.inf, begin)]

    class _Late(Exception):
        pass

    def negative(U: FloatArray) -> tuple[float, FloatArray]:
        value, ascent = dual_value(form, U, mu, box)
        if value > best[0][0]:
            best[0] = (value, U.copy())
        if time.process_time() > deadline:
            raise _Late
        if not math.isfinite(value):
            return 1e300, np.zeros_like(U)
        return -value, -ascent

    try:
        negative(np.zeros_like(begin))
        negative(begin)
        for _ in range(3):  # restarts get over the kinks of the sum of the k largest
            before = best[0][0]
            options = {"maxiter": 150, "maxfun": 300}
            minimize(negative, best[0][1], jac=True, method="L-BFGS-B", options=options)
            if best[0][0] <= before + 1e-6 * (1.0 + abs(before)):
                break
    except _Late:
        pass
    return best[0]


def _restricted(
    form: SparsePrecision, factor: Factor, support: IntArray, bounded: bool, deadline: float
) -> float:
    """Return a bound over all matrices on the support, from the dual of the likelihood."""
    pattern = Pattern(form.order, form.rows[support], form.cols[support])
    B = factor.inverse.copy()
    B[pattern.rows, pattern.cols] = B[pattern.cols, pattern.rows] = pattern.gather(form.covariance)
    best = spectral_infimum(eigenvalues(B) - rounding(B), form.alpha, form.beta)
    # An eigendecomposition an iteration, about 20 p^3 operations: as many as the time allows.
    left = deadline - time.process_time()
    iterations = int(min(500.0, left * _RATE / form.order**3))
    if bounded and math.isfinite(form.beta) and iterations >= 20:
        result = minimise_admm(
            form.covariance,
            pattern,
            form.alpha,
            form.beta,
            start=factor.omega,
            max_iter=iterations,
        )
        best = max(best, result.bound)
    return best - 64.0 * _U * (abs(best) + form.order)


def _open(box: Enclosure) -> Enclosure:
    return Enclosure(box.alpha, np.inf, np.full_like(box.entries, np.inf))


def _scaled(form: SparsePrecision, value: float, direction: float = 0.0) -> float:
    """Return ``weight * value + constant``, rounded in ``direction``."""
    if not math.isfinite(value):
        return value
    out = form.weight * value + form.constant
    error = 4.0 * _U * (abs(form.weight * value) + abs(form.constant))
    return out + direction * error


__all__ = ["PrecisionCertificate", "certify_precision"]
