r"""The certificate of sparse precision matrices ``Omega``, line by line; sizes in nats.

With at most ``k`` counted edges, eigenvalues in ``[alpha, beta]`` and ``L = -log det Omega + <S,
Omega>``: for symmetric ``U``, ``mu >= 0`` and entries within ``M``,

.. math:: L(\Omega) \ge \sum_i \min_{\alpha \le t \le \beta}
          \{-\log t + \sigma_i t - \tfrac\mu2 t^2\}
          - \sum_i d_i - \text{the } k \text{ largest } c_{ij}\; (\text{required ones always}),

with ``sigma`` the eigenvalues of ``S + U``, ``c_ij`` the largest ``2 |U_ij| t - mu t^2`` for ``t``
up to ``M_ij``, and ``d_i`` the largest ``U_ii t - mu t^2 / 2`` for ``t`` in ``[alpha, beta]``.
Every matrix that is no worse than a known one lies in a smaller set: see :func:`_smaller`.

Of several matrices with one pattern, bounds on :math:`\sum_g w_g L_g` are weighted sums of ``b_g``
and ``c^g``; where the sum is at most that of a known point, ``w_g L_g`` is at most that less what
the same bound says of the others. Sums here are weighted, without the constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from sparsemodel.checker import files
from sparsemodel.checker.files import require
from sparsemodel.checker.proof.arithmetic import UNIT, Ball
from sparsemodel.checker.proof.supports import Supports, Tree

_GRID = np.concatenate([np.geomspace(1e-3, 0.5, 12), 1.0 - np.geomspace(0.5, 1e-3, 12)])
Box = tuple[float, float, Any]
"""Bounds on the eigenvalues, and on the sizes of entries."""


class Graph:
    """The problem: covariance, edges, bounds on the eigenvalues."""

    def __init__(self, facts: dict[str, Any], data: files.Data) -> None:
        p, held = files.whole(facts["order"]), facts["numbers"]
        self.p, self.k = p, files.whole(facts["k"])
        self.alpha, self.beta = files.real(facts["alpha"]), files.real(facts["beta"])
        self.weight, self.constant = files.real(facts["weight"]), files.real(facts["constant"])
        required, forbidden = (files.index(held[key], p * p) for key in ("required", "forbidden"))
        above = np.triu(np.ones((p, p), dtype=bool))
        above.ravel()[forbidden] = False
        self.rows, self.cols = np.nonzero(above)
        self.diagonal = self.rows == self.cols
        self.counted = ~self.diagonal & ~np.isin(self.rows * p + self.cols, required)
        free = np.flatnonzero(~self.counted)
        structure = np.concatenate([self.rows, self.cols, free]).astype(float)
        fits = 0.0 <= self.alpha <= self.beta and self.weight > 0.0 and self.k >= 0
        fits = fits and files.array_hash(structure) == facts["structure"]
        require(fits, "the edges or bounds in the file contradict each other")
        stated = [files.whole(facts[name]) for name in ("units", "required")]
        fits = stated == [self.counted.sum(), free.size - p]
        require(fits, "the numbers of edges in the file are wrong")
        self.S = self._covariance([files.real(v) for v in facts["probes"]], data)

    def _covariance(self, probes: list[float], data: files.Data) -> Any:
        """Return the covariance with these products ``r' S x``, maybe one of observations."""
        for name, values in data.arrays.items():
            if values.ndim != 2 or values.shape[1] != self.p or not np.all(np.isfinite(values)):
                continue
            n, centred = len(values), values - values.mean(axis=0)
            square, products = centred.T @ centred, values.T @ values / n
            tried = {name: values} if n == self.p else {}
            tried[f"the covariance of {name}, divisor {n}"] = square / n
            tried[f"the covariance of {name}, divisor {n - 1}"] = square / max(n - 1, 1)
            tried[f"the mean products of {name}"] = products
            for label, S in tried.items():
                if np.array_equal(S, S.T) and np.all(np.diag(S) > 0.0) and _probed(S, probes):
                    files.write(f"  data: S is {label}")
                    return S
        raise files.NotChecked(
            "neither your arrays nor their covariances are the certificate's S: it is about "
            "other data, or S was computed otherwise (then give S itself)"
        )

    def everything(self) -> tuple[Graph, Any]:
        """Return the problem with forbidden edges as well, and which of its edges they are."""
        other, place = copy(self), np.full((self.p, self.p), -1)
        other.rows, other.cols = np.triu_indices(self.p)
        other.diagonal = other.rows == other.cols
        place[self.rows, self.cols] = self.counted
        own = place[other.rows, other.cols]
        other.counted = own != 0
        return other, own[other.counted] < 0

    def matrix(self, x: Any) -> Any:
        """Return the symmetric matrix with the entries ``x`` on and above the diagonal."""
        out = np.zeros((self.p, self.p))
        out[self.rows, self.cols] = out[self.cols, self.rows] = x
        return out

    def in_units(self, units: Any) -> tuple[Graph, float]:
        """Return the problem for ``Theta``, ``Omega_ij = 2^(e_i + e_j) Theta_ij``, and what its
        likelihood has more: exact but for that number."""
        e, other = np.array([files.whole(v) for v in units]), copy(self)
        require(e.size == self.p and np.all(np.abs(e) <= 500), "line 'witness.units' does not fit")
        other.S = np.ldexp(self.S, e[:, None] + e)
        other.alpha = math.ldexp(self.alpha, -2 * int(e.max()))
        other.beta = math.ldexp(self.beta, -2 * int(e.min()))
        return other, 2.0 * math.log(2.0) * float(e.sum())

    def all(self) -> Box:
        """Return the bounds on matrices that are declared."""
        half = np.where(self.diagonal, self.beta, 0.5 * (self.beta - self.alpha))
        return self.alpha, self.beta, half

    def supports(self) -> Supports:
        """Return which edges may be nonzero together."""
        return Supports(self.k, Ball(np.zeros(int(self.counted.sum()))))

    def trivial(self) -> float:
        """Return a bound in nats on all matrices, whatever their edges."""
        zero = np.zeros(self.rows.size)
        return float(self.supports().bound(*minorant(self, zero, 0.0, self.all())))


