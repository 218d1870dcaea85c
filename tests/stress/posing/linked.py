"""Random problems whose constraints link units: equations, ties, sums, norms, sizes, and mixtures.

A sparse point is drawn first and the constraints around it, so that every problem is feasible and
its support is a reference. What is declared is a value (:class:`Linked`), so that the same problem
can be declared in another order, in other units, with other rows, or with more or less to keep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

import sparsemodel as sm
from sparsemodel.interfaces import FloatArray, IntArray
from tests.stress.courts.court import Court
from tests.stress.courts.laws import keep_laws
from tests.stress.posing.structures import pick

LOSSES: tuple[tuple[str, float], ...] = (
    ("squared", 0.5),
    ("huber", 0.12),
    ("logistic", 0.14),
    ("absolute", 0.12),
    ("quantile", 0.04),
    ("poisson", 0.04),
    ("variance", 0.04),
)
"""Losses, and how often each is drawn."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Norm:
    """``||F w - g|| <= radius``; without a matrix ``||w - g||``."""

    order: int
    g: FloatArray
    radius: float
    matrix: FloatArray | None = None


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Linked:
    """What is declared, as arrays, and the point around which it was."""

    loss: str
    A: FloatArray
    y: FloatArray
    weights: FloatArray
    ridge: float
    k: int
    truth: FloatArray
    rows: tuple[tuple[FloatArray, float, float], ...] = ()
    """Rows ``c``, with ``low <= c @ w <= high``."""
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    least: tuple[FloatArray, FloatArray] | None = None
    """Least and largest sizes of what is not zero."""
    norms: tuple[Norm, ...] = ()
    groups: IntArray | None = None
    part: tuple[IntArray, int] | None = None
    """Entries of which so many may be nonzero."""
    words: tuple[str, ...] = field(default=())

    def problem(self) -> sm.Problem:
        """Return the problem in the language."""
        w = sm.Variable(self.A.shape[1], name="w")
        return sm.Problem(self._goal(w), self._constraints(w))

    def _goal(self, w: sm.Variable) -> Any:
        u, weights = self.A @ w, self.weights
        losses: dict[str, Any] = {
            "squared": lambda: sm.squared_loss(u, self.y, weights=weights),
            "huber": lambda: sm.huber_loss(u, self.y, weights=weights),
            "logistic": lambda: sm.logistic_loss(u, self.y, weights=weights),
            "absolute": lambda: sm.absolute_loss(u, self.y, weights=weights),
            "quantile": lambda: sm.quantile_loss(u, self.y, tau=0.3, weights=weights),
            "poisson": lambda: sm.poisson_loss(u, self.y, weights=weights),
            "variance": lambda: sm.squared_loss(u, 0.0 * self.y, weights=weights),
        }
        ridge = sm.ridge(w, self.ridge)
        return sm.minimize(losses[self.loss]() + ridge if self.ridge else losses[self.loss]())

    def _constraints(self, w: sm.Variable) -> list[Any]:
        out: list[Any] = [sm.card(w, groups=self.groups) <= self.k]
        for c, low, high in self.rows:
            if low == high:
                out.append(c @ w == low)
                continue
            out += [c @ w >= low] if np.isfinite(low) else []
            out += [c @ w <= high] if np.isfinite(high) else []
        out += [] if self.lower is None else [w >= self.lower]
        out += [] if self.upper is None else [w <= self.upper]
        if self.least is not None:
            out.append(sm.semicontinuous(w, *self.least))
        for norm in self.norms:
            inside = w - norm.g if norm.matrix is None else norm.matrix @ w - norm.g
            out.append(sm.norm(inside, norm.order) <= norm.radius)
        if self.part is not None:
            out.append(sm.card(w[self.part[0]]) <= self.part[1])
        return out

    def __repr__(self) -> str:
        words = " + ".join(self.words) or "nothing"
        return f"{self.loss}, {words}, {self.A.shape[0]} x {self.A.shape[1]}, k = {self.k}"

    # ---- what is known of it ------------------------------------------------------------------

    @property
    def units(self) -> int:
        """Return how many entries, or groups, there are to choose from."""
        return self.truth.size if self.groups is None else int(self.groups.max()) + 1

    def coordinates(self, units: IntArray) -> IntArray:
        """Return the entries of some units."""
        return units if self.groups is None else np.flatnonzero(np.isin(self.groups, units))

    @property
    def planted(self) -> IntArray:
        """Return the support of the point that the constraints were made for."""
        on = np.flatnonzero(self.truth)
        return on if self.groups is None else self.coordinates(self.groups[on])

    def counts(self, support: IntArray) -> bool:
        """Return whether as many of the part as a support has may be nonzero."""
        return self.part is None or int(np.isin(support, self.part[0]).sum()) <= self.part[1]

    def objective(self, x: FloatArray) -> float:
        """Return the objective at a point."""
        u, y = self.A @ x, self.y
        losses: dict[str, Callable[[], FloatArray]] = {
            "squared": lambda: 0.5 * (u - y) ** 2,
            "variance": lambda: 0.5 * (u - y) ** 2,
            "huber": lambda: np.where(
                np.abs(u - y) <= 1.0, 0.5 * (u - y) ** 2, np.abs(u - y) - 0.5
            ),
            "logistic": lambda: np.logaddexp(0.0, -y * u),
            "absolute": lambda: np.abs(u - y),
            "quantile": lambda: np.maximum(0.3 * (y - u), 0.7 * (u - y)),
            "poisson": lambda: np.exp(u) - y * u,
        }
        each = losses[self.loss]()
        return float(np.sum(self.weights * each) / y.size + 0.5 * self.ridge * x @ x)

    # ---- the same, declared otherwise --------------------------------------------------------

    def permuted(self, order: IntArray) -> Linked:
        """Return the problem with its columns in another order."""
        place = np.argsort(order)
        return replace(
            self,
            A=self.A[:, order],
            truth=self.truth[order],
            rows=tuple((c[order], low, high) for c, low, high in self.rows),
            lower=None if self.lower is None else self.lower[order],
            upper=None if self.upper is None else self.upper[order],
            least=None if self.least is None else (self.least[0][order], self.least[1][order]),
            norms=tuple(
                replace(n, g=n.g[order])
                if n.matrix is None
                else replace(n, matrix=n.matrix[:, order])
                for n in self.norms
            ),
            groups=None if self.groups is None else self.groups[order],
            part=None if self.part is None else (np.sort(place[self.part[0]]), self.part[1]),
        )

    def scaled(self, units: FloatArray) -> Linked:
        """Return the problem with columns in other units, for one without ridge."""
        return replace(
            self,
            A=self.A * units,
            truth=self.truth / units,
            rows=tuple((c * units, low, high) for c, low, high in self.rows),
            lower=None if self.lower is None else self.lower / units,
            upper=None if self.upper is None else self.upper / units,
            least=None if self.least is None else (self.least[0] / units, self.least[1] / units),
            norms=tuple(
                replace(n, matrix=np.diag(units) if n.matrix is None else n.matrix * units)
                for n in self.norms
            ),
        )

    def without_one(self, rng: np.random.Generator) -> Linked | None:
        """Return the problem without one of its constraints; None where it has none."""
        rows, norms = self.rows, self.norms
        ways = [replace(self, rows=rows[:i] + rows[i + 1 :]) for i in range(len(rows))]
        ways += [replace(self, norms=norms[:i] + norms[i + 1 :]) for i in range(len(norms))]
        ways += [replace(self, upper=None)] if self.upper is not None else []
        ways += [replace(self, least=None)] if self.least is not None else []
        ways += [replace(self, part=None)] if self.part is not None else []
        return ways[int(rng.integers(len(ways)))] if ways else None

    def with_idle_limit(self) -> Linked | None:
        """Return the problem with a limit that no good point comes near."""
        p, most = self.truth.size, 1e3 * float(np.abs(self.truth).max())
        if self.least is not None:
            return replace(self, rows=(*self.rows, (np.ones(p), -np.inf, most)))
        if self.upper is not None:
            return None
        low = np.full(p, -most) if self.lower is None else self.lower
        return replace(self, lower=low, upper=np.full(p, most))

    def repeated(self, row: int) -> Linked:
        """Return the problem with a row of twice the weight as two rows; sums, not means."""
        rows = np.append(np.arange(self.y.size), row)
        return replace(self, A=self.A[rows], y=self.y[rows], weights=self.weights[rows])

    def keeps(self, x: FloatArray, tolerance: float = 1e-7) -> bool:
        """Return whether a point keeps everything that is declared."""
        size = max(1.0, float(np.abs(x).max(initial=0.0)))
        on = x != 0.0
        count = int(on.sum()) if self.groups is None else np.unique(self.groups[on]).size
        fits = count <= self.k
        fits &= all(
            low - tolerance * size <= c @ x <= high + tolerance * size for c, low, high in self.rows
        )
        fits &= self.lower is None or bool(np.all(x >= self.lower - tolerance * size))
        fits &= self.upper is None or bool(np.all(x <= self.upper + tolerance * size))
        if self.least is not None:
            low, high = self.least
            fits &= bool(np.all(~on | (np.abs(x) >= low * (1.0 - tolerance))))
            fits &= bool(np.all(np.abs(x) <= high * (1.0 + tolerance)))
        for n in self.norms:
            inside = x - n.g if n.matrix is None else n.matrix @ x - n.g
            fits &= float(np.linalg.norm(inside, n.order)) <= n.radius * (1.0 + tolerance)
        if self.part is not None:
            fits &= int(on[self.part[0]].sum()) <= self.part[1]
        return bool(fits)


