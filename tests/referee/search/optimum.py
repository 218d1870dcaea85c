"""Good feasible points of a small problem, support by support, by methods of the judge's own.

Every point is evaluated and checked as the solver's answer is, so that a poor search is a weak
witness and never a false one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from scipy.optimize import minimize

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.modelling.expressions.comparisons import Bound, LinearConstraint, Semicontinuous
from sparsemodel.modelling.expressions.norms import NormConstraint
from sparsemodel.modelling.expressions.objective_terms import Objective
from tests.referee.expressions import entries_of, evaluate, present
from tests.referee.search.dense import Dense
from tests.referee.search.rationals import Rational, fits
from tests.referee.textbook_losses import Long, long

SQUARED, SMOOTH, GENERAL = 300, 60, 6
"""Supports up to which all are tried: closed forms, Newton's method, SciPy."""

_STEPS = 40

_REFINED = 5
"""How many of the best supports are solved to the last digit."""


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """A point that may refute a bound, or an exact minimum that does."""

    z: FloatArray
    exact: Fraction | None
    """The exact minimum on its support, where that is known."""


@final
@dataclass(frozen=True, slots=True)
class Search:
    """What was tried."""

    candidates: tuple[Candidate, ...]
    """The best first."""
    complete: bool
    """Whether every support was tried, by a method that is exact up to rounding."""
    empty: Candidate | None
    """The best point where nothing that is counted is nonzero."""


def search(dense: Dense, objective: Objective, *, effort: float = 1.0) -> Search:
    """Look for the optimum: try every support, or the first ones of too many.

    ``effort`` multiplies the numbers of supports up to which methods of descent try all.
    """
    closed = dense.quadratic and not dense.constraints
    newton = not dense.constraints and dense.hessian(long(np.zeros(dense.size))) is not None
    most = SQUARED if closed else max(1, int(effort * (SMOOTH if newton else GENERAL)))
    complete = dense.number_of_supports <= most and (closed or newton)
    tried = list(dense.supports(most))
    begin = np.zeros(dense.size)
    with np.errstate(all="ignore"):
        if closed:
            points = _closed_forms(dense, tried)
        else:
            points = [p for s in tried if (p := _descend(dense, s, begin)) is not None]
        best = sorted(points, key=lambda z: _priced(dense, z))[:3]
        if closed and best and fits(dense, objective, int(np.count_nonzero(best[0])) + 1):
            exact = Rational(dense, objective)
            found = tuple(_exactly(dense, exact, z) for z in best)
        else:
            found = tuple(Candidate(z, None) for z in best)
        empty = best_on(dense, np.zeros(dense.size))
    return Search(found, complete, empty)


def best_on(dense: Dense, given: FloatArray) -> Candidate | None:
    """Return a good point on the support of a given one; None where none was found."""
    support = np.union1d(np.flatnonzero(given), dense.free).astype(np.intp)
    with np.errstate(all="ignore"):
        if dense.quadratic and not dense.constraints:
            return Candidate(_closed_form(dense, support), None)
        found = _descend(dense, support, given)
    return None if found is None else Candidate(found, None)


def _exactly(dense: Dense, exact: Rational, z: FloatArray) -> Candidate:
    if dense.orders and dense.prices:  # parents that are zero by chance have their prices
        return Candidate(z, None)
    minimum = exact.minimum(np.union1d(np.flatnonzero(z), dense.free).astype(np.intp))
    if minimum is not None:
        minimum += sum((Fraction(p) for p in _paid(dense, z)), Fraction(0))
    return Candidate(z, minimum)


def _paid(dense: Dense, z: FloatArray) -> list[float]:
    """Return the prices of the units that are nonzero."""
    priced = [(p, u) for prices, units in dense.prices for p, u in zip(prices, units, strict=True)]
    return [float(price) for price, unit in priced if np.any(z[unit] != 0.0)]


def _priced(dense: Dense, z: FloatArray) -> float:
    value = float(dense.value(long(z))) + sum(_paid(dense, z))
    return value if value == value else np.inf


# ---- closed forms ----------------------------------------------------------------------------


