r"""The certificate of a sparse precision matrix ``Omega``, line by line; sizes in nats.

With at most ``k`` counted edges, eigenvalues in ``[alpha, beta]`` and ``L = -log det Omega + <S,
Omega>``: for symmetric ``U``, ``mu >= 0`` and entries within ``M``,

.. math:: L(\Omega) \ge \sum_i \min_{\alpha \le t \le \beta}
          \{-\log t + \sigma_i t - \tfrac\mu2 t^2\}
          - \sum_i d_i - \text{the } k \text{ largest } c_{ij}\; (\text{required ones always}),

with ``sigma`` the eigenvalues of ``S + U``, ``c_ij`` the largest ``2 |U_ij| t - mu t^2`` for ``t``
up to ``M_ij``, and ``d_i`` the largest ``U_ii t - mu t^2 / 2`` for ``t`` in ``[alpha, beta]``.
Every matrix that is no worse than a known one lies in a smaller set: see :func:`smaller`.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from sparsemodel.checker.files import Data, Refuted, array_hash, index, real, whole
from sparsemodel.checker.proof.arithmetic import UNIT, Ball
from sparsemodel.checker.proof.supports import Supports

_GRID = np.concatenate([np.geomspace(1e-3, 0.5, 12), 1.0 - np.geomspace(0.5, 1e-3, 12)])


class Graph:
    """The problem: covariance, edges, bounds on the eigenvalues."""

    def __init__(self, facts: dict[str, Any], data: Data) -> None:
        p, held = whole(facts["order"]), facts["numbers"]
        self.p, self.k = p, whole(facts["k"])
        self.alpha, self.beta = real(facts["alpha"]), real(facts["beta"])
        self.weight, self.constant = real(facts["weight"]), real(facts["constant"])
        required, forbidden = (index(held[key], p * p) for key in ("required", "forbidden"))
        above = np.triu(np.ones((p, p), dtype=bool))
        above.ravel()[forbidden] = False
        self.rows, self.cols = np.nonzero(above)
        self.diagonal = self.rows == self.cols
        self.counted = ~self.diagonal & ~np.isin(self.rows * p + self.cols, required)
        free = np.flatnonzero(~self.counted)
        structure = np.concatenate([self.rows, self.cols, free]).astype(float)
        makes_sense = 0.0 <= self.alpha <= self.beta and self.weight > 0.0 and self.k >= 0
        if not makes_sense or array_hash(structure) != facts["structure"]:
            raise Refuted("the edges or bounds in the file contradict each other.")
        if whole(facts["units"]) != self.counted.sum() or whole(facts["required"]) != free.size - p:
            raise Refuted("the numbers of edges in the file are wrong.")
        self.source, self.S = self._covariance([real(v) for v in facts["probes"]], data)
        self.words = [
            f"minimise {self.weight:g} (-log det Omega + <S, Omega>)"
            + (f" + {self.constant!r}" if self.constant else ""),
            f"  over symmetric matrices of order {p}, S: {self.source}",
            f"  with at most k = {self.k} of {int(self.counted.sum())} edges (pairs i < j) nonzero",
            f"  ({required.size} required beside them, {forbidden.size} forbidden)",
            f"  and eigenvalues between {self.alpha!r} and {self.beta!r}",
        ]

    def _covariance(self, probes: list[float], data: Data) -> tuple[str, Any]:
        """Return the covariance with these products ``r' S x``, maybe one of observations."""
        for name, values in data.arrays.items():
            if values.ndim != 2 or values.shape[1] != self.p or not np.all(np.isfinite(values)):
                continue
            tried = {name: values} if values.shape[0] == self.p else {}
            n, centred = values.shape[0], values - values.mean(axis=0)
            tried[f"the covariance of {name}, divisor {n}"] = centred.T @ centred / n
            tried[f"the covariance of {name}, divisor {n - 1}"] = (
                centred.T @ centred / max(n - 1, 1)
            )
            tried[f"the mean products of {name}"] = values.T @ values / n
            for label, S in tried.items():
                if np.array_equal(S, S.T) and np.all(np.diag(S) > 0.0) and _probed(S, probes):
                    return label, S
        raise Refuted(
            "neither your arrays nor their covariances are the certificate's S: it is about "
            "other data, or S was computed otherwise (then give S itself)."
        )

    def everything(self) -> tuple[Graph, Any]:
        """Return the problem with forbidden edges as well, and which of its edges they are."""
        other, p = copy(self), self.p
        other.rows, other.cols = np.triu_indices(p)
        other.diagonal = other.rows == other.cols
        place = np.full(p * p, -1)
        place[self.rows * p + self.cols] = np.where(self.counted, 1, 0)
        own = place[other.rows * p + other.cols]
        other.counted = own != 0
        return other, own[other.counted] < 0

    def matrix(self, x: Any) -> Any:
        """Return the symmetric matrix with the entries ``x`` on and above the diagonal."""
        out = np.zeros((self.p, self.p))
        out[self.rows, self.cols] = out[self.cols, self.rows] = x
        return out

    def in_units(self, e: Any) -> tuple[Graph, float]:
        """Return the problem for ``Theta``, ``Omega_ij = 2^(e_i + e_j) Theta_ij``, and what its
        likelihood has more: exact but for that number."""
        if e.size != self.p or np.any(np.abs(e) > 500):
            raise Refuted("line 'witness.units' does not fit.")
        other = copy(self)
        other.S = np.ldexp(self.S, e[:, None] + e)
        other.alpha = math.ldexp(self.alpha, -2 * int(e.max()))
        other.beta = math.ldexp(self.beta, -2 * int(e.min()))
        return other, 2.0 * math.log(2.0) * float(e.sum())

    def supports(self) -> Supports:
        """Return which edges may be nonzero together."""
        none = np.zeros(int(self.counted.sum()))
        return Supports(self.k, Ball(none), [], [], [], none > 0.0)