def drawn(court: Court) -> Linked:
    """Return a random problem, feasible on the support that made the data."""
    rng = court.rng
    p = int(rng.integers(6, 41))
    k = int(rng.integers(2, max(3, min(8, p // 2))))
    names, chances = zip(*LOSSES, strict=True)
    loss = str(rng.choice(names, p=np.array(chances) / sum(chances)))
    signed = rng.random() < 0.35 or loss == "variance"
    truth, support = np.zeros(p), np.sort(rng.permutation(p)[:k])
    truth[support] = rng.uniform(0.5, 2.0, k) * (1.0 if signed else rng.choice((-1.0, 1.0), k))
    truth, rows, words = _rows(court, loss, truth, signed=signed)
    posed = Linked(loss, np.empty((0, p)), truth, truth, 0.0, k, truth, rows, words=words)
    if signed and rng.random() < 0.8:
        posed = replace(posed, lower=np.zeros(p))
    for made in (_box, _sizes, _norms, _counts):
        posed = made(court, posed)
    return _with_data(court, posed)


Row = tuple[FloatArray, float, float]


def _rows(
    court: Court, loss: str, truth: FloatArray, *, signed: bool
) -> tuple[FloatArray, tuple[Row, ...], tuple[str, ...]]:
    """Return a point, moved to satisfy what it is to, the rows that it satisfies, and their kinds.

    Ties and sums of zero move it; then come a total, inequalities and an equation.
    """
    rng, p, support = court.rng, truth.size, np.flatnonzero(truth)
    rows, words = list[Row](), list[str]()
    one, before = np.eye(p), truth.copy()
    for _ in range(int(rng.integers(0, 3))):  # in the model, or anywhere
        i, j = rng.choice(support if rng.random() < 0.7 else p, 2, replace=False)
        sign = 1.0 if signed else pick(court, (1.0, -1.0))
        if truth[i] != 0.0 and truth[j] != 0.0:
            truth[j] = sign * truth[i]
        rows.append((one[i] - sign * one[j], 0.0, 0.0))
        words.append("tie")
    if rng.random() < 0.25 and not signed:
        size = pick(court, (3, 5))
        for first in range(0, p - size + 1, size):
            group = np.arange(first, first + size)
            on = group[truth[group] != 0.0]
            truth[on[-1:]] = -truth[on[:-1]].sum()
            rows.append((one[group].sum(axis=0), 0.0, 0.0))
        words.append("zero sums")
    if not truth.any():
        truth = before
    rows = [row for row in rows if abs(row[0] @ truth) < 1e-12]  # others moved it since
    if rng.random() < 0.3 or loss == "variance":
        truth = truth / truth.sum() if signed else truth
        rows.append((np.ones(p), float(truth.sum()), float(truth.sum())))
        words.append("sum")
    if rng.random() < 0.25:
        slack = pick(court, (0.0, 0.1, 3.0))
        C = rng.standard_normal((int(rng.integers(1, 4)), p))
        rows += [(c, -np.inf, float(c @ truth) + slack) for c in C]
        words.append("inequalities")
    if rng.random() < 0.15:
        c = rng.standard_normal(p) * (rng.random(p) < 0.5)
        rows.append((c, float(c @ truth), float(c @ truth)))
        words.append("equation")
    return truth, tuple(rows), tuple(words)


def _box(court: Court, posed: Linked) -> Linked:
    if court.rng.random() >= 0.3:
        return posed
    most = float(np.abs(posed.truth).max()) * pick(court, (1.0, 1.2, 3.0))
    upper = np.full(posed.truth.size, most)
    lower = -upper if posed.lower is None else posed.lower
    return replace(posed, lower=lower, upper=upper, words=(*posed.words, "box"))


def _sizes(court: Court, posed: Linked) -> Linked:
    """Return the problem with least sizes, which positive entries may have."""
    if court.rng.random() >= 0.15 or np.any(posed.truth < 0.0):
        return posed
    on, p = posed.truth[posed.truth != 0.0], posed.truth.size
    least = np.full(p, float(on.min()) * pick(court, (0.5, 0.9))), np.full(p, 1.5 * on.max())
    return replace(posed, least=least, lower=None, upper=None, words=(*posed.words, "sizes"))


def _norms(court: Court, posed: Linked) -> Linked:
    """Return the problem with limits on norms, most about a dense point, that its point keeps."""
    rng, truth, p = court.rng, posed.truth, posed.truth.size
    signs = 1.0 if np.all(truth >= 0.0) else rng.choice((-1.0, 1.0), p)
    for kind in ("turnover", "ball", "image", "diamond"):
        if rng.random() >= 0.12:
            continue
        dense = rng.dirichlet(np.full(p, 0.8)) * float(np.abs(truth).sum()) * signs
        matrix = rng.standard_normal((p + 3, p)) / np.sqrt(p) if kind == "image" else None
        g = np.zeros(p) if kind == "diamond" else dense if matrix is None else matrix @ dense
        order = 1 if kind in ("turnover", "diamond") else 2
        inside = truth - g if matrix is None else matrix @ truth - g
        radius = float(np.linalg.norm(inside, order)) * pick(court, (1.0001, 1.02, 1.2))
        norms = (*posed.norms, Norm(order, g, radius, matrix))
        posed = replace(posed, norms=norms, words=(*posed.words, kind))
    return posed


def _counts(court: Court, posed: Linked) -> Linked:
    """Return the problem with its ``k``, some of groups, some beside a limit on a part."""
    rng, truth = court.rng, posed.truth
    posed = replace(posed, k=int(np.count_nonzero(truth)))
    if rng.random() < 0.12 and posed.least is None:
        groups = np.arange(truth.size) // pick(court, (2, 3))
        k = int(np.unique(groups[truth != 0.0]).size)
        return replace(posed, groups=groups, k=k, words=(*posed.words, "groups"))
    if rng.random() < 0.15:
        half = np.sort(rng.permutation(truth.size)[: truth.size // 2])
        part = half, max(1, int(np.count_nonzero(truth[half])))
        return replace(posed, part=part, words=(*posed.words, "part"))
    return posed


def _with_data(court: Court, posed: Linked) -> Linked:
    """Return the problem with data that its point made."""
    rng, p, loss = court.rng, posed.truth.size, posed.loss
    n = int(rng.integers(max(10, p // 2), 3 * p + 20))
    A = rng.standard_normal((n, p)) + pick(court, (0.0, 0.0, 0.7)) * rng.standard_normal((n, 1))
    signal = A @ posed.truth
    noise = pick(court, (0.1, 0.3, 1.0)) * max(float(signal.std()), 1e-3)
    y = signal + noise * rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > np.median(y), 1.0, -1.0)
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(signal, -3.0, 3.0))).astype(float)
    elif loss == "variance":
        y = np.zeros(n)
    ridge = pick(court, (0.0, 0.0, 1e-2))
    if loss in ("logistic", "poisson") or posed.groups is not None:
        ridge = 1e-2
    return replace(posed, A=A, y=y, weights=np.ones(n), ridge=ridge)


def linked(court: Court) -> None:
    """Pose a random mixture of constraints, and ask that laws are kept."""
    keep_laws(court, drawn(court))