def _probed(S: Any, probes: list[float]) -> bool:
    rng, found = np.random.default_rng(20_180_907), []
    for _ in probes:
        r, x = rng.standard_normal((2, S.shape[0])) / np.sqrt(np.diag(S))
        found.append(float(r @ (S @ x)))
    size = max([1.0, *map(abs, found)])
    return len(probes) >= 4 and bool(np.all(np.abs(np.subtract(probes, found)) <= 1e-8 * size))


def eigenvalues(B: Any) -> tuple[Any, float]:
    """Return eigenvalues and how far they may be off (a backward stable method)."""
    return np.linalg.eigvalsh(B), 8.0 * B.shape[0] * UNIT * float(np.linalg.norm(B))


def infimum(sigma: Any, alpha: float, beta: float, mu: float) -> float:
    """Return the sum of the minima over ``t``, a bit lower."""
    t = _minimisers(sigma, alpha, beta, mu)
    if t is None:
        return -math.inf
    terms = [-np.log(t), sigma * t, -0.5 * mu * t * t]
    size = float(sum(np.abs(v).sum() for v in terms))
    return math.fsum(np.concatenate(terms)) - 64.0 * UNIT * (size + int(t.size))


def _minimisers(sigma: Any, alpha: float, beta: float, mu: float) -> Any:
    """Return where the terms are least; None where one is unbounded.

    A term falls to the smaller root of its derivative, rises, and where ``mu beta^2 > 1`` may fall
    again: it is least at that root or at ``beta``.
    """
    edge = 2.0 * math.sqrt(mu)  # the smaller root of -1/t + sigma - mu t = 0
    root = np.sqrt(np.maximum(sigma - edge, 0.0)) * np.sqrt(np.maximum(sigma + edge, 0.0))
    t = np.where((sigma >= edge) & (sigma > 0.0), 2.0 / np.maximum(sigma + root, 1e-300), np.inf)
    t = np.clip(t, alpha, beta)
    if not np.all(np.isfinite(t)) or (mu * beta**2 > 1.0 and not math.isfinite(beta)):
        return None
    if mu * beta**2 > 1.0:
        rise = -np.log(t / beta) + sigma * (t - beta) - 0.5 * mu * (t - beta) * (t + beta)
        t = np.where(rise > 0.0, beta, t)
    return t


