r"""Restricted smoothness and strong convexity, enclosed from both sides.

.. math:: M_s = \sup_x \max_{\|v\|_0 \le s,\, \|v\|_2 = 1} v^T \nabla^2 f(x) v, \qquad
          m_s = \inf_x \min_{\|v\|_0 \le s,\, \|v\|_2 = 1} v^T \nabla^2 f(x) v

The exact numbers ask for every support. What is computed is, for each, a number that a support
at hand *attains* (so that :math:`M_s` is not below it, :math:`m_s` not above it) and a number that
holds for *all* supports (so that :math:`M_s` is not above it, :math:`m_s` not below it).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U, gamma
from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.interfaces.self_description import Constants
from sparsemodel.numerics import top_k
from sparsemodel.numerics.budget import budget, eigenvalue_cost
from sparsemodel.progress import counted

_EIGENVALUES = 1500
"""Coefficients up to which all eigenvalues are computed."""

_ROUNDS = 30
_STARTS = 4


@final
@dataclass(frozen=True, slots=True, eq=False)
class Curvatures:
    """What the constants are computed from."""

    attained: tuple[FloatArray, ...]
    """Hessians at points, on the coordinates of ``pool``."""
    lower: FloatArray | None
    """Not above any Hessian (on the pool); None where it is not known for all coordinates."""
    upper: FloatArray | None
    """Not below any Hessian; None where there is none, or not for all coordinates."""
    upper_diagonal: FloatArray
    """Largest diagonal entries over all points and all coordinates; may be infinite."""
    sizes: FloatArray
    """Diagonals of the pool before anything is subtracted: what rounding errors are relative to."""
    floor: float
    """Strong convexity that holds everywhere: the smallest ridge."""
    rows: int
    supports: tuple[IntArray, ...] = ()
    """Positions in the pool worth trying, the solution's support for instance."""
    extremes: bool = True
    """Whether there is time for all eigenvalues of the bounds."""


def enclose(c: Curvatures, levels: Sequence[int]) -> dict[int, Constants]:
    """Return the constants of every level, consistent with each other across levels.

    O(p^2 log p) a level, and O(p^3) once up to 1500 coordinates. When time is up the search for
    supports ends, and eigenvalues that would not end in time are left out: the enclosures hold all
    the same.
    """
    out: dict[int, Constants] = {}
    extremes = _extremes(c)
    above, below = 0.0, math.inf
    for level in counted(sorted({max(1, s) for s in levels}), "size"):
        high = _attained(c, level, largest=True)
        low = _attained(c, level, largest=False)
        above, below = max(above, high), min(below, low)  # a support of few is one of many
        out[level] = Constants(
            level,
            (above, max(above, _everywhere_above(c, level, extremes[1]))),
            (min(below, _everywhere_below(c, level, extremes[0])), below),
        )
    return out


def _slack(sizes: FloatArray, rows: int) -> float:
    """Return what rounding may do to an eigenvalue: of the products, and of its computation."""
    return float(sizes.sum()) * (4.0 * gamma(rows + 64) + 64.0 * sizes.size * U)


# ---- what supports attain ------------------------------------------------------------------------


def _attained(c: Curvatures, level: int, *, largest: bool) -> float:
    """Return the best extreme eigenvalue of a support met, moved to its safe side."""
    sign = 1.0 if largest else -1.0
    best = -math.inf
    for h in c.attained:
        size = min(level, h.shape[0])
        if not budget().fits(eigenvalue_cost(size)):
            continue
        for support in _supports(h, size, c.supports, largest=largest):
            block = h[np.ix_(support, support)]
            values = np.linalg.eigvalsh(block)
            value = float(values[-1] if largest else values[0])
            best = max(best, sign * value - _slack(c.sizes[support], c.rows))
    if not math.isfinite(best):
        return c.floor if largest else math.inf
    return max(best, c.floor) if largest else max(-best, c.floor)


def _supports(
    h: FloatArray, size: int, known: tuple[IntArray, ...], *, largest: bool
) -> list[IntArray]:
    """Return supports with extreme eigenvalues, grown from several starts and improved by swaps."""
    p = h.shape[0]
    if size >= p:
        return [np.arange(p)]
    sign = 1.0 if largest else -1.0
    starts = [*_seeds(h, largest=largest), *(support[:size] for support in known)]
    found: list[IntArray] = []
    for start in starts:
        if found and budget().over():
            break
        found.append(_swapped(h, _grown(h, size, start, sign), sign))
    return found


