"""Random problems whose losses have kinks, far from zero and at extreme scales.

The value on the support that was found is compared with that of a linear program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

import sparsemodel as sm
from sparsemodel.interfaces import FloatArray
from sparsemodel.testing.stress.courts.court import Court
from sparsemodel.testing.stress.posing.structures import answers, data, pick, posed

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
    lam = pick(court, (0.0, 0.0, 1e-3))
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
        "huber": lambda: sm.huber_loss(u, target, weights=weights),
    }
    problem = posed(
        court, lambda: sm.minimize(losses[kind]() + sm.ridge(w, lam)), [sm.card(w) <= k]
    )
    if problem is None:
        return
    answers(court, problem)
    found = court.ask("solve", problem.solve, problem)
    if found is None or kind == "huber" or lam > 0.0:
        return
    below, above, epsilon = {
        "absolute": (1.0, 1.0, 0.0),
        "quantile": (0.3, 0.7, 0.0),
        "epsilon": (1.0, 1.0, 0.2),
    }[kind]
    factors = (np.ones(n) if weights is None else weights) / n
    least = _least(a[:, found.support], y - offset, factors, (below, above, epsilon))
    rounding = 2.0**-46 * abs(offset) * float(factors.sum())
    if found.value / height > least * (1.0 + _ALIKE) + rounding + 1e-12:
        court.faults.append(
            f"wrong value: solve: {found.value / height!r}, and a linear program finds {least!r}"
        )


def _least(
    a: FloatArray, y: FloatArray, factors: FloatArray, slopes: tuple[float, float, float]
) -> float:
    """Return the least loss of predictions ``a @ w + c`` by a linear program in w, c and losses."""
    below, above, epsilon = slopes
    n = len(y)
    columns = np.column_stack([a, np.ones(n)])
    q = columns.shape[1]
    found = linprog(
        np.concatenate([np.zeros(q), factors]),
        A_ub=np.block([[above * columns, -np.eye(n)], [-below * columns, -np.eye(n)]]),
        b_ub=np.concatenate([above * (y + epsilon), below * (epsilon - y)]),
        bounds=[(None, None)] * q + [(0.0, None)] * n,
        method="highs",
    )
    return float(found.fun) if found.status == 0 else np.inf