def _probed(S: Any, probes: list[float]) -> bool:
    rng, found = np.random.default_rng(20_180_907), []
    for _ in probes:
        r, x = rng.standard_normal((2, S.shape[0])) / np.sqrt(np.diag(S))
        found.append(float(r @ (S @ x)))
    size = max(1.0, *map(abs, found))
    return len(probes) >= 4 and all(
        abs(a - b) <= 1e-8 * size for a, b in zip(probes, found, strict=True)
    )


def eigenvalues(B: Any) -> tuple[Any, float]:
    """Return eigenvalues and how far they may be off (a backward stable method)."""
    return np.linalg.eigvalsh(B), 8.0 * B.shape[0] * UNIT * float(np.linalg.norm(B))


def infimum(sigma: Any, alpha: float, beta: float, mu: float) -> float:
    """Return the sum of the minima over ``t``, a bit lower."""
    t = minimisers(sigma, alpha, beta, mu)
    if t is None:
        return -math.inf
    terms = [-np.log(t), sigma * t, -0.5 * mu * t * t]
    size = float(sum(np.abs(v).sum() for v in terms))
    return math.fsum(np.concatenate(terms)) - 64.0 * UNIT * (size + int(t.size))


def minimisers(sigma: Any, alpha: float, beta: float, mu: float) -> Any:
    """Return where the terms are least; None where one is unbounded.

    A term falls to the smaller root of its derivative, rises, and where ``mu beta^2 > 1`` may fall
    again: it is least at that root or at ``beta``.
    """
    with np.errstate(all="ignore"):
        if mu == 0.0:
            t = np.where(sigma > 0.0, 1.0 / np.maximum(sigma, 1e-300), np.inf)
        else:  # the smaller root of -1/t + sigma - mu t = 0
            edge = 2.0 * math.sqrt(mu)
            root = np.sqrt(np.maximum(sigma - edge, 0.0)) * np.sqrt(np.maximum(sigma + edge, 0.0))
            t = np.where(sigma >= edge, 2.0 / np.maximum(sigma + root, 1e-300), np.inf)
    t = np.clip(t, alpha, beta)
    if not np.all(np.isfinite(t)):
        return None
    if mu * beta**2 > 1.0:
        if not math.isfinite(beta):
            return None
        rise = -np.log(t / beta) + sigma * (t - beta) - 0.5 * mu * (t - beta) * (t + beta)
        t = np.where(rise > 0.0, beta, t)
    return t


def entry_costs(g: Graph, V: Any, mu: float, box: tuple[float, float, Any]) -> Any:
    """Return ``c`` and ``d``, see above."""
    alpha, beta, entries = box
    size = np.abs(V)
    if mu > 0.0:
        off, on = np.minimum(size / mu, entries), np.clip(V / mu, alpha, beta)
    else:
        off, on = np.where(size > 0.0, entries, 0.0), np.where(V > 0.0, beta, alpha)
    with np.errstate(invalid="ignore"):
        on_cost = np.where(V == 0.0, 0.0, V * on) - 0.5 * mu * on * on
        off_cost = np.where(size == 0.0, 0.0, 2.0 * size * off - mu * off * off)
    return np.where(g.diagonal, on_cost, off_cost)