def _entry_costs(g: Graph, V: Any, mu: float, box: Box) -> Any:
    """Return ``c`` and ``d``, see above."""
    (alpha, beta, entries), size = box, np.abs(V)
    if mu > 0.0:
        off, on = np.minimum(size / mu, entries), np.clip(V / mu, alpha, beta)
    else:
        off, on = np.where(size > 0.0, entries, 0.0), np.where(V > 0.0, beta, alpha)
    on_cost = np.where(V == 0.0, 0.0, V * on) - 0.5 * mu * on * on
    off_cost = np.where(size == 0.0, 0.0, 2.0 * size * off - mu * off * off)
    return np.where(g.diagonal, on_cost, off_cost)


def minorant(g: Graph, V: Any, mu: float, box: Box) -> tuple[float, Any]:
    """Return the bound where no edge is chosen, and the most that each may take from it."""
    sigma, error = eigenvalues(g.S + g.matrix(V))
    costs = _entry_costs(g, V, mu, box)
    base = infimum(sigma - error, box[0], box[1], mu) - math.fsum(costs[~g.counted])
    base -= 64.0 * UNIT * float(np.abs(costs).sum())
    gains = costs[g.counted] * (1.0 + 32.0 * UNIT)
    return (base, gains) if math.isfinite(base) else (-math.inf, 0.0 * costs[g.counted])


def _smaller(g: Graph, V: Any, upper: float, box: Box) -> Box:
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
    costs = np.where(g.diagonal, 0.0, _entry_costs(g, V, 0.0, box))
    level = upper + math.fsum(costs[~g.counted]) - g.supports().bound(0.0, costs[g.counted])
    if not math.isfinite(level):
        return box
    logs = np.log(first)
    delta = max(level - float((1.0 + logs).sum()), 0.0)
    delta += 1e-12 * (abs(level) + float(np.abs(logs).sum())) + 1e-10
    least = _halved(lambda u: u - math.log(u) - 1.0 < delta, math.exp(-1.0 - delta), 1.0)[0]
    most = _halved(lambda u: u - math.log(u) - 1.0 >= delta, 1.0, 2.0 + 2.0 * delta)[1]
    alpha = max(box[0], least * (1.0 - 1e-9) / float(last[-1]))
    beta = min(box[1], most * (1.0 + 1e-9) / float(first[0]))
    P = np.linalg.inv(B)
    d = np.sqrt(np.diag(P))
    scale = d[g.rows] * d[g.cols]
    r = np.clip(P[g.rows, g.cols] / scale, -1.0, 1.0)
    sides = np.full((2, r.size), np.inf)
    for side, sign in zip(sides, (-1.0, 1.0), strict=True):
        for share in _GRID:
            a = share * np.minimum(1.0 / np.maximum(1.0 - sign * r, 1e-8), 1e4)
            q = (1.0 + sign * a * r) ** 2 - a**2
            at = (delta + 1e-4 - np.log(np.where(q > 1e-3, q, 1.0))) / (2.0 * a)
            side[:] = np.where(q > 1e-3, np.minimum(side, np.maximum(at, 0.0)), side)
    entries = np.minimum(sides.max(axis=0) * scale * (1.0 + 1e-6), 0.5 * (beta - alpha))
    entries = np.minimum(np.where(g.diagonal, beta, entries), box[2])
    return min(alpha, beta), beta, entries


def _halved(beyond: Callable[[float], bool], first: float, last: float) -> tuple[float, float]:
    """Return an interval of hardly any length at whose end ``beyond`` becomes true."""
    for _ in range(200):
        middle = 0.5 * (first + last)
        first, last = (first, middle) if beyond(middle) else (middle, last)
    return first, last


