"""What the numbers of a certificate allow to be said, and the report on what was compared."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.checker.files import Refuted, array, real
from sparsemodel.checker.proof.arithmetic import UNIT, Ball, gamma, low, middle
from sparsemodel.checker.proof.bound import predictions, unbounded, weighted
from sparsemodel.checker.proof.problem import Problem, Term, rows_of

_OF_RESIDUALS = ("squared_loss", "huber_loss", "absolute_loss", "quantile_loss", "expectile_loss")


def constant_part(problem: Problem) -> float:
    """Return what the objective adds whatever ``x`` is."""
    parts = [float(middle(problem.constant))]
    for t in problem.terms:
        if t.loss.name == "linear_term":
            parts += (middle(t.c) * t.y * middle(t.o)).ravel().tolist()
    return math.fsum(parts)


def _first_order(problem: Problem, x: Any, taken: Any) -> dict[str, Any]:
    """Return the gradient's size on the support and off it, and what the point's size is beside it.

    On the support it is relative to the gradient where only the free coordinates are as they are,
    both with slopes that have nothing in common with the columns of coordinates that nothing holds;
    of those the sums of the slopes count, relative to their size.
    """
    if not all(t.loss.smooth for t in problem.terms):
        nan = dict.fromkeys(("residual", "smallest", "largest"), math.nan)
        return {"smooth": False, **nan, "threshold": math.inf}
    reference = np.zeros(problem.shape)
    reference[problem.free] = x[problem.free]
    loose = unbounded(problem, problem.ridge)
    g, left, off, noise, (_, fit) = _gradient(problem, x, loose)
    places = [reference] if problem.squares else [reference, np.zeros(problem.shape)]
    others = [_gradient(problem, v, loose) for v in places]
    lengths = [
        (math.sqrt(_squares(v).max(initial=0.0)), math.inf if gone else error)
        for v, *_, error, (gone, _) in others
    ]
    size = min((one for one, error in lengths if one > error), default=0.0)
    if problem.squares:
        size = max(size, float(np.abs(g - others[0][0]).max(initial=0.0)))
    known = 0.0 < size < math.inf
    active = np.zeros(problem.units + 1, dtype=bool)
    active[[*problem.units_of(x), -1]] = True
    lower, upper = problem.chosen
    held = ((x <= lower) & (g > 0.0)) | ((x >= upper) & (g < 0.0))
    on = float(np.abs(np.where(held, 0.0, g)[active[problem.unit]]).max(initial=0.0)) - noise
    sums = [np.bincount(problem.unit + 1, _squares(v), problem.units + 1)[1:] for v in (g, x)]
    slopes, sizes = np.sqrt(sums[0]), np.sqrt(sums[1])
    largest = float(slopes[~active[:-1]].max(initial=0.0))
    full = int(active[:-1].sum()) >= problem.supports.budget
    smallest = float(sizes[active[:-1]].min(initial=np.inf)) if full else 0.0
    if not full and largest <= 1e-6 * (size if known else 0.0) + noise + fit:
        smallest = math.inf
    curvature = middle(problem.ridge) + (0.0 if taken is None else taken)
    lowest = float(curvature[problem.counted].min(initial=np.inf))
    without = (
        lowest <= 0.0 or problem.bounded or bool(np.any(middle(problem.supports.prices) > 0.0))
    )
    return {
        "smooth": True,
        "residual": max(on / size if known else math.inf if on > 0.0 else 0.0, left, 0.0),
        "smallest": smallest,
        "largest": largest,
        "threshold": math.inf if without else 1.0 / lowest,
        "noise": {
            "residual": 1e-9 + 2.0 * max(noise / size if known else 0.0, off),
            "largest": 1e-9 * (size if known else 0.0) + 2.0 * (noise + fit),
        },
        "doubtful": not known or any(one <= 16.0 * error for one, error in lengths),
    }


def _gradient(
    problem: Problem, x: Any, loose: Any
) -> tuple[Any, float, float, float, tuple[bool, float]]:
    """Return the gradient with the ``loose`` fitted, what is left of theirs, and both roundings.

    At last whether the fit takes all slopes away, and what it rounds.
    """
    out = (middle(problem.ridge) * x.T).T
    slopes, errors, weights, columns = [], [], [], []
    for t in problem.terms:
        c, on = middle(t.c if x.ndim == 1 else t.c[:, None]), rows_of(x)
        u = middle(predictions(problem, t, x))
        sizes = gamma(2 * int(on.sum()) + 16) * (np.abs(t.matrix[:, on]) @ np.abs(x[on]))
        sizes = sizes + 4.0 * UNIT * np.abs(u)  # what a plain product may round
        ends = [c * t.loss.slope(u + side * sizes) for side in (-1.0, 0.0, 1.0)]
        slopes.append(ends[1])
        errors.append(np.abs(ends[2] - ends[0]))
        weights.append(np.sqrt(middle(t.c)))
        columns.append(np.asarray(t.matrix[:, loose], dtype=float))
    left, off, gone, fitted = 0.0, 0.0, False, 0.0
    if loose.size:
        F, r, w = np.concatenate(columns), np.concatenate(slopes), np.concatenate(weights)
        sizes = np.linalg.norm(F, axis=0)
        F = F / np.where(sizes > 0.0, sizes, 1.0)
        whole = float(np.linalg.norm(r))
        left = float(np.abs(F.T @ r).max(initial=0.0)) / whole if whole > 0.0 else 0.0
        off = float(np.linalg.norm(np.concatenate(errors))) / whole if whole > 0.0 else 0.0
        Q, spread, _ = np.linalg.svd(w[:, None] * F, full_matrices=False)
        Q = Q[:, spread > 1e-13 * spread.max(initial=0.0)]
        rest = (r.T / np.where(w > 0.0, w, 1.0)).T
        rest = rest - Q @ (Q.T @ rest)
        r = (w * (rest - Q @ (Q.T @ rest)).T).T
        fitted = 64.0 * UNIT * whole
        gone = float(np.linalg.norm(r)) <= fitted
        slopes = np.split(r, np.cumsum([s.shape[0] for s in slopes])[:-1])
    noise, fit = np.zeros(out.shape), 0.0
    for t, r, error in zip(problem.terms, slopes, errors, strict=True):
        out = out + t.matrix.T @ r
        reach = np.sqrt(_squares(np.asarray(t.matrix, dtype=float).T))
        sizes = 1.2e-16 * (r.shape[0] + 16) * np.linalg.norm(r, axis=0)
        noise += np.multiply.outer(reach, sizes + np.linalg.norm(error, axis=0))
        fit = max(fit, fitted * float(reach.max(initial=0.0)))
    out[loose] = noise[loose] = 0.0
    return out, left, off, float(noise.max(initial=0.0)), (gone, fit)


def _squares(v: Any) -> Any:
    return v**2 if v.ndim == 1 else (v**2).sum(axis=1)


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
        elif np.any(low(t.loss.value(_within_rounding(t, x, u)))[middle(t.c) > 0.0] > 0.0):
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
            ends = [middle(t.loss.value(problem.number(t.y + s * most))) for s in (-1.0, 1.0)]
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


def _within_rounding(term: Term, x: Any, u: Any) -> Ball:
    """Return predictions with what plain products of floats may have made of them."""
    reach = np.abs(term.matrix) @ np.abs(x) + np.abs(middle(term.o))
    return Ball(u, gamma(64 + 4 * len(x)) * reach)


def rounding(problem: Problem, x: Any) -> float:
    """Return how far a value may be from P(x) that was computed with plain products of floats."""
    squares = np.square(x).reshape(len(x), -1).sum(axis=1)
    room = gamma(64 + len(x)) * float(middle(problem.ridge) @ squares)
    for t in problem.terms:
        wide = _within_rounding(t, x, middle(predictions(problem, t, x)))
        v = weighted(replace(t, c=Ball(middle(t.c))), t.loss.value(wide))
        room += float(np.sum(v.rad + gamma(64 + v.mid.size) * np.abs(v.mid)))
    return room


def check_point(body: dict[str, Any], problem: Problem, x: Any, report: Report) -> None:
    """Compare support, names and coefficients with the point."""
    support = np.flatnonzero(rows_of(x) & problem.counted).tolist()
    report.exactly("support", body["support"], support)
    names = {int(j): name for j, name in body["names"].items()}
    if sorted(names) != sorted({*support, *(int(j) for j in problem.free)}):
        raise Refuted("line 'names' is not about the support and what is always in.")
    entries = {name: x[j].tolist() for j, name in sorted(names.items())}
    if entries != body["coefficients"]:
        raise Refuted("line 'coefficients' is not what the point and the names say.")
    known = {j: problem.columns[j] for j in names if j in problem.columns}
    for j, name in known.items():
        if name != names[j] and not names[j].endswith(f"[{name}]"):
            raise Refuted(f"line 'names' calls coordinate {j} {names[j]!r}; your data, {name!r}.")
    report.line("coefficients", f"{len(entries)} named", "those of the point")
    if len(known) < len(names):
        report.unknown("what columns are called, where your files have no header")


def check_first_order(body: dict[str, Any], problem: Problem, x: Any, report: Report) -> bool:
    """Compare what the file says of the gradient and return whether the point is stationary."""
    taken = array(body["witness"]["extraction"])
    facts = _first_order(problem, x, taken if math.isfinite(real(body["bound"])) else None)
    stated, noise = body["stationarity"], facts.get("noise", {})
    if stated["smooth"] is not facts["smooth"]:
        raise Refuted("line 'stationarity.smooth' is not so.")
    for name in ("residual", "smallest", "largest", "threshold"):
        one, two = real(stated[name]), facts[name]
        same = near(one, two, abs(two)) or abs(one - two) <= noise.get(name, 0.0)
        # Where its scale is rounding, a residual says on which side of the threshold it is.
        rough = name == "residual" and facts.get("doubtful") and (one <= 1e-6) == (two <= 1e-6)
        if not (same or rough):
            raise Refuted(f"line 'stationarity.{name}' says {one!r}, and it is {two!r}.")
    one, two = real(stated["smallest"]), real(stated["largest"])
    step = math.nan if not stated["smooth"] else one / two if two > 0.0 else math.inf
    report.exactly("longest step", real(stated["step"]), step)
    report.line("gradient on support", stated["residual"], facts["residual"])
    return stated["smooth"] and real(stated["residual"]) <= 1e-6


_RELATIVE = 1e-9
"""How far two computations of one quantity may differ where the difference proves nothing."""


class Report:
    """Lines of what the file says and what was found, printed as they come."""

    def problem(self, words: list[str]) -> None:
        """Say what the problem is."""
        _write("the problem, as the file declares it (is it what you meant?):", *words)
        _write("recomputed from your data:")

    def line(self, name: str, stated: Any, found: Any) -> None:
        """Note something that holds."""
        _write(f"  {name}: stated {stated}, found {found}")

    def exactly(self, name: str, stated: Any, found: Any) -> None:
        """Compare two values that must be the same."""
        same = stated == found and isinstance(stated, bool) == isinstance(found, bool)
        if not same and not (stated != stated and found != found):
            raise Refuted(f"line '{name}' says {stated!r}, and from the rest it is {found!r}.")
        self.line(name, stated, found)

    def same(self, name: str, stated: float, found: float, size: float = 0.0) -> None:
        """Compare two numbers that may be rounded otherwise; nothing is proved by them."""
        if not near(stated, found, max(size, abs(found))):
            raise Refuted(f"line '{name}' says {stated!r}, and it is {found!r}.")
        self.line(name, stated, found)

    def unknown(self, words: str) -> None:
        """Note what was not compared."""
        _write(f"  not compared: {words}")


def _write(*lines: str) -> None:
    sys.stdout.write("".join(line + "\n" for line in lines))


def near(one: float, two: float, scale: float) -> bool:
    """Return whether two numbers are the same up to rounding."""
    if one == two or (math.isnan(one) and math.isnan(two)):
        return True
    return abs(one - two) <= _RELATIVE * max(scale, 1e-300) < math.inf


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
        if share <= 1e-6:
            return "globally optimal"
        return "zero up to rounding" if zero else "within gap"
    return "stationary" if stationary else "none"
