"""Random problems whose losses have kinks, far from zero and at extreme scales.

The value on the support that was found is compared with that of a linear program, or beside a ridge
and for Huber losses with the best point of SciPy's minimisers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize

import sparsemodel as sm
from sparsemodel.interfaces import FloatArray
from tests.stress.courts.court import Court
from tests.stress.posing.structures import answers, data, pick, posed

_SCALES = (1.0, 1.0, 2.0**-498, 2.0**498, 2.0**-40, 2.0**40)
"""Powers of two, from 1e-150 to 1e150: scaling by them is exact."""

_OFFSETS = (0.0, 1e3, 1e6, 1e9, 1e12, -1e12)

_ALIKE = 1e-6
"""Relative difference of two values that counts as a fault."""


def kinks(court: Court) -> None:
    """Pose losses with kinks and Huber losses with an intercept, without ridge in most."""
    rng = court.rng
    n, p = int(rng.integers(5, 20)), int(rng.integers(1, 6))
    a, y = data(court, n, p)
    size, height, offset = pick(court, _SCALES), pick(court, _SCALES), pick(court, _OFFSETS)
    y = y + offset
    kind = pick(court, ("absolute", "quantile", "epsilon", "huber"))
    value = height**2 if kind == "huber" else height  # of the loss of a residual of one
    ridge = pick(court, (0.0, 0.0, 1e-3))
    with np.errstate(all="ignore"):
        lam = float(ridge * value * np.square(np.float64(size) / height))
    if not 1e-290 < lam < 1e290:
        ridge = lam = 0.0
    weights = pick(court, (None, rng.uniform(0.2, 3.0, n)))
    k = int(rng.integers(0, p + 1))
    w, c = sm.Variable(p, name="w"), sm.Variable(name="c")
    u, target = (a * size) @ w + c, y * height
    losses: dict[str, Any] = {
        "absolute": lambda: sm.absolute_loss(u, target, weights=weights),
        "quantile": lambda: sm.quantile_loss(u, target, tau=0.3, weights=weights),
        "epsilon": lambda: sm.epsilon_insensitive_loss(
            u, target, epsilon=0.2 * height, weights=weights
        ),
        "huber": lambda: sm.huber_loss(u, target, delta=height, weights=weights),
    }
    problem = posed(
        court, lambda: sm.minimize(losses[kind]() + sm.ridge(w, lam)), [sm.card(w) <= k]
    )
    if problem is None:
        return
    answers(court, problem)
    found = court.ask("solve", problem.solve, problem)
    if found is None:
        return
    factors = (np.ones(n) if weights is None else weights) / n
    least = _Reference(a[:, found.support], y - offset, factors, kind, ridge).least()
    rounding = 2.0**-46 * abs(offset) * float(factors.sum())
    if found.value / value > least * (1.0 + _ALIKE) + rounding + 1e-12:
        court.faults.append(
            f"wrong value: solve: {found.value / value!r}, and another method finds {least!r}"
        )


_PIECES = {"absolute": (1.0, 1.0, 0.0), "quantile": (0.3, 0.7, 0.0), "epsilon": (1.0, 1.0, 0.2)}
"""Slopes below and above, and the half-width of what costs nothing."""


class _Reference(NamedTuple):
    """A problem on one support in natural units, for minimisers that this package has no part in.

    Unknowns are ``w``, then the intercept, then for linear programs a bound on each loss.
    """

    a: FloatArray
    y: FloatArray
    factors: FloatArray
    kind: str
    ridge: float

    def value(self, z: FloatArray) -> float:
        """Return the objective."""
        q = self.a.shape[1]
        r = self.a @ z[:q] + z[q] - self.y
        if self.kind == "huber":
            losses = np.where(np.abs(r) <= 1.0, 0.5 * r**2, np.abs(r) - 0.5)
        else:
            below, above, epsilon = _PIECES[self.kind]
            losses = np.maximum(np.maximum(above * (r - epsilon), below * (-r - epsilon)), 0.0)
        return float(self.factors @ losses + 0.5 * self.ridge * z[:q] @ z[:q])

    def gradient(self, z: FloatArray) -> FloatArray:
        """Return the gradient of Huber losses."""
        q = self.a.shape[1]
        pull = self.factors * np.clip(self.a @ z[:q] + z[q] - self.y, -1.0, 1.0)
        return np.append(self.a.T @ pull + self.ridge * z[:q], pull.sum())

    def least(self) -> float:
        """Return the lowest objective that was met."""
        n, q = self.a.shape
        start = np.append(np.zeros(q), np.median(self.y))
        if self.kind == "huber":
            how = {"gtol": 1e-12, "maxiter": 2000}
            found = minimize(self.value, start, jac=self.gradient, method="BFGS", options=how)
            return min(self.value(start), self.value(found.x))
        below, above, epsilon = _PIECES[self.kind]
        columns = np.column_stack([self.a, np.ones(n)])
        rows = np.block([[above * columns, -np.eye(n)], [-below * columns, -np.eye(n)]])
        ends = np.concatenate([above * (self.y + epsilon), below * (epsilon - self.y)])
        cost = np.concatenate([np.zeros(q + 1), self.factors])
        limits = [(None, None)] * (q + 1) + [(0.0, None)] * n
        first = linprog(cost, A_ub=rows, b_ub=ends, bounds=limits, method="highs")
        if first.status != 0:
            return np.inf
        if self.ridge == 0.0:
            return float(first.fun)
        bent = np.append(np.full(q, self.ridge), np.zeros(n + 1))
        found = minimize(
            lambda z: cost @ z + 0.5 * bent @ z**2,
            first.x,
            jac=lambda z: cost + bent * z,
            bounds=limits,
            constraints={"type": "ineq", "fun": lambda z: ends - rows @ z, "jac": lambda z: -rows},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        return min(self.value(first.x), self.value(found.x))