def _enclosed(g: Graph, units: Any, upper: float) -> tuple[Graph, float, float, Box]:
    """Return the problem in units, its shift and level, and a set that holds the best matrices."""
    h, shift = (g, 0.0) if units is None else g.in_units(units)
    level = upper + shift + 4.0 * UNIT * (abs(upper) + abs(shift))
    return h, shift, level, _smaller(h, np.zeros(h.rows.size), level, h.all())


def _modulus(box: Box) -> float:
    """Return a strong-convexity constant of the likelihood on a set."""
    return (1.0 - 1e-12) / box[1] ** 2 if math.isfinite(box[1]) else 0.0


def summed(graphs: list[Graph], values: list[float], direction: float) -> float:
    """Return the weighted sum of numbers in nats, rounded up or down."""
    products = [g.weight * v for g, v in zip(graphs, values, strict=True)]
    if not all(map(math.isfinite, products)):
        return sum(products)
    return math.fsum(products) + direction * 8.0 * UNIT * math.fsum(map(abs, products))


def columns(graphs: list[Graph], item: Any) -> list[Any]:
    """Return the entries of each matrix, finite and as many as there are."""
    x, shape = files.array(item), graphs[0].rows.shape + ((len(graphs),) if len(graphs) > 1 else ())
    fits = x is not None and x.shape == shape and np.all(np.isfinite(x))
    require(fits, "a matrix of the witness does not fit, or is not finite")
    return [x] if len(graphs) == 1 else list(x.T.copy())


class _Pattern:
    """The matrices, each in its units and in a set that holds it where all are best."""

    def __init__(self, graphs: list[Graph], units: list[Any], most: float) -> None:
        """``most`` is not below the optimum."""
        self.graphs, self.most = graphs, most
        self.held = list[tuple[Graph, float, float, Box]]()
        least = [g.trivial() for g in graphs]
        for i, g in enumerate(graphs):
            rest = summed(graphs[:i] + graphs[i + 1 :], least[:i] + least[i + 1 :], -1.0)
            self.held.append(_enclosed(g, units[i], self._level(i, rest)))

    def _level(self, i: int, least: float) -> float:
        """Return the largest likelihood of a matrix, beside what the others have at least."""
        room = self.most - least + 8.0 * UNIT * (abs(self.most) + abs(least))
        return (room + 8.0 * UNIT * abs(room)) / self.graphs[i].weight

    def bound(self, V: list[Any], mu: Any, without: int = -1) -> float:
        """Return the weighted bound on all matrices but one (none by default)."""
        base, size, gains = 0.0, 0.0, 0.0 * V[0][self.graphs[0].counted]
        for i, (g, (h, shift, _, box)) in enumerate(zip(self.graphs, self.held, strict=True)):
            if i != without:
                b, c = minorant(h, V[i], files.real(float(mu[i])), box)
                base += g.weight * (b - shift)
                size += g.weight * (abs(b) + abs(shift))
                gains = gains + g.weight * c * (1.0 + 16.0 * UNIT)
        if not math.isfinite(base):
            return -math.inf
        found = self.graphs[0].supports().bound(base, gains)
        return float(found - 16.0 * UNIT * (abs(found) + size))

    def narrow(self, V: list[Any], mu: Any) -> None:
        """Make the sets smaller."""
        held = []
        for i, (h, shift, level, box) in enumerate(self.held):
            if len(self.held) > 1:
                new = self._level(i, self.bound(V, mu, without=i))
                level = min(level, new + shift + 4.0 * UNIT * (abs(new) + abs(shift)))
            box = _smaller(h, np.where(h.diagonal, 0.0, V[i]), level, box)
            held.append((h, shift, level, box))
        self.held = held


