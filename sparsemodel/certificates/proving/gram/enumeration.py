r"""Nodes with few supports left: all of them looked at, in one elimination.

With :math:`|E_{ij}| \le u s_i s_j` and :math:`|e_j| \le u s_j Y` the rounding of ``H`` and ``g``,
every ``x`` with ``m`` nonzeros has

.. math:: P(x) \ge c_0 - \tfrac12 u Y^2 + \tfrac12 x^T (H + \Lambda) x - g^T x
          - \tfrac12 (2 u m) \sum_i s_i^2 x_i^2

for the computed ``H`` and ``g``, because :math:`(\sum s_i |x_i|)^2 \le m \sum s_i^2 x_i^2` and
:math:`2 u Y \sigma \le u (Y^2 + \sigma^2)`. So a slightly smaller diagonal makes the quadratic a
minorant. The elimination itself solves a problem whose matrix is off by at most
:math:`\gamma_{3m+60} \sqrt{M_{ii} M_{jj}}` (Higham, *Accuracy and Stability of Numerical
Algorithms*, Theorems 10.3 and 10.4, and six roundings more in each of the last three steps), so
that the diagonal is lowered by ``m`` times that as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.linalg import solve_triangular

from sparsemodel.certificates.arithmetic.rounding import TINY, U
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.proving.node import IN, UNDECIDED
from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.interfaces.numeric import viewed
from sparsemodel.numerics.budget import Budget

LIMIT = 2_000_000
"""Supports up to which a node is enumerated: some milliseconds."""

WHOLE = 5_000_000_000
"""Supports up to which a problem is that nothing else bounds: some seconds."""

_STEP = 1e8
"""Supports between two looks at the clock."""

_STRIP = 64
"""Rows of the matrix of pairs that are made at a time."""

_MOST = 3
"""Coordinates that may be left to choose."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Enumerated:
    """The best support of a node, and a bound on all of them."""

    bound: float
    support: IntArray
    """Sorted coordinates of the best support, those that are in among them."""


def applies(candidates: int, k: int, limit: int = LIMIT) -> bool:
    """Return whether a node with so many undecided coordinates is small enough."""
    return 0 <= k <= _MOST and math.comb(candidates, min(k, candidates)) <= limit


def enumerate_supports(
    q: Quadratic,
    active: IntArray,
    status: Any,
    balanced: IntArray,
    k: int,
    *,
    caution: float = 1.0,
    deadline: float | None = None,
) -> Enumerated | None:
    """Return the best of all supports of a node; None where a pivot is not positive, or too late.

    Parameters
    ----------
    active
        Coordinates that may be nonzero, without those in ``balanced``.
    status
        ``OUT``, ``UNDECIDED`` or ``IN`` for each of them.
    balanced
        Coordinates without ridge that are always in.
    k
        How many undecided coordinates may be nonzero, 0 to 3.
    caution
        Multiple of the rounding allowance to subtract.
    deadline
        When to give up.

    Notes
    -----
    O(C(m, k) + m^2 |in|) for ``m`` undecided coordinates, O(m |in|^2) where one may be chosen.
    """
    inside = np.concatenate([active[status == IN], balanced])
    rest = active[status == UNDECIDED][: None if k else 0]
    size = inside.size + k
    squares = np.square(q.norms)
    lost = 2.0 * q.unit * size * squares
    lost += 4.0 * size * (size + 20.0) * U * (squares + q.ridge)
    diagonal = np.diag(q.hessian) + q.ridge - caution * lost
    if not np.all(diagonal[np.concatenate([inside, rest])] > 0.0):
        return None
    # Scaled by powers of two to diagonals near one: gains stay, and nothing underflows.
    safe = np.where(diagonal > 0.0, diagonal, 1.0)
    scale = np.exp2(-np.round(0.5 * np.log2(safe)))
    diagonal = (diagonal * scale) * scale
    own = diagonal[rest]
    g = q.linear[rest] * scale[rest]
    if not (np.all(np.isfinite(own)) and np.all(np.isfinite(g))):
        return None
    start, cross = 0.0, np.empty((0, rest.size))
    if inside.size:
        inner = _scaled(q, scale, inside, inside)
        inner[np.diag_indices_from(inner)] = diagonal[inside]
        try:
            lower = np.linalg.cholesky(inner)
        except np.linalg.LinAlgError:
            return None
        linear = q.linear[inside] * scale[inside]
        right = np.column_stack([_scaled(q, scale, inside, rest), linear])
        solved = solve_triangular(lower, right, lower=True, check_finite=False)
        cross, slopes = solved[:, :-1], solved[:, -1]
        own -= np.square(cross).sum(axis=0)
        g -= cross.T @ slopes
        start = math.fsum(np.square(slopes))
    chosen = np.full(_MOST, -1, dtype=np.int64)

    def rows(first: int, last: int) -> FloatArray:
        part = _scaled(q, scale, rest[first:last], rest[first:])
        part -= cross[:, first:last].T @ cross[:, first:]
        return part

    few = min(k, rest.size) < 2
    gain = _alone(own, g, chosen) if few else _most(rows, own, g, k, chosen, deadline)
    if not math.isfinite(gain):
        return None
    gain = (gain + start) * (1.0 + caution * 16.0 * U) + size * TINY
    base = q.lowest_constant - caution * 0.5 * q.unit * q.aim**2 * (1.0 + 16.0 * U)
    bound = base - 0.5 * gain
    bound -= caution * 8.0 * U * (abs(base) + gain)
    support = np.sort(np.concatenate([inside, rest[chosen[chosen >= 0]]]))
    return Enumerated(math.nextafter(bound, -math.inf), support)


def _alone(diagonal: FloatArray, g: FloatArray, chosen: IntArray) -> float:
    """Return the largest gain of one coordinate or none, infinite where it is not known."""
    if not diagonal.size:
        return 0.0
    if not np.all(diagonal > 0.0):
        return math.inf
    gains = np.square(g) / diagonal
    best = int(np.argmax(gains))
    if gains[best] > 0.0:
        chosen[0] = best
    return float(gains[best])


def _most(
    rows: Callable[[int, int], FloatArray],
    diagonal: FloatArray,
    g: FloatArray,
    k: int,
    chosen: IntArray,
    deadline: float | None,
) -> float:
    """Return the largest gain, infinite where it is not known; fills in who has it.

    Pairs need only a strip of the matrix at a time, from its diagonal on; triples all of it.
    """
    from sparsemodel.certificates.proving.gram.kernels.enumeration_compiled import best_gain

    gain, size = 0.0, g.size
    m = rows(0, size) if k > 2 else None
    step = max(1, int(_STEP * size / math.comb(size, k))) if size >= k else size
    step = step if k > 2 else min(step, _STRIP)
    for first in range(0, size, step):
        if first and Budget(deadline).over():
            return math.inf
        last = min(first + step, size)
        strip, offset = (rows(first, last), first) if m is None else (m, 0)
        if not np.all(np.isfinite(strip)):
            return math.inf
        gain = float(best_gain(strip, offset, diagonal, g, k, first, last, chosen, gain))
    return gain


def _scaled(q: Quadratic, scale: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """Return a part of the scaled Hessian."""
    part = q.hessian[viewed(rows)][:, viewed(columns)] * scale[rows][:, None]
    part *= scale[columns]
    return np.asarray(part)
