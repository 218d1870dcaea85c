"""What the numbers of a certificate allow to be said, and the report on what was compared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemodel.checker.files import array, compare, near, real, require, said, write
from sparsemodel.checker.proof.arithmetic import UNIT, Ball, gamma, high, low, middle
from sparsemodel.checker.proof.bound import predictions, unbounded
from sparsemodel.checker.proof.losses import Term
from sparsemodel.checker.proof.problem import Problem, rows_of

_OF_RESIDUALS = ("squared_loss", "huber_loss", "absolute_loss", "quantile_loss", "expectile_loss")
_OF_MARGINS = ("hinge_loss", "smoothed_hinge_loss", "squared_hinge_loss", "logistic_loss")
_UNITS = 1024.0 * 2.0**-52


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


def constant_part(problem: Problem) -> float:
    """Return what the objective adds whatever ``x`` is."""
    lines = [t for t in problem.terms if t.loss.name == "linear_term"]
    parts = [v for t in lines for v in (middle(t.c) * t.y * middle(t.o)).ravel().tolist()]
    return math.fsum([float(middle(problem.constant)), *parts])


def check_point(body: dict[str, Any], problem: Problem, x: Any) -> None:
    """Compare support, names and coefficients with the point."""
    support = np.flatnonzero(rows_of(x) & problem.counted).tolist()
    compare("support", body["support"], support)
    names = {int(j): name for j, name in body["names"].items()}
    fits = sorted(names) == sorted({*support, *(int(j) for j in problem.free)})
    require(fits, "line 'names' is not about the support and what is always in")
    entries = {name: x[j].tolist() for j, name in sorted(names.items())}
    fits = entries == body["coefficients"]
    require(fits, "line 'coefficients' is not what the point and the names say")
    known = {j: problem.columns[j] for j in names if j in problem.columns}
    for j, name in known.items():
        fits = name == names[j] or names[j].endswith(f"[{name}]")
        require(fits, f"line 'names' calls coordinate {j} {names[j]!r}; your data, {name!r}")
    said("coefficients", f"{len(entries)} named", "those of the point")
    if len(known) < len(names):
        write("  not compared: what columns are called, where your files have no header")


def check_first_order(body: dict[str, Any], problem: Problem, x: Any) -> bool:
    """Compare what the file says of the gradient and return whether the point is stationary."""
    taken = array(body["witness"]["extraction"])
    facts, doubtful = dict.fromkeys(("residual", "smallest", "largest"), math.nan), False
    noise = dict[str, float]()
    smooth = all(t.loss.smooth for t in problem.terms)
    if smooth:
        facts, noise, doubtful = _first_order(problem, x)
    curvature = middle(problem.ridge)
    if taken is not None and math.isfinite(real(body["bound"])):
        curvature = curvature + taken
    lowest = float(curvature[problem.counted].min(initial=np.inf))
    priced = bool(np.any(middle(problem.supports.prices) > 0.0))
    known = smooth and lowest > 0.0 and not problem.bounded and not priced
    facts["threshold"] = 1.0 / lowest if known else math.inf
    stated = body["stationarity"]
    require(stated["smooth"] is smooth, "line 'stationarity.smooth' is not so")
    for name, two in facts.items():
        one = real(stated[name])
        fits = near(one, two, abs(two)) or abs(one - two) <= noise.get(name, 0.0)
        # Where its scale is rounding, a residual says on which side of the threshold it is.
        rough = name == "residual" and doubtful and (one <= 1e-6) == (two <= 1e-6)
        # So do slopes that are rounding on whether more coordinates would be used.
        rough = rough or (name == "smallest" and "open" in noise and one in (0.0, math.inf))
        require(fits or rough, f"line 'stationarity.{name}' says {one!r}, and it is {two!r}")
    one, two = real(stated["smallest"]), real(stated["largest"])
    step = math.nan if not smooth else one / two if two > 0.0 else math.inf
    compare("longest step", real(stated["step"]), step)
    said("gradient on support", stated["residual"], facts["residual"])
    return smooth and real(stated["residual"]) <= 1e-6


def _first_order(problem: Problem, x: Any) -> tuple[dict[str, float], dict[str, float], bool]:
    """Return the gradient's size on the support and off it, and what the point's size is beside it.

    On the support it is relative to the gradient where only the free coordinates are as they are,
    both with slopes that have nothing in common with the columns of coordinates that nothing holds;
    of those the sums of the slopes count, relative to their size. Roundings follow, and whether the
    size that it is relative to is no more than that.
    """
    reference = np.zeros(problem.shape)
    reference[problem.free] = x[problem.free]
    loose = unbounded(problem, problem.ridge)
    g, noise, fit, left, off, _ = _gradient(problem, x, loose)
    places = [reference] if problem.squares else [reference, np.zeros(problem.shape)]
    others = [_gradient(problem, v, loose) for v in places]
    lengths = [
        (math.sqrt(_squares(v).max(initial=0.0)), math.inf if gone or (x == at).all() else error)
        for (v, error, *_, gone), at in zip(others, places, strict=True)
    ]
    size = min((one for one, error in lengths if one > error), default=0.0)
    if problem.squares:
        size = max(size, float(np.abs(g - others[0][0]).max(initial=0.0)))
    known = 0.0 < size < math.inf
    scale = size if known else 0.0
    active = np.zeros(problem.units + 1, dtype=bool)
    active[[*problem.units_of(x), -1]] = True
    lower, upper = problem.chosen
    held = ((x <= lower) & (g > 0.0)) | ((x >= upper) & (g < 0.0))
    on = float(np.abs(np.where(held, 0.0, g)[active[problem.unit]]).max(initial=0.0))
    lost = not known and on <= 16.0 * noise  # rounding relative to nothing is any number
    on -= noise
    sums = [np.bincount(problem.unit + 1, _squares(v), problem.units + 1)[1:] for v in (g, x)]
    slopes, sizes = np.sqrt(sums[0]), np.sqrt(sums[1])
    largest = float(slopes[~active[:-1]].max(initial=0.0))
    full = int(active[:-1].sum()) >= problem.supports.budget
    smallest = float(sizes[active[:-1]].min(initial=np.inf)) if full else 0.0
    if not full and largest <= 1e-6 * scale + noise + fit:
        smallest = math.inf
    residual = max(on / size if known else math.inf if on > 0.0 else 0.0, left, 0.0)
    facts = {"residual": residual, "smallest": smallest, "largest": largest}
    rounded = {
        "residual": 1e-9 + 2.0 * max(noise / size if known else math.inf if lost else 0.0, off),
        "largest": 1e-9 * scale + 2.0 * (noise + fit),
    }
    doubtful = not known or any(one <= 16.0 * error for one, error in lengths)
    level = 0.0 if doubtful else 1e-6 * scale
    if not full and abs(largest - level) <= 16.0 * (noise + fit):
        rounded["open"] = math.inf
    return facts, rounded, doubtful


def _gradient(problem: Problem, x: Any, loose: Any) -> tuple[Any, float, float, float, float, bool]:
    """Return the gradient with the ``loose`` fitted, its rounding and that of the fit.

    Then what is left of the slopes of those, and its rounding, and whether the fit takes all away.
    """
    slopes = []
    for t in problem.terms:
        u = _rounded(t, x)
        ends = [t.loss.slope(at) for at in (u.mid - u.rad, u.mid, u.mid + u.rad)]
        slopes.append(middle(t.weighted(Ball(ends[1]))))
        off = np.abs(ends[2] - ends[0]) + t.loss.slope_error(u.mid)
        slopes.append(middle(t.weighted(Ball(off))))
    r, errors = np.concatenate(slopes[::2]), np.concatenate(slopes[1::2])
    A = np.concatenate([t.matrix for t in problem.terms])
    left, away, gone, fitted = 0.0, 0.0, False, 0.0
    if loose.size:
        size = float(np.linalg.norm(r))
        w = np.concatenate([np.sqrt(middle(t.c)) for t in problem.terms])
        F = A[:, loose] / np.maximum(np.linalg.norm(A[:, loose], axis=0), 1e-300)
        if size > 0.0:
            away = float(np.linalg.norm(errors)) / size
            left = max(0.0, float(np.abs(F.T @ r).max(initial=0.0)) / size - away)
        elif np.any(errors):
            away = math.inf
        Q, spread, _ = np.linalg.svd(w[:, None] * F, full_matrices=False)
        Q = Q[:, spread > 1e-13 * spread.max(initial=0.0)]
        rest = (r.T / np.where(w > 0.0, w, 1.0)).T
        for _ in range(2):
            rest = rest - Q @ (Q.T @ rest)
        r, fitted = (w * rest.T).T, 64.0 * UNIT * size
        gone = float(np.linalg.norm(r)) <= fitted
    out, reach = (middle(problem.ridge) * x.T).T + A.T @ r, np.sqrt(_squares(A.T))
    out[loose] = 0.0
    reach[loose] = 0.0
    sizes = 1.2e-16 * (len(r) + 16) * np.linalg.norm(r, axis=0) + np.linalg.norm(errors, axis=0)
    most = float(reach.max(initial=0.0))
    return out, most * float(np.max(sizes)), most * fitted, left, away, gone


def _squares(v: Any) -> Any:
    return v**2 if v.ndim == 1 else (v**2).sum(axis=1)


def _rounded(term: Term, x: Any) -> Ball:
    """Return predictions with what plain products of floats may have made of them."""
    u, on = middle(predictions(term, x)), rows_of(x)
    reach = np.abs(term.matrix[:, on]) @ np.abs(x[on]) + np.abs(middle(term.o))
    return Ball(u, gamma(2 * int(on.sum()) + 64) * reach)


def rounding(problem: Problem, x: Any) -> float:
    """Return how far a value may be from P(x) that was computed with plain products of floats."""
    room = gamma(64 + len(x)) * float(middle(problem.ridge) @ _squares(x))
    for t in problem.terms:
        losses = t.loss.value(_rounded(t, x))
        c = middle(t.c) if losses.mid.ndim == 1 else middle(t.c)[:, None]
        room += float((c * (losses.rad + gamma(64 + losses.mid.size) * np.abs(losses.mid))).sum())
    return room


def exact_fit(problem: Problem, x: Any, value: float) -> bool:
    """Return whether every residual is below 1024 units of rounding of what it has to explain.

    That is what a constant and the free columns leave of the targets, by least squares, and again
    without the largest tenth; sizes that nine tenths exceed stand in for smaller ones. Where
    that is no more than 16 units, those of the targets count. Margins may lack 1024 units.
    """
    level, judged = 0.0, list[Term]()
    for t in problem.terms:
        if t.loss.name in _OF_RESIDUALS:
            judged.append(t)
            continue
        at, step = _rounded(t, x), 0.0
        if t.loss.name in _OF_MARGINS:
            at, step = Ball(at.mid), _UNITS * t.y
            level += float(middle(t.c) @ high(t.loss.value(Ball(at.mid - step))))
        if np.any(low(t.loss.value(Ball(at.mid + step, at.rad)))[middle(t.c) > 0.0] > 0.0):
            return False
    if judged:
        if problem.free.size > 64:
            return False
        c, y = (np.concatenate(v) for v in zip(*((middle(t.c), t.y) for t in judged), strict=True))
        aim = y - np.concatenate([middle(t.o) for t in judged])
        basis = np.concatenate([t.matrix[:, problem.free] for t in judged])
        sizes = _unexplained(np.column_stack([np.ones(c.size), basis]), aim, c)
        typical = float(np.quantile(sizes[c > 0.0], 0.1))
        most = _UNITS * np.maximum(sizes, typical)
        if np.all((sizes <= 2.0**-48 * np.abs(aim))[c > 0.0]):
            most = np.maximum(most, _UNITS * np.abs(aim))
        u = np.concatenate([middle(predictions(t, x)) for t in judged])
        if np.any((np.abs(u - y) > most)[c > 0.0]):
            return False
        parts = np.split(most, np.cumsum([len(t.y) for t in judged])[:-1])
        for t, reach in zip(judged, parts, strict=True):
            ends = [middle(t.loss.value(problem.number(t.y + s * reach))) for s in (-1.0, 1.0)]
            level += math.fsum(middle(t.weighted(problem.number(np.maximum(*ends)))).ravel())
    return value <= level * (1.0 + 1e-9)


def _unexplained(basis: Any, aim: Any, c: Any) -> Any:
    left, sizes, kept, roots = aim, np.abs(aim), c > 0.0, np.sqrt(c)
    for _ in range(4):
        scaled = (roots[kept] * left[kept].T).T
        fit = np.linalg.lstsq(roots[kept, None] * basis[kept], scaled, rcond=None)[0]
        left = left - basis @ fit
        sizes = np.minimum(sizes, np.abs(left))
        rows = np.abs(left) if left.ndim == 1 else np.abs(left).max(axis=1)
        kept = (c > 0.0) & (rows <= np.quantile(rows[c > 0.0], 0.9))
    return sizes