def witnessed(graphs: list[Graph], witness: Any, most: float) -> float:
    """Return the weighted bound of the dual matrices in a file; there may be none."""
    m, p, moduli, units = len(graphs), graphs[0].p, witness.get("moduli"), witness.get("units")
    rounds, one = [*witness["enclosing"], witness["final"]], witness.get("modulus")
    require(units is None or len(units) == m * p, "line 'witness.units' does not fit")
    if witness["final"] is None:
        return -math.inf
    each = [units and units[i * p : (i + 1) * p] for i in range(m)]
    pattern = _Pattern(graphs, each, most)
    for place, item in enumerate(rounds):
        V = columns(graphs, item)
        if moduli is not None:
            mu = np.reshape([files.real(v) for v in moduli], (len(rounds), m))[place]
        else:
            mu = np.array(
                [_modulus(box) if one is None else files.real(one) for *_, box in pattern.held]
            )
        fits = np.all((mu >= 0.0) & (mu < np.inf))
        require(fits, "a modulus of the witness is negative, or not finite")
        if place == len(rounds) - 1:
            return pattern.bound(V, mu)
        pattern.narrow(V, mu)
    return -math.inf


class _Edges(Tree):
    r"""A search over edges, for the matrices with a likelihood of at most ``upper``.

    A dual point ``U``, ``mu`` bounds a part as above. A branch also narrows the set of matrices.
    Let :math:`\varphi(t) = -\log t + s t - \nu t^2 / 2` with the least eigenvalue ``s`` of ``S +
    U'`` and a modulus ``nu`` for which every term is convex. A matrix with the eigenvalue ``t``
    lies above the bound by at least :math:`\varphi(t) - \min \varphi` (von Neumann's inequality):
    where that is more than what is left, no such matrix matters.
    """

    def __init__(self, g: Graph, upper: float, nodes: list[Any]) -> None:
        super().__init__(nodes, g.supports())
        self.g, self.upper = g, upper

    def evaluate(self, record: Any, inside: Any, out: Any, facts: Any) -> Any:
        """Return base, gains and the dual point of a record."""
        fits: Any = record.get("enumerated") is not True and "at" not in record
        require(fits, "a part of the search holds no dual matrix")
        if "duals" not in record:
            return -np.inf, np.zeros(self.count), None, 0.0
        V, mu = (np.array([files.real(v) for v in part]) for part in record["duals"])
        fits = V.shape == self.g.rows.shape and mu.shape == (1,) and np.all(np.isfinite(V))
        require(fits and 0.0 <= mu[0] < np.inf, "a dual matrix of the search does not fit")
        return *minorant(self.g, V, float(mu[0]), facts), V, float(mu[0])

    def below(self, found: Any, inside: Any, out: Any, facts: Any) -> Any:
        """Return a smaller set for the children of a part."""
        g, own = self.g, _modulus(facts)
        if not found[0] > -np.inf or not own > 0.0:
            return facts
        V, mu = found[2:]
        B = g.S + g.matrix(V)
        sigma, vectors = np.linalg.eigh(B)
        t = _minimisers(sigma - eigenvalues(B)[1], facts[0], facts[1], mu)
        omega = (vectors * t) @ vectors.T  # any matrix will do
        V = V - (mu - own) * omega[g.rows, g.cols]
        sigma, error = eigenvalues(g.S + g.matrix(V))
        s = float(sigma[0]) - error

        def phi(t: float) -> float:
            return -math.log(t) + s * t - 0.5 * own * t * t

        first, last = float(_minimisers(np.array([s]), facts[0], facts[1], own)[0]), facts[1]
        allowed = phi(first) + self.upper - self._at(minorant(g, V, own, facts), inside, out)
        allowed += 1e-12 * (abs(allowed) + abs(s) * last + 1.0)
        if not phi(last) > allowed:
            return facts
        last = _halved(lambda t: phi(t) > allowed, first, last)[1]
        limits = np.where(g.diagonal, last, 0.5 * (last - facts[0]))
        return facts[0], last, np.minimum(facts[2], limits)


def searched(g: Graph, upper: float, tree: dict[str, Any]) -> float:
    """Return the bound in nats that a search proves; ``upper`` is one on the optimum."""
    require(tree.get("kind") == "parts" and not tree["stages"], "the proof is no search over edges")
    whole_, forbidden = g.everything()
    h, shift, level, box = _enclosed(whole_, tree["units"], upper)
    found = min(float(_Edges(h, level, tree["nodes"]).bound(forbidden, box)), level) - shift
    return found - 4.0 * UNIT * (abs(found) + abs(shift))