def _closed_forms(dense: Dense, supports: list[IntArray]) -> list[FloatArray]:
    """Return the minimisers on the most promising supports, ranked by one batch of products.

    What is not counted is fitted first, so that large offsets do not drown the differences.
    """
    origin = long(_closed_form(dense, dense.free))
    hessian, slope = dense.hessian(origin), dense.gradient(origin)
    if hessian is None:
        return []
    size = np.sqrt(np.diag(hessian))
    size = np.where(size > 0, size, 1)
    scaled = (hessian / size[:, None] / size).astype(np.float64)
    push = slope / size
    top = np.abs(push).max(initial=0)
    flat = (push / top).astype(np.float64) if top > 0 else np.zeros(dense.size)
    gains: list[tuple[float, int]] = []
    by_size: dict[int, list[int]] = {}
    for i, support in enumerate(supports):
        by_size.setdefault(support.size, []).append(i)
    for members in by_size.values():
        chosen = np.stack([supports[i] for i in members])
        inverse = np.linalg.pinv(scaled[chosen[:, :, None], chosen[:, None, :]], hermitian=True)
        right = flat[chosen]
        gain = np.einsum("si,sij,sj->s", right, inverse, right) * float(top) ** 2 / 2
        marks = np.zeros(dense.size)
        paid = np.zeros(len(chosen))
        for row, places in enumerate(chosen):
            marks[:], marks[places] = 0.0, 1.0
            paid[row] = sum(_paid(dense, marks))
        gains += list(zip((gain - paid).tolist(), members, strict=True))
    best = sorted(gains, reverse=True)[:_REFINED]
    return [_closed_form(dense, supports[i]) for _, i in best]


def _closed_form(dense: Dense, support: IntArray) -> FloatArray:
    """Solve the normal equations in units of the columns, with steps of refinement."""
    z = long(np.zeros(dense.size))
    if not support.size:
        return np.zeros(dense.size)
    hessian = dense.hessian(z)
    if hessian is None:
        return np.zeros(dense.size)
    part = hessian[np.ix_(support, support)]
    size = np.sqrt(np.diag(part))
    size = np.where(size > 0, size, 1)
    inverse = np.linalg.pinv((part / size[:, None] / size).astype(np.float64), hermitian=True)
    for _ in range(3):
        slope = dense.gradient(z)[support] / size
        top = np.abs(slope).max()
        if not np.isfinite(top) or top == 0:
            break
        step = (inverse @ (slope / top).astype(np.float64)) * top / size
        z[support] = np.asarray(z[support] - step, dtype=np.float64)
    return _finite(z)


def _finite(z: Long) -> FloatArray:
    out = np.asarray(z, dtype=np.float64)
    return np.where(np.isfinite(out), out, 0.0)


# ---- descent ---------------------------------------------------------------------------------


def _descend(dense: Dense, support: IntArray, given: FloatArray) -> FloatArray | None:
    """Return a good point on a support, None where none was found."""
    if dense.constraints:
        return _constrained(dense, support, given)
    if dense.hessian(long(np.zeros(dense.size))) is None:
        return _quasi_newton(dense, support, given)
    return _newton(dense, support)


def _newton(dense: Dense, support: IntArray) -> FloatArray:
    """Return where damped Newton steps end, in units of the columns."""
    z = long(np.zeros(dense.size))
    best = dense.value(z)
    for _ in range(_STEPS if support.size else 0):
        hessian, slope = dense.hessian(z), dense.gradient(z)[support]
        if hessian is None:
            break
        part = hessian[np.ix_(support, support)]
        size = np.sqrt(np.diag(part))
        top = size.max()
        if not np.isfinite(top) or top == 0 or not np.all(np.isfinite(slope)):
            break
        size = np.where(size > 1e-12 * top, size, top)
        small = (part / size[:, None] / size).astype(np.float64)
        push = slope / size
        scale = np.abs(push).max()
        if scale == 0:
            break
        flat = np.linalg.lstsq(small, -(push / scale).astype(np.float64), rcond=1e-13)[0]
        move = long(np.zeros(dense.size))
        move[support] = long(flat) * scale / size
        length = 1.0
        while length > 1e-9 and not dense.value(z + length * move) < best:
            length *= 0.5
        if length <= 1e-9:
            break
        z = z + length * move
        last, best = best, dense.value(z)
        if last - best <= 1e-17 * np.abs(best):
            break
    return _finite(z)