def minorant(g: Graph, V: Any, mu: float, box: tuple[float, float, Any]) -> tuple[float, Any]:
    """Return the bound where no edge is chosen, and the most that each may take from it."""
    sigma, error = eigenvalues(g.S + g.matrix(V))
    costs = entry_costs(g, V, mu, box)
    base = infimum(sigma - error, box[0], box[1], mu) - math.fsum(costs[~g.counted])
    base -= 64.0 * UNIT * float(np.abs(costs).sum())
    gains = costs[g.counted] * (1.0 + 32.0 * UNIT)
    return (base, gains) if math.isfinite(base) else (-math.inf, 0.0 * costs[g.counted])


def smaller(g: Graph, V: Any, upper: float, box: tuple[float, float, Any]) -> Any:
    r"""Return a smaller set that holds the matrices with ``L <= upper`` in ``box``.

    On it ``-log det Omega + <B, Omega> <= upper + costs`` with ``B = S + V``, so that ``u = sigma
    t`` has ``u - log u - 1 <= delta``, where ``delta`` is that level less ``sum(1 + log sigma_i)``;
    and for ``nu > 0`` ``+-Omega_ij <= (delta - log q) / (2 nu)``, ``q = (1 -+ nu P_ij)^2 - nu^2
    P_ii P_jj``, ``P`` the inverse of ``B`` (duality; the best of a grid of ``nu`` is taken).
    """
    B = g.S + g.matrix(V)
    sigma, error = eigenvalues(B)
    first, last = sigma - error, sigma + error
    if not first[0] > 0.0 or last[-1] / first[0] * g.p * UNIT > 1e-9:
        return box
    costs = np.where(g.diagonal, 0.0, entry_costs(g, V, 0.0, box))
    level = upper + math.fsum(costs[~g.counted]) - g.supports().bound(0.0, costs[g.counted])
    if not math.isfinite(level):
        return box
    logs = np.log(first)
    delta = max(level - float((1.0 + logs).sum()), 0.0)
    delta += 1e-12 * (abs(level) + float(np.abs(logs).sum())) + 1e-10
    alpha = max(box[0], _root(delta, False) / float(last[-1]))
    beta = min(box[1], _root(delta, True) / float(first[0]))
    P = np.linalg.inv(B)
    d = np.sqrt(np.diag(P))
    scale = d[g.rows] * d[g.cols]
    r = np.clip(P[g.rows, g.cols] / scale, -1.0, 1.0)
    sides = []
    for sign in (-1.0, 1.0):
        side = np.full(r.size, np.inf)
        for share in _GRID:
            a = share * np.minimum(1.0 / np.maximum(1.0 - sign * r, 1e-8), 1e4)
            q = (1.0 + sign * a * r) ** 2 - a**2
            at = (delta + 1e-4 - np.log(np.where(q > 1e-3, q, 1.0))) / (2.0 * a)
            side = np.where(q > 1e-3, np.minimum(side, np.maximum(at, 0.0)), side)
        sides.append(side)
    entries = np.minimum(box[2], np.maximum(*sides) * scale * (1.0 + 1e-6))
    entries = np.where(
        g.diagonal, np.minimum(box[2], beta), np.minimum(entries, 0.5 * (beta - alpha))
    )
    return min(alpha, beta), beta, entries


def enclosed(g: Graph, units: Any, upper: float) -> tuple[Graph, float, float, Any]:
    """Return the problem in units, its shift and level, and a set that holds the best matrices."""
    h, shift = (g, 0.0) if units is None else g.in_units(np.array([whole(e) for e in units]))
    half = np.where(h.diagonal, h.beta, 0.5 * (h.beta - h.alpha))
    level = upper + shift + 4.0 * UNIT * (abs(upper) + abs(shift))
    box = smaller(h, np.zeros(h.rows.size), level, (h.alpha, h.beta, half))
    return h, shift, level, box


def modulus(box: Any) -> float:
    """Return a strong-convexity constant of the likelihood on a set."""
    return (1.0 - 1e-12) / box[1] ** 2 if math.isfinite(box[1]) else 0.0


def _root(delta: float, large: bool) -> float:
    """Return a root of ``u - log u - 1 = delta``, a bit further out."""
    first, last = (1.0, 2.0 + 2.0 * delta) if large else (math.exp(-1.0 - delta), 1.0)
    for _ in range(200):
        middle = 0.5 * (first + last)
        first, last = (
            (middle, last)
            if (middle - math.log(middle) - 1.0 < delta) == large
            else (first, middle)
        )
    return last * (1.0 + 1e-9) if large else first * (1.0 - 1e-9)
