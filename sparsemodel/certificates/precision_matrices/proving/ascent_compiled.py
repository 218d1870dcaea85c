r"""Ascent in the dual of a node of a graph, compiled.

For a symmetric ``U`` and a modulus :math:`\mu > 0`, every matrix with eigenvalues in
:math:`[\alpha, \beta]` and the edges that the node allows has

.. math:: L(\Omega) \ge \sum_i \min_{\alpha \le t \le \beta}
          \Bigl(-\log t + \sigma_i t - \tfrac\mu2 t^2\Bigr)
          - \sum_i c_i - \sum_{\mathrm{in}} c_{ij}
          - \sum_{\text{the } k \text{ largest}} c_{ij},

with :math:`\sigma` the eigenvalues of ``S + U``, :math:`c_{ij} = U_{ij}^2 / \mu` (no more than
entries of size :math:`(\beta - \alpha) / 2` cost) and
:math:`c_i = \max_{\alpha \le t \le \beta} U_{ii} t - \mu t^2 / 2`. The bound is concave in ``U``
and :math:`\mu` together, and not smooth where costs tie or a minimum moves to :math:`\beta`: hence
the weak Wolfe conditions by bisection (Lewis and Overton 2013).

Plain loops on purpose: they compile in a quarter of the time that array expressions take.
"""

from __future__ import annotations

import math

import numpy as np

from sparsemodel.certificates.proving.compiling import GRAPHS, interruptible, warmed
from sparsemodel.certificates.proving.gram.kernels.top_compiled import compiled, top
from sparsemodel.interfaces.precision import SparsePrecision

DIAGONAL = 2
"""Status of an entry of the diagonal, beside those of edges."""

_MEMORY = 10
_TRIALS = 25


@compiled
def _spectral(S, rows, cols, U, mu, alpha, beta):  # type: ignore[no-untyped-def]
    """Return the spectral part of the bound, the matrix that attains it, and its slope in mu."""
    p = S.shape[0]
    B = S.copy()
    for a in range(rows.size):
        B[rows[a], cols[a]] += U[a]
        if rows[a] != cols[a]:
            B[cols[a], rows[a]] = B[rows[a], cols[a]]
    sigma, V = np.linalg.eigh(B)
    scaled = np.empty_like(V)
    edge = 2.0 * math.sqrt(mu)
    last = -math.log(beta) - 0.5 * mu * beta * beta
    value, slope = 0.0, 0.0
    for i in range(p):
        s = sigma[i]
        t = beta
        if s >= edge:
            t = 2.0 / (s + math.sqrt(s - edge) * math.sqrt(s + edge))
        t = min(max(t, alpha), beta)
        term = -math.log(t) + s * t - 0.5 * mu * t * t
        if last + s * beta < term:
            t, term = beta, last + s * beta
        value += term
        slope -= 0.5 * t * t
        for r in range(p):
            scaled[r, i] = V[r, i] * t
    return value, slope, scaled @ V.T


@compiled
def _evaluate(S, rows, cols, point, alpha, beta, status, k, ascent, omega):  # type: ignore[no-untyped-def]
    """Return the bound; writes its supergradient and the entries of the spectral minimiser."""
    size = rows.size
    mu = point[size]
    value, slope, matrix = _spectral(S, rows, cols, point[:size], mu, alpha, beta)
    half = 0.5 * (beta - alpha)
    undecided = np.empty(size)
    count = 0
    for a in range(size):
        u = point[a]
        omega[a] = matrix[rows[a], cols[a]]
        if status[a] == 2:
            t = min(max(u / mu, alpha), beta)
            value -= u * t - 0.5 * mu * t * t
            slope += 0.5 * t * t
            ascent[a] = omega[a] - t
            continue
        ascent[a] = 2.0 * omega[a]
        if status[a] >= 0:
            t = min(abs(u) / mu, half)
            cost = 2.0 * abs(u) * t - mu * t * t
            if status[a] == 1:
                value -= cost
                slope += t * t
                ascent[a] -= 2.0 * math.copysign(t, u)
            else:
                undecided[count] = cost
                count += 1
    least = np.inf
    if 0 < k < count:
        least = top(undecided[:count].copy(), k)[1]
    elif k >= count:
        least = -1.0
    left, place = k, 0
    for strict in (True, False):
        place = 0
        for a in range(size):
            if status[a] != 0:
                continue
            cost = undecided[place]
            place += 1
            if left > 0 and (cost > least if strict else cost == least):
                t = min(abs(point[a]) / mu, half)
                value -= cost
                slope += t * t
                ascent[a] -= 2.0 * math.copysign(t, point[a])
                left -= 1
    ascent[size] = slope
    return value


