"""What the numbers of a certificate allow to be said, and the report on what was compared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemodel.checker.arithmetic import middle
from sparsemodel.checker.bound import predictions, weighted
from sparsemodel.checker.files import Refuted
from sparsemodel.checker.problem import Problem

OPTIMAL_GAP = 1e-6
FEASIBLE = 1e-9
"""Violation of declared bounds, relative to their size, that counts as rounding."""

_OF_RESIDUALS = ("squared_loss", "huber_loss", "absolute_loss", "quantile_loss")


def gap_of(upper: float, bound: float) -> float:
    """Return ``upper - bound`` rounded up, not below zero; infinite without a bound."""
    if not (math.isfinite(upper) and math.isfinite(bound)):
        return math.inf
    return math.nextafter(upper - bound, math.inf) if upper > bound else 0.0


def relative_gap_of(upper: float, bound: float, constant: float) -> float:
    """Return the gap over the larger of both sizes, without the constant where that is smaller."""
    gap = gap_of(upper, bound)
    if not math.isfinite(gap) or gap == 0.0:
        return gap
    scale = max(abs(upper), abs(bound))
    if constant != 0.0:
        scale = min(scale, max(abs(upper - constant), abs(bound - constant)))
    return gap / scale if scale > 0.0 else math.inf


def claim_of(feasible: bool, share: float, zero: bool, stationary: bool) -> str:
    """Return the strongest claim."""
    if not feasible:
        return "none"
    if math.isfinite(share):
        if share <= OPTIMAL_GAP:
            return "globally optimal"
        return "zero up to rounding" if zero else "within gap"
    return "stationary" if stationary else "none"


def violations(problem: Problem, x: Any) -> list[str]:
    """Return what keeps a point from being feasible, in words."""
    out = []
    nonzero = x != 0.0 if x.ndim == 1 else np.any(x != 0.0, axis=1)
    units = np.unique(problem.unit[nonzero & (problem.unit >= 0)]).size
    if units > problem.budget:
        out.append(f"{units} counted units are nonzero, of at most {problem.budget}")
    chosen = np.unique(problem.unit[nonzero & (problem.unit >= 0)])
    for among, most in problem.limits:
        if np.isin(chosen, among).sum() > most:
            out.append(f"more than {most} of a set of units are nonzero")
    if problem.rows is not None:
        matrix, least, most = problem.rows
        value, reach = matrix @ x, np.abs(matrix) @ np.abs(x)
        over = np.maximum(np.maximum(value - most, least - value), 0.0)
        ends_size = [np.where(np.isfinite(e), np.abs(e), 0.0) for e in (least, most)]
        size = 1.0 + np.abs(value) + np.maximum(*ends_size)
        rounding = (np.count_nonzero(x) + 1) * 2.0**-53 * reach
        if np.any(over - rounding > FEASIBLE * size):
            out.append("a linear constraint does not hold")
    for side, ends in ((1.0, problem.lower), (-1.0, problem.upper)):
        slack = FEASIBLE * (1.0 + np.where(np.isfinite(ends), np.abs(ends), 0.0))
        if np.any(side * (x - ends) < -slack):
            out.append("a coordinate is outside of its bounds")
    return out


def constant_part(problem: Problem) -> float:
    """Return what the objective adds whatever ``x`` is."""
    parts = [float(middle(problem.constant))]
    for t in problem.terms:
        if t.loss.name == "linear_term":
            parts += (middle(t.c) * t.y * middle(t.o)).ravel().tolist()
    return math.fsum(parts)


def first_order(problem: Problem, x: Any, taken: Any) -> dict[str, Any]:
    """Return the gradient's size on the support and off it, and what the point's size is beside it.

    On the support it is relative to the gradient where only the free coordinates are as they are,
    both with slopes that have nothing in common with the columns of coordinates that nothing holds;
    of those the sums of the slopes count, relative to their size.
    """
    if not all(t.loss.smooth for t in problem.terms):
        nan = math.nan
        return {
            "smooth": False,
            "residual": nan,
            "smallest": nan,
            "largest": nan,
            "step": nan,
            "threshold": math.inf,
        }
    reference = np.zeros(problem.shape)
    reference[problem.free] = x[problem.free]
    loose = _loose(problem)
    g, left, noise = _gradient(problem, x, loose)
    squares = all(t.loss.name in ("squared_loss", "linear_term") for t in problem.terms)
    places = [reference] if squares else [reference, np.zeros(problem.shape)]
    others = [_gradient(problem, v, loose) for v in places]
    lengths = [(math.sqrt(_squares(v).max(initial=0.0)), error) for v, _, error in others]
    size = min((one for one, error in lengths if one > error), default=0.0)
    if squares:
        size = max(size, float(np.abs(g - others[0][0]).max(initial=0.0)))
    known = 0.0 < size < math.inf
    size = size if known else 0.0
    active = np.zeros(problem.units + 1, dtype=bool)
    active[problem.unit[np.flatnonzero(_nonzero(x))]] = True
    active[-1] = True
    held = ((x <= problem.lower) & (g > 0.0)) | ((x >= problem.upper) & (g < 0.0))
    on = float(np.abs(np.where(held, 0.0, g)[active[problem.unit]]).max(initial=0.0)) - noise
    sums = [np.bincount(problem.unit + 1, _squares(v), problem.units + 1)[1:] for v in (g, x)]
    slopes, sizes = np.sqrt(sums[0]), np.sqrt(sums[1])
    largest = float(slopes[~active[:-1]].max(initial=0.0))
    full = int(active[:-1].sum()) >= problem.budget
    smallest = float(sizes[active[:-1]].min(initial=np.inf)) if full else 0.0
    if not full and largest <= OPTIMAL_GAP * size:
        smallest = math.inf
    curvature = middle(problem.ridge) + (0.0 if taken is None else taken)
    lowest = float(curvature[problem.unit >= 0].min(initial=np.inf))
    without = lowest <= 0.0 or problem.bounded or middle(problem.price) > 0.0
    return {
        "smooth": True,
        "residual": max(on / size if known else math.inf if on > 0.0 else 0.0, left, 0.0),
        "smallest": smallest,
        "largest": largest,
        "step": smallest / largest if largest > 0.0 else math.inf,
        "threshold": math.inf if without else 1.0 / lowest,
        "noise": {
            "residual": 1e-9 + (2.0 * noise / size if known else 0.0),
            "largest": 1e-9 * size + 2.0 * noise,
        },
    }


def _loose(problem: Problem) -> Any:
    """Return the free coordinates with neither ridge nor bounds."""
    open_ends = np.isneginf(problem.lower) & np.isposinf(problem.upper)
    open_ends = open_ends if open_ends.ndim == 1 else open_ends.any(axis=1)
    ridge = np.broadcast_to(middle(problem.ridge), problem.shape[:1])
    return np.array([j for j in problem.free if open_ends[j] and ridge[j] == 0.0], dtype=int)


def _gradient(problem: Problem, x: Any, loose: Any) -> tuple[Any, float, float]:
    """Return the gradient with the ``loose`` fitted, what is left of theirs, and its rounding."""
    ridge = middle(problem.ridge)
    out = (ridge if x.ndim == 1 else ridge[:, None]) * x
    slopes, weights, columns = [], [], []
    for t in problem.terms:
        c = np.broadcast_to(middle(t.c), t.y.shape[:1])
        slopes.append((c * t.loss.slope(middle(predictions(problem, t, x)), t.y).T).T)
        weights.append(np.sqrt(c))
        columns.append(np.asarray(t.matrix[:, loose], dtype=float))
    left = 0.0
    if loose.size:
        F, r, w = np.concatenate(columns), np.concatenate(slopes), np.concatenate(weights)
        sizes = np.linalg.norm(F, axis=0)
        F = F / np.where(sizes > 0.0, sizes, 1.0)
        whole = float(np.linalg.norm(r))
        left = float(np.abs(F.T @ r).max(initial=0.0)) / whole if whole > 0.0 else 0.0
        Q, spread, _ = np.linalg.svd(w[:, None] * F, full_matrices=False)
        Q = Q[:, spread > 1e-13 * spread.max(initial=0.0)]
        rest = (r.T / np.where(w > 0.0, w, 1.0)).T
        rest = rest - Q @ (Q.T @ rest)
        r = (w * (rest - Q @ (Q.T @ rest)).T).T
        slopes = np.split(r, np.cumsum([s.shape[0] for s in slopes])[:-1])
    noise = np.zeros(out.shape)
    for t, r in zip(problem.terms, slopes, strict=True):
        out = out + t.matrix.T @ r
        reach = np.sqrt(_squares(np.asarray(t.matrix, dtype=float).T))
        noise += np.multiply.outer(reach, 1.2e-16 * (r.shape[0] + 16) * np.linalg.norm(r, axis=0))
    out[loose] = noise[loose] = 0.0
    return out, left, float(noise.max(initial=0.0))


def _squares(v: Any) -> Any:
    return v**2 if v.ndim == 1 else (v**2).sum(axis=1)


def _nonzero(x: Any) -> Any:
    return x != 0.0 if x.ndim == 1 else np.any(x != 0.0, axis=1)


def exact_fit(problem: Problem, x: Any, value: float) -> bool:
    """Return whether every residual is below 1024 units of rounding of what it has to explain.

    That is what a constant and the free columns leave of the targets, by least squares, and again
    without the largest tenth; sizes that nine tenths exceed stand in for smaller ones.
    """
    judged, level = [], 0.0
    for t in problem.terms:
        u = middle(predictions(problem, t, x))
        if t.loss.name in _OF_RESIDUALS:
            judged.append((t, np.abs(u - t.y)))
        elif np.any(middle(t.loss.value(problem.number(u), t.y))[middle(t.c) > 0.0] != 0.0):
            return False
    if judged:
        if problem.free.size > 64:
            return False
        aim = np.concatenate([t.y - middle(t.o) for t, _ in judged])
        c = np.concatenate([middle(t.c) for t, _ in judged])
        basis = np.concatenate([t.matrix[:, problem.free] for t, _ in judged])
        sizes = _unexplained(np.column_stack([np.ones(c.size), basis]), aim, c)
        typical = float(np.quantile(sizes[c > 0.0], 0.1))
        reach = 1024.0 * 2.0**-52 * np.maximum(sizes, typical)
        for t, residual in judged:
            most, reach = reach[: residual.shape[0]], reach[residual.shape[0] :]
            if np.any((residual > most)[middle(t.c) > 0.0]):
                return False
            ends = [middle(t.loss.value(problem.number(t.y + s * most), t.y)) for s in (-1.0, 1.0)]
            level += math.fsum(middle(weighted(t, problem.number(np.maximum(*ends)))).ravel())
    return value <= level * (1.0 + 1e-9)


def _unexplained(basis: Any, aim: Any, c: Any) -> Any:
    left, sizes, kept, roots = aim, np.abs(aim), c > 0.0, np.sqrt(c)
    for _ in range(4):
        scaled = (roots[kept] * left[kept].T).T
        left = (
            left - basis @ np.linalg.lstsq(roots[kept, None] * basis[kept], scaled, rcond=None)[0]
        )
        sizes = np.minimum(sizes, np.abs(left))
        rows = np.abs(left) if left.ndim == 1 else np.abs(left).max(axis=1)
        kept = (c > 0.0) & (rows <= np.quantile(rows[c > 0.0], 0.9))
    return sizes


_RELATIVE = 1e-9
"""How far two computations of one quantity may differ where the difference proves nothing."""


class Report:
    """Lines of what the file says and what was found."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.lines: list[tuple[str, str, str]] = []
        self.unchecked: list[str] = []

    def problem(self, words: list[str]) -> None:
        """Say what the problem is."""
        self.words = words

    def line(self, name: str, stated: Any, found: Any) -> None:
        """Note something that holds."""
        self.lines.append((name, str(stated), str(found)))

    def exactly(self, name: str, stated: Any, found: Any) -> None:
        """Compare two values that must be the same."""
        same = stated == found and isinstance(stated, bool) == isinstance(found, bool)
        if not same and not (stated != stated and found != found):
            raise Refuted(f"line '{name}' says {stated!r}, and from the rest it is {found!r}.")
        self.line(name, stated, found)

    def same(self, name: str, stated: float, found: float) -> None:
        """Compare two numbers that may be rounded otherwise; nothing is proved by them."""
        if not near(stated, found, abs(found)):
            raise Refuted(f"line '{name}' says {stated!r}, and it is {found!r}.")
        self.line(name, repr(stated), repr(found))

    def unknown(self, words: str) -> None:
        """Note what was not compared."""
        self.unchecked.append(words)

    def text(self) -> str:
        """Return the report."""
        width = max(len(name) for name, _, _ in self.lines) if self.lines else 0
        half = max((len(stated) for _, stated, _ in self.lines), default=0)
        out = ["the problem, as the file declares it (is it what you meant?):"]
        out += ["  " + line for line in self.words]
        out += ["recomputed from your data:"]
        out += [f"  {n:<{width}}  stated {s:<{half}}  found {f}" for n, s, f in self.lines]
        out += ["not compared, as no data decide it or nothing rests on it:"]
        return "\n".join(out + ["  " + words for words in self.unchecked])


def near(one: float, two: float, scale: float) -> bool:
    """Return whether two numbers are the same up to rounding."""
    if one == two or (math.isnan(one) and math.isnan(two)):
        return True
    if not (math.isfinite(one) and math.isfinite(two)):
        return False
    return abs(one - two) <= _RELATIVE * max(scale, 1e-300)


__all__ = [
    "Report",
    "claim_of",
    "constant_part",
    "exact_fit",
    "first_order",
    "gap_of",
    "near",
    "relative_gap_of",
    "violations",
]