def _seeds(h: FloatArray, *, largest: bool) -> list[IntArray]:
    """Return where to grow supports from: extreme diagonal entries and the largest correlation."""
    diagonal = np.diag(h)
    ends = np.argsort(-diagonal if largest else diagonal, kind="stable")
    cross = np.abs(h - np.diag(diagonal))
    if not largest:
        root = np.sqrt(np.maximum(diagonal, 1e-300))
        cross /= root[:, None]
        cross /= root
    flat = int(np.argmax(cross))
    pair = np.unique([flat // h.shape[0], flat % h.shape[0]])
    return [pair, *(ends[i : i + 1] for i in range(min(_STARTS, ends.size)))]


def _grown(h: FloatArray, size: int, first: IntArray, sign: float) -> IntArray:
    """Add the coordinates that move the extreme eigenvalue most, until there are ``size``."""
    current = np.sort(first[:size])
    step = max(1, size // 8)
    while current.size < size and not budget().over():
        scores = _scores(h, current, sign)
        chosen = top_k(scores, min(step, size - current.size))
        current = np.sort(np.concatenate([current, chosen]))
    return current


def _scores(h: FloatArray, support: IntArray, sign: float) -> FloatArray:
    """Return the extreme eigenvalue that every coordinate, added to ``support``, gives at least.

    On the plane of the extreme eigenvector and the new coordinate; ``-inf`` inside.
    """
    values, vectors = np.linalg.eigh(h[np.ix_(support, support)])
    end = -1 if sign > 0.0 else 0
    cross, own, value = h[:, support] @ vectors[:, end], np.diag(h), float(values[end])
    out = sign * 0.5 * (own + value) + np.hypot(0.5 * (own - value), cross)
    out[support] = -np.inf
    return np.asarray(out)


def _swapped(h: FloatArray, support: IntArray, sign: float) -> IntArray:
    """Exchange the coordinate of least weight for the best one, as long as that helps."""
    end = -1 if sign > 0.0 else 0
    values, vectors = np.linalg.eigh(h[np.ix_(support, support)])
    for _ in range(_ROUNDS):
        if budget().over():
            break
        moved = False
        for weakest in np.argsort(np.abs(vectors[:, end]), kind="stable")[:3]:
            rest = np.delete(support, int(weakest))
            if not rest.size:
                break
            trial = np.sort(np.append(rest, int(np.argmax(_scores(h, rest, sign)))))
            following, directions = np.linalg.eigh(h[np.ix_(trial, trial)])
            if sign * (following[end] - values[end]) > 1e-12 * abs(float(values[end])):
                support, values, vectors, moved = trial, following, directions, True
                break
        if not moved:
            break
    return support


# ---- what holds for all supports -----------------------------------------------------------------


def _extremes(c: Curvatures) -> tuple[float, float]:
    """Return a lower bound on all eigenvalues, and an upper one, where they are affordable."""
    low, high = -math.inf, math.inf
    if not c.extremes:
        return low, high
    if c.lower is not None and 0 < c.lower.shape[0] <= _EIGENVALUES:
        low = float(np.linalg.eigvalsh(c.lower)[0]) - _slack(c.sizes, c.rows)
    if c.upper is not None and 0 < c.upper.shape[0] <= _EIGENVALUES:
        high = float(np.linalg.eigvalsh(c.upper)[-1]) + _slack(c.sizes, c.rows)
    return low, high


def _everywhere_above(c: Curvatures, level: int, extreme: float) -> float:
    """Return the least of: the largest eigenvalue, the trace of a block, Gershgorin's discs."""
    size = min(level, c.upper_diagonal.size)
    trace = math.fsum(np.sort(c.upper_diagonal)[c.upper_diagonal.size - size :])
    best = min(extreme, trace * (1.0 + gamma(c.rows + size + 64)))
    if c.upper is not None:
        discs = np.diag(c.upper) + _largest_rows(c.upper, level - 1)
        slack = _slack(c.sizes, c.rows)
        best = min(best, float(discs.max(initial=0.0)) + slack)
    return best


def _everywhere_below(c: Curvatures, level: int, extreme: float) -> float:
    best = max(extreme, c.floor)
    if c.lower is not None:
        discs = np.diag(c.lower) - _largest_rows(c.lower, level - 1)
        best = max(best, float(discs.min(initial=math.inf)) - _slack(c.sizes, c.rows))
    return max(best, 0.0)


def _largest_rows(matrix: FloatArray, count: int) -> FloatArray:
    """Return the sums of the ``count`` largest off-diagonal magnitudes of every row."""
    sizes = np.abs(matrix)
    np.fill_diagonal(sizes, 0.0)
    p = sizes.shape[0]
    if count <= 0:
        return np.zeros(p)
    if count < p:
        sizes = np.partition(sizes, p - count, axis=1)[:, p - count :]
    return np.asarray(sizes.sum(axis=1) * (1.0 + gamma(p)))
