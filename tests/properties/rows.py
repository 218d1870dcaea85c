"""Small quadratics with linear constraints, and the best of all their supports."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, final

import clarabel
import numpy as np
from scipy import sparse

import sparsemodel as sm


@final
@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """Minimise ``||F w - t||^2 / 2 + r ||w||^2 / 2 + c' w`` with rows, boxes and least sizes.

    ``low`` and ``high`` are the ends of a chosen weight, or of one that is not counted.
    """

    F: Any
    t: Any
    c: Any
    ridge: float
    A: Any
    lower: Any
    upper: Any
    low: Any
    high: Any
    k: int
    assets: int
    """The weights that are counted; those after them are always in."""

    def problem(self, w: Any) -> sm.Problem:
        """Return it as a user would write it."""
        goal = sm.squared_loss(self.F @ w, self.t, reduction="sum") + self.c @ w
        if self.ridge:
            goal = goal + sm.ridge(w, self.ridge)
        rules = [sm.card(w[: self.assets]) <= self.k]
        above, below = self.low > 0.0, self.high < 0.0
        sides = [on for on in (np.flatnonzero(above), np.flatnonzero(below)) if on.size]
        rules += [sm.semicontinuous(w[on], self.low[on], self.high[on]) for on in sides]
        plain = np.flatnonzero(~(above | below))
        if plain.size:
            rules += [w[plain] >= self.low[plain], w[plain] <= self.high[plain]]
        for row, low, high in zip(self.A, self.lower, self.upper, strict=True):
            if low == high:
                rules.append(row @ w == low)
                continue
            rules += [row @ w >= low] if np.isfinite(low) else []
            rules += [row @ w <= high] if np.isfinite(high) else []
        return sm.Problem(sm.minimize(goal), rules)

    def value(self, x: Any) -> float:
        """Return the objective."""
        return float(
            0.5 * np.sum((self.F @ x - self.t) ** 2) + 0.5 * self.ridge * np.sum(x * x) + self.c @ x
        )

    def violation(self, x: Any) -> float:
        """Return by how much a point breaks a constraint, at most."""
        product, on = self.A @ x, x != 0.0
        off = [0.0, *(self.lower - product), *(product - self.upper)]
        on[self.assets :] = True
        off += [*(self.low - x)[on], *(x - self.high)[on]]
        off.append(float(on[: self.assets].sum() - self.k))
        return max(off)

    def best(self) -> float:
        """Return the least value of all supports; infinite where none is feasible."""
        best, always = np.inf, np.arange(self.assets, self.F.shape[1])
        for size in range(self.k + 1):
            for support in itertools.combinations(range(self.assets), size):
                on = np.concatenate([np.array(support, dtype=int), always])
                best = min(best, self._least(on))
        return best

    def _least(self, on: Any) -> float:
        """Return the minimum on a support, by an interior point method."""
        if not on.size:
            nothing = np.zeros(self.F.shape[1])
            return self.value(nothing) if self.violation(nothing) <= 0.0 else np.inf
        F, A, eye = self.F[:, on], self.A[:, on], np.eye(on.size)
        equal = self.lower == self.upper
        above, below = np.isfinite(self.upper) & ~equal, np.isfinite(self.lower) & ~equal
        high, low = np.isfinite(self.high[on]), np.isfinite(self.low[on])
        G = np.vstack([A[equal], A[above], -A[below], eye[high], -eye[low]])
        right = [self.lower[equal], self.upper[above], -self.lower[below]]
        h = np.concatenate([*right, self.high[on][high], -self.low[on][low]])
        cones = [clarabel.ZeroConeT(int(equal.sum()))] if equal.any() else []
        cones.append(clarabel.NonnegativeConeT(int(h.size - equal.sum())))
        P = F.T @ F + self.ridge * eye
        q = self.c[on] - F.T @ self.t
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        upper = sparse.csc_matrix(np.triu(P))
        found = clarabel.DefaultSolver(upper, q, sparse.csc_matrix(G), h, cones, settings).solve()
        if "Solved" not in str(found.status):
            return np.inf
        return float(found.obj_val + 0.5 * np.sum(self.t**2))


def some_quadratic(seed: int) -> Quadratic:
    """Return a random one with what portfolios ask for."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 11))
    days = int(rng.choice([n // 2, n - 1, 2 * n, 4 * n]))
    F = rng.standard_normal((days, 2)) @ rng.standard_normal((2, n)) + rng.standard_normal(
        (days, n)
    )
    F *= rng.choice([0.01, 1.0, 30.0])
    scale = float(np.mean(F * F) * days)
    t = rng.standard_normal(days) * np.abs(F).mean() * rng.choice([0.0, 0.3])
    c = scale * 0.2 * rng.standard_normal(n) * rng.choice([0.0, 1.0])
    ridge = float(scale * rng.choice([0.0, 1e-3, 0.3]))
    k = int(rng.integers(2, min(n, 5) + 1))
    low, high = np.zeros(n), rng.choice([0.5, 1.0, 1.0, 2.0], n)
    kind = rng.choice(["long", "both", "sized", "short sized", "mixed"])
    if kind in ("both", "mixed"):
        low = -rng.choice([0.3, 1.0], n)
    if kind == "sized":
        low = rng.uniform(0.05, 0.3, n)
    if kind in ("short sized", "mixed"):
        sized = rng.random(n) < 0.5
        down = sized & (rng.random(n) < 0.4)
        low[sized], high[down] = 0.1, -0.05
        low[down] = -0.6
        high[sized & ~down] = 0.9
    rows, lower, upper = [np.ones(n)], [1.0], [1.0]
    if rng.random() < 0.15:  # no equation at all
        upper = [np.inf]
    for _ in range(int(rng.integers(0, 4))):
        what = rng.choice(["return", "sector", "two-sided", "exposure", "equal"])
        row = rng.standard_normal(n)
        if what == "sector":
            row = (rng.random(n) < 0.4).astype(float)
        rows.append(row)
        mid = float(np.quantile(row, rng.uniform(0.3, 0.7)))
        lower.append(-np.inf if what in ("sector", "exposure") else mid)
        upper.append({"return": np.inf, "equal": mid, "two-sided": mid + 0.3}.get(what, mid + 0.2))
    A, extra = np.array(rows), 0
    if rng.random() < 0.25:
        # Turnover: w - b + s is what is held today, what is bought and sold is limited.
        extra, held = 2 * n, rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.5)
        eye, sums = np.eye(n), np.concatenate([np.zeros(n), np.ones(extra)])
        A = np.vstack([np.pad(A, ((0, 0), (0, extra))), np.hstack([eye, -eye, eye]), sums])
        lower += [*held, -np.inf]
        upper += [*held, float(rng.uniform(0.6, 1.6))]
        F, c = np.pad(F, ((0, 0), (0, extra))), np.pad(c, (0, extra))
        low, high = np.pad(low, (0, extra)), np.pad(high, (0, extra), constant_values=2.0)
    return Quadratic(F, t, c, ridge, A, np.array(lower), np.array(upper), low, high, k, n)