@compiled
def _scales(point, omega, status, out):  # type: ignore[no-untyped-def]
    """Write the inverse curvatures that the first step of an ascent assumes."""
    size = status.size
    mu, square = point[size], 1e-3
    for a in range(size):
        square += 0.5 * omega[a] ** 2
        if status[a] == 2:
            out[a] = 1.0 / (1.0 + 1.0 / mu)
        elif status[a] == 1:
            out[a] = 1.0 / (2.0 + 2.0 / mu)
        elif status[a] == 0:
            out[a] = 1.0 / (2.0 + 1.0 / mu)
        else:
            out[a] = 0.5
    out[size] = 0.5 * mu / square


@compiled
def _direction(g, steps, changes, inverse, stored, head, scales):  # type: ignore[no-untyped-def]
    """Return the L-BFGS direction of ascent."""
    d = g.copy()
    weights = np.zeros(_MEMORY)
    for q in range(stored):
        i = (head - 1 - q) % _MEMORY
        weights[i] = inverse[i] * np.dot(steps[i], d)
        d -= weights[i] * changes[i]
    gamma = 1.0
    if stored > 0:
        i = (head - 1) % _MEMORY
        gamma = 1.0 / (inverse[i] * np.dot(changes[i] * scales, changes[i]))
    d *= gamma * scales
    for q in range(stored):
        i = (head - stored + q) % _MEMORY
        d += steps[i] * (weights[i] - inverse[i] * np.dot(changes[i], d))
    return d


@interruptible
@compiled
def ascend(S, rows, cols, start, alpha, beta, status, k, goal, most, gain):  # type: ignore[no-untyped-def]
    """Return the best bound met, its point (``U`` and the modulus) and entries, and evaluations.

    Ends at ``goal``, after ``most`` evaluations, or when six steps gain less than ``gain``.
    """
    size = start.size
    point, tried = start.copy(), np.empty(size)
    g, ng = np.empty(size), np.empty(size)
    omega, scales = np.empty(size - 1), np.empty(size)
    f = _evaluate(S, rows, cols, point, alpha, beta, status, k, g, omega)
    best, at, entries = f, point.copy(), omega.copy()
    _scales(point, omega, status, scales)
    steps, changes = np.zeros((_MEMORY, size)), np.zeros((_MEMORY, size))
    inverse = np.zeros(_MEMORY)
    stored, head, count, since, before = 0, 0, 1, 0, f
    while count < most and best < goal:
        d = _direction(g, steps, changes, inverse, stored, head, scales)
        slope = np.dot(g, d)
        if not slope > 0.0:
            if stored == 0:
                break
            stored = 0
            continue
        low, high, t, nf, found = 0.0, np.inf, 1.0, f, False
        for _ in range(_TRIALS):
            tried[:] = point + t * d
            nf = -np.inf
            if tried[size - 1] > 0.02 * point[size - 1]:
                nf = _evaluate(S, rows, cols, tried, alpha, beta, status, k, ng, omega)
                count += 1
            if nf > best:
                best = nf
                at[:], entries[:] = tried, omega
            if best >= goal or count >= most:
                break
            if not nf >= f + 1e-4 * t * slope:
                high = t
            elif np.dot(ng, d) > 0.9 * slope:
                low = t
            else:
                found = True
                break
            t = 0.5 * (low + high) if high < np.inf else 2.0 * t
        if best >= goal or count >= most:
            break
        if not found:
            if stored == 0:
                break
            stored = 0
            point[:] = at
            f = _evaluate(S, rows, cols, point, alpha, beta, status, k, g, omega)
            count += 1
            continue
        curvature = np.dot(tried - point, g - ng)
        if curvature > 0.0:
            steps[head], changes[head], inverse[head] = tried - point, g - ng, 1.0 / curvature
            head, stored = (head + 1) % _MEMORY, min(stored + 1, _MEMORY)
        point[:], g[:], f = tried, ng, nf
        since += 1
        if since == 6:
            if best - before <= gain:
                break
            before, since = best, 0
    return best, at, entries, count


def compiling() -> float:
    """Compile the ascent, with the types of a search; return the seconds that this took."""
    form = SparsePrecision.build(np.eye(1), 0)
    start, status = np.array([0.0, 1.0]), np.full(1, DIAGONAL, dtype=np.int8)
    edges = (form.covariance, form.rows, form.cols)
    return warmed(GRAPHS, lambda: ascend(*edges, start, 1.0, 2.0, status, 0, 0.0, 1, 0.0))
