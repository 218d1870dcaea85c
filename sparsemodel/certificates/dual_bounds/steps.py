r"""The bound of a sequence's best steps: a dynamic programme in which every sum is rounded down.

With weights ``c`` and a target ``y`` no sequence with at most ``k`` jumps has
:math:`\tfrac12 \sum_i c_i (y_i - v_i)^2` below :math:`\min_m C_{m+1}(n)`,

.. math:: C_1(j) = c(0, j), \qquad C_{m+1}(j) = \min_{i < j} C_m(i) + c(i, j),

:math:`c(i, j)` being the least cost of one segment of the entries :math:`i + 1, \dots, j`. Nothing
is left out here, and nothing that a solver found is used.
"""

from __future__ import annotations

import math

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import TINY, U, gamma
from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.interfaces import FloatArray, SparseRegression
from sparsemodel.numerics import as_sequence

STEPS = "dynamic programming"


def steps_bound(form: SparseRegression, *, caution: float) -> Bound | None:
    """Return the bound of a form that is the best approximation of a sequence by steps.

    None for any other form. ``caution`` is the multiple of the rounding allowance to subtract.
    """
    sequence = as_sequence(form)
    if sequence is None:
        return None
    y, weights = sequence
    sparsity, term = form.sparsity, form.terms[0]
    kept = weights > 0.0
    # What the target is off by: an offset that is taken from it, and the mean that is.
    off = np.zeros(y.size) if term.offset is None else U * np.abs(y)
    total = float(weights.sum())
    centred = y - (float(weights @ y) / total if total > 0.0 else 0.0)
    off = off + U * np.abs(centred)
    segments = min(sparsity.budget, sparsity.units) + 1
    least, given = _least(centred, weights, segments, caution)
    value = math.inf
    # |y - v| changes by no more than |off|: (r - rho)^2 / 2 where it is r.
    rho = caution * math.sqrt(math.fsum(weights[kept] * np.square(off[kept]))) * (1.0 + 8.0 * U)
    for jumps, cost in enumerate(least.tolist()):
        reach = math.sqrt(2.0 * max(cost, 0.0)) * (1.0 - 4.0 * U)
        moved = min(cost, 0.5 * max(reach - rho, 0.0) ** 2 * (1.0 - 4.0 * U))
        value = min(value, moved + sparsity.price * jumps * (1.0 - 2.0 * U))
    if value <= 0.0:  # no sum of squares is negative
        value, given = 0.0, 0.0
    if value == 0.0 and form.constant == 0.0:
        return Bound(0.0, 0.0, STEPS)
    bound = math.nextafter(math.fsum([form.constant, value]), -math.inf)
    return Bound(bound, given, STEPS)


def _least(
    y: FloatArray, weights: FloatArray, segments: int, caution: float
) -> tuple[FloatArray, float]:
    """Return the least costs in ``1, 2, ...`` segments, rounded down, and what each gave away."""
    n = y.size
    w, s, q = (
        np.concatenate([[0.0], np.cumsum(part)])
        for part in (weights, weights * y, 0.5 * weights * y * y)
    )
    # A sum of n rounded terms is off by gamma(n + 8) of that of their sizes, at either end.
    reach, tiny = 2.0 * caution * gamma(n + 8), (n + 8) * TINY
    off_w, off_s, off_q = (
        reach * size + tiny for size in (w[-1], float(np.abs(weights * y).sum()), q[-1])
    )
    least = np.full((segments, n + 1), np.inf)
    for j in range(1, n + 1):
        weight = (w[j] - w[:j]) * (1.0 - 2.0 * U) - off_w
        sums = np.abs(s[j] - s[:j]) * (1.0 + 2.0 * U) + off_s
        root = np.full(j, np.inf)
        np.divide(sums, np.sqrt(np.maximum(weight, 0.0)), out=root, where=weight > 0.0)
        most = 0.5 * root * root
        whole = q[j] - q[:j]
        cost = (whole - most) - off_q - 8.0 * U * (whole + np.minimum(most, whole))
        cost = np.where(np.isfinite(most), cost, -off_q)
        least[0, j] = cost[0]
        if segments > 1 and j > 1:
            before = least[:-1, 1:j]
            slack = 4.0 * U * (np.abs(before) + np.abs(cost[1:]))
            through = np.where(np.isfinite(before), before + cost[1:] - slack, np.inf)
            least[1:, j] = through.min(axis=1)
    found = least[:, n]
    return found[np.isfinite(found)], float(off_q)