def _quasi_newton(dense: Dense, support: IntArray, given: FloatArray) -> FloatArray:
    def value_and_slope(v: FloatArray) -> tuple[float, FloatArray]:
        z = long(np.zeros(dense.size))
        z[support] = v
        found = float(dense.value(z))
        slope = np.nan_to_num(dense.gradient(z)[support].astype(np.float64))
        return (found if found == found else 1e300), np.clip(slope, -1e150, 1e150)

    out = np.zeros(dense.size)
    if support.size:
        limits = {"maxiter": 60, "maxfun": 120}
        found = minimize(
            value_and_slope, given[support], jac=True, method="L-BFGS-B", options=limits
        )
        out[support] = found.x
    return np.where(np.isfinite(out), out, 0.0)


def _constrained(dense: Dense, support: IntArray, given: FloatArray) -> FloatArray | None:
    """Return what sequential quadratic programming finds, drawn inside."""
    if not support.size:
        return np.zeros(dense.size)

    def full(v: FloatArray) -> FloatArray:
        z = np.zeros(dense.size)
        z[support] = v
        return z

    def value_and_slope(v: FloatArray) -> tuple[float, FloatArray]:
        z = long(full(v))
        found, slope = float(dense.value(z)), dense.gradient(z)[support].astype(np.float64)
        return (found if np.isfinite(found) else 1e100), np.clip(np.nan_to_num(slope), -1e50, 1e50)

    low, high = _box(dense)
    rules = [{"type": kind, "fun": lambda v, f=rule: f(full(v))} for kind, rule in _rules(dense)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = minimize(
            value_and_slope,
            np.clip(given[support], low[support], high[support]),
            jac=True,
            method="SLSQP" if rules else "L-BFGS-B",
            bounds=list(zip(low[support], high[support], strict=True)),
            constraints=rules,
            options={"maxiter": 60},
        )
    inside = np.clip(found.x, low[support], high[support])
    return full(inside) if np.all(np.isfinite(inside)) else None


def _box(dense: Dense) -> tuple[FloatArray, FloatArray]:
    low, high = np.full(dense.size, -np.inf), np.full(dense.size, np.inf)
    for constraint in dense.constraints:
        if isinstance(constraint, (Bound, Semicontinuous)):
            piece = constraint.expression.pieces[0]
            place = _places(dense, piece)
            shape = place.shape
            for end, side, pick in (
                (constraint.lower, low, np.maximum),
                (constraint.upper, high, np.minimum),
            ):
                if end is not None:
                    limit = np.broadcast_to(np.asarray(present(end), dtype=np.float64), shape)
                    if constraint.expression.offset is not None:
                        limit = limit - constraint.expression.offset
                    pick.at(side, place.ravel(), limit.ravel())
    return low, high


def _places(dense: Dense, piece: Any) -> Any:
    numbers = dense.values(np.arange(dense.size, dtype=np.float64))
    return entries_of(piece, numbers).astype(np.intp)


def _rules(dense: Dense) -> Iterator[tuple[str, Any]]:
    for constraint in dense.constraints:
        if isinstance(constraint, LinearConstraint):
            kind = "eq" if constraint.relation == "==" else "ineq"

            def linear(z: FloatArray, c: LinearConstraint = constraint) -> FloatArray:
                found = evaluate(c.expression, dense.values(z)).value
                return -np.asarray(found, dtype=np.float64).ravel()

            yield kind, linear
        elif isinstance(constraint, NormConstraint):

            def ball(z: FloatArray, c: NormConstraint = constraint) -> FloatArray:
                u = np.asarray(evaluate(c.expression, dense.values(z)).value, dtype=np.float64)
                size = np.abs(u).sum() if c.order == 1 else np.sqrt(np.square(u).sum() + 1e-300)
                return np.asarray([float(present(c.radius)) - size])

            yield "ineq", ball
