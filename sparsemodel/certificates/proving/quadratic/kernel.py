r"""The relaxation of one node of a quadratic with equations, compiled.

With :math:`M = Q - D - N`, where :math:`M + T` is positive semidefinite for :math:`T = \sum_e
\tau_e a_e a_e^T`, a node asks for

.. math:: \min_w\; w^T M w + c^T w + \sum_i h_i(w_i), \qquad A w = b .

For a coordinate that is in, :math:`h = d w^2` between its ends. For an undecided one it is the
convex envelope of zero and :math:`d w^2 + t^2` on the values that it takes when it is chosen, with
:math:`t^2` the multiplier of the budget: linear up to :math:`a = t / \sqrt d`, clipped to these
values, and :math:`d w^2 + t^2` beyond, on either side of zero.

Any point :math:`v` and multipliers :math:`y` prove

.. math:: w^T Q w + c^T w \ge b^T y - v^T M v - \sum_e \tau_e (a_e^T v - b_e)^2
          - \sum_{i:\, w_i \ne 0} G_i, \qquad
          G_i = \max_w\; r_i w - d_i w^2, \quad r = A^T y - c - 2 M v,

over the values that a chosen coordinate takes, for all feasible points with :math:`w^T N w \ge 0`:
:math:`(w - v)^T (M + T) (w - v) \ge 0`, and :math:`A w = b`.

Equations are an augmented Lagrangian with the same :math:`\tau`, so that all Hessians are positive
semidefinite; its minimum is found by Newton steps on the pieces of :math:`h`, a ratio test, and the
release of the coordinate that is held most against its will. Plain loops and few arrays on purpose:
they compile sooner.
"""

from __future__ import annotations

import numpy as np

from sparsemodel import loading
from sparsemodel.certificates.proving.compiling import interruptible

numba = loading.numba()

C, D, LOW, HIGH = 0, 1, 2, 3
"""Columns of what is known of a coordinate: ``c``, ``d``, and between what a chosen one is."""

B, CAP, TAU = 0, 1, 2
"""Columns of what is known of a row: ``b``, the largest multiplier, ``tau``."""

_HELD = 8
"""A coordinate at the end ``e`` of a piece is ``_HELD + e``; less is the piece that it is on."""


@numba.njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
def _solved(h, g, size, x):  # type: ignore[no-untyped-def]
    """Solve with the lower triangle of ``h`` by Cholesky; return whether it is positive."""
    for j in range(size):
        for i in range(j, size):
            v = h[i, j]
            for q in range(j):
                v -= h[i, q] * h[j, q]
            if i > j:
                h[i, j] = v / h[j, j]
            elif v > 0.0:
                h[j, j] = np.sqrt(v)
            else:
                return False
    for i in range(size):
        v = g[i]
        for q in range(i):
            v -= h[i, q] * x[q]
        x[i] = v / h[i, i]
    for i in range(size - 1, -1, -1):
        v = x[i]
        for q in range(i + 1, size):
            v -= h[q, i] * x[q]
        x[i] = v / h[i, i]
    return True


@numba.njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
def _total(gains, status, k):  # type: ignore[no-untyped-def]
    """Return the gains of all that is in and of the best ``k`` undecided; these are set to -1."""
    out = 0.0
    for i in range(gains.size):
        if status[i] == 1:
            out += gains[i]
    for _ in range(k):
        best, most = -1, 0.0
        for i in range(gains.size):
            if status[i] == 0 and gains[i] > most:
                best, most = i, gains[i]
        if best < 0:
            break
        out += most
        gains[best] = -1.0
    return out


@numba.njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
def bound_at(matrix, a, of, row, status, k, w, y, mw, gains, work):  # type: ignore[no-untyped-def]
    """Return the bound of a point with ``mw = M w`` and multipliers, and it before all gains.

    Gains are written. With ``mw`` empty only ``y`` counts, as a ray along which ``b' y`` grows
    (Farkas).
    """
    base, ray = 0.0, mw.size == 0
    for e in range(y.size):
        y[e] = min(y[e], row[e, CAP])
        left = 0.0 if ray else row[e, B]
        for i in range(w.size):
            left -= 0.0 if ray else a[e, i] * w[i]
        base += row[e, B] * y[e] - row[e, TAU] * left * left
    for i in range(w.size):
        gains[i] = 0.0
        if status[i] < 0:
            continue
        r, d, gain = 0.0, 0.0, -np.inf
        for e in range(y.size):
            r += a[e, i] * y[e]
        if not ray:
            base -= w[i] * mw[i]
            r -= of[i, C] + 2.0 * mw[i]
            d = of[i, D]
        peak = r / (2.0 * d) if d > 0.0 else np.inf if r > 0.0 else -np.inf
        for s in range(2):
            v = min(max(peak, of[i, LOW]), of[i, HIGH]) if d > 0.0 else of[i, LOW + s]
            one = 0.0 if v == 0.0 or (d == 0.0 and r == 0.0) else r * v - d * v * v
            gain = max(gain, one)
        gains[i] = gain
    for i in range(w.size):
        work[i] = gains[i]
    return base - _total(work, status, k), base


@numba.njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
def _pieces(of, i, inside, t, ends, slope, curve):  # type: ignore[no-untyped-def]
    """Write the pieces of ``h`` of a coordinate, and return the first and the last of them.

    Between ``ends[j]`` and ``ends[j + 1]`` the derivative is ``slope[j] + curve[j] w``.
    """
    d, low, high = of[i, D], of[i, LOW], of[i, HIGH]
    if inside:
        ends[i, 0], ends[i, 1], slope[i, 0], curve[i, 0] = low, high, 0.0, 2.0 * d
        return 0, 0
    first, last = 2, 1
    ends[i, 2] = 0.0
    for s in range(-1, 2, 2):
        far, near = (high, max(low, 0.0)) if s > 0 else (-low, max(-high, 0.0))
        if far <= 0.0:
            continue
        width = min(max(t / np.sqrt(d), near), far) if d > 0.0 else far
        up = d * width + t * t / width if 0.0 < width < np.inf else 0.0
        inner, outer = (2, 3) if s > 0 else (1, 0)
        slope[i, inner], curve[i, inner] = s * up, 0.0
        slope[i, outer], curve[i, outer] = 0.0, 2.0 * d
        ends[i, 2 + s], ends[i, 2 + 2 * s] = s * width, s * far
        if s > 0:
            last = 3 if width < far else 2
        else:
            first = 0 if width < far else 1
    return first, last


@numba.njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
def _place(w, ends, i, first, last):  # type: ignore[no-untyped-def]
    """Return the piece that a value is on, or the end that it is at."""
    for j in range(first, last + 1):
        if w <= ends[i, j]:
            return _HELD + j
        if w < ends[i, j + 1]:
            return j
    return _HELD + last + 1


@numba.njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
def _released(where, grad, ends, slope, curve, span, most):  # type: ignore[no-untyped-def]
    """Release the coordinate that is held most against its will, by more than ``most``."""
    who, to = -1, 0
    for i in range(where.size):
        e = where[i] - _HELD
        if e < 0:
            continue
        for j in range(e - 1, e + 1):
            if j < span[i, 0] or j > span[i, 1]:
                continue
            v = grad[i] + slope[i, j]
            v += curve[i, j] * ends[i, e] if curve[i, j] != 0.0 else 0.0
            v = v if j < e else -v
            if v > most:
                most, who, to = v, i, j
    if who >= 0:
        where[who] = to
    return who >= 0


@numba.njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
def _newton(matrix, a, tau, grad, curve, where, free, h, g, x, ridge):  # type: ignore[no-untyped-def]
    """Write the Newton step on the pieces to ``x``; return whether there is one."""
    for f in range(free.size):
        i = free[f]
        for q in range(f + 1):
            j = free[q]
            v = 2.0 * matrix[i, j]
            for e in range(tau.size):
                v += 2.0 * tau[e] * a[e, i] * a[e, j]
            h[f, q] = v
        h[f, f] += curve[i, where[i]] + ridge
        g[f] = -grad[i]
    return _solved(h, g, free.size, x)


@numba.njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
def _minimise(  # type: ignore[no-untyped-def]
    matrix, a, of, row, tau, w, y, mw, where, span, ends, slope, curve, work, h, tol, left_over
):
    """Minimise the augmented Lagrangian, from pieces to pieces, while operations are left over."""
    n, rows = w.size, y.size
    grad, g, x, left = work[0], work[1], work[2], work[3]
    free = np.empty(n, np.int64)
    for _ in range(60 + 6 * n):
        for e in range(rows):
            v = row[e, B]
            for i in range(n):
                v -= a[e, i] * w[i]
            left[e] = y[e] + 2.0 * tau[e] * v
        size, most = 0, 0.0
        for i in range(n):
            if where[i] < 0:
                continue
            v = 2.0 * mw[i] + of[i, C]
            for e in range(rows):
                v -= a[e, i] * left[e]
            j = where[i]
            if j < _HELD:
                v += slope[i, j] + curve[i, j] * w[i]
                free[size] = i
                size += 1
                most = max(most, abs(v))
            grad[i] = v
        if most <= tol:
            if not _released(where, grad, ends, slope, curve, span, tol):
                return
            continue
        left_over[0] -= 2.0 * n * (size + rows) + size * size * (size / 3.0 + rows)
        if left_over[0] < 0.0:
            return
        ridge = 1e-2 * tol
        while not _newton(matrix, a, tau, grad, curve, where, free[:size], h, g, x, ridge):
            ridge *= 100.0
            if ridge > 1e12 * tol:
                return
        # As far as no piece ends; beyond a smooth end the next piece goes on.
        step, hit, to = 1.0, -1, 0
        for f in range(size):
            i = free[f]
            up = 1 if x[f] > 0.0 else 0
            v = (ends[i, where[i] + up] - w[i]) / x[f] if x[f] != 0.0 else np.inf
            if v < step:
                step, hit, to = max(v, 0.0), i, where[i] + up
        for f in range(size):
            i = free[f]
            v = ends[i, to] - w[i] if i == hit else step * x[f]
            w[i] = ends[i, to] if i == hit else w[i] + v
            for j in range(n):
                mw[j] += matrix[i, j] * v
        if hit >= 0:
            j = where[hit]
            other = to if to > j else to - 1
            where[hit] = _HELD + to
            if span[hit, 0] <= other <= span[hit, 1]:
                jump = slope[hit, other] - slope[hit, j]
                jump += (curve[hit, other] - curve[hit, j]) * ends[hit, to]
                if abs(jump) <= tol:
                    where[hit] = other


@interruptible
@numba.njit(cache=True, error_model="numpy")
def solve_node(matrix, a, of, row, status, k, w, y, t, cutoff, rounds, tol, operations):  # type: ignore[no-untyped-def]
    """Return the bound of a node, it before all gains, and the ``y``, ``t``, ``w`` that prove it.

    Then the gains and the shares ``z`` of coordinates. ``w``, ``y``, ``t`` are the start, which is
    overwritten, ``t`` the root of the multiplier of the budget. ``rounds`` of multipliers at most;
    gradients below ``tol`` are zero, in units of the largest curvature. It ends early after about
    so many ``operations``: whatever point it has come to proves its bound.
    """
    n, rows, left_over = w.size, y.size, np.zeros(1)
    left_over[0] = operations
    where, span = np.empty(n, np.int64), np.empty((n, 2), np.int64)
    ends, slope, curve = np.zeros((n, 5)), np.zeros((n, 4)), np.zeros((n, 4))
    mw, work, h = np.zeros(n), np.zeros((5, max(n, rows))), np.zeros((n, n))
    gains, shares, best_gains, best_shares = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    tau, left, ray = row[:, TAU].copy(), np.zeros(rows), np.zeros(0)
    scale, undecided = 1e-300, 0
    for i in range(n):
        scale = max(scale, abs(matrix[i, i]) + abs(of[i, D]))
        undecided += status[i] == 0
    budget = undecided > k
    t = t if budget else 0.0
    for i in range(n):
        fixed = status[i] < 0 or (status[i] == 0 and k <= 0)
        where[i], w[i] = -1 if fixed else _HELD, 0.0 if fixed else w[i]
    best, best_base, best_t, best_w, best_y = -np.inf, -np.inf, t, w.copy(), y.copy()
    t_low, t_high, last = 0.0, np.inf, np.inf
    for outer in range(rounds):
        for i in range(n):
            if where[i] >= 0:
                inside = status[i] == 1
                span[i, 0], span[i, 1] = _pieces(of, i, inside, t, ends, slope, curve)
                w[i] = min(max(w[i], ends[i, span[i, 0]]), ends[i, span[i, 1] + 1])
                where[i] = _place(w[i], ends, i, span[i, 0], span[i, 1])
        for i in range(n):
            mw[i] = 0.0
        for i in range(n):
            if w[i] != 0.0:
                for j in range(n):
                    mw[j] += matrix[i, j] * w[i]
        _minimise(
            *(matrix, a, of, row, tau, w, y, mw, where, span, ends, slope, curve, work, h),
            tol * scale,
            left_over,
        )
        # Multipliers, and what they prove.
        off, reach = 0.0, 1e-300
        for e in range(rows):
            v = row[e, B]
            for i in range(n):
                v -= a[e, i] * w[i]
            left[e] = v
            y[e] += 2.0 * tau[e] * v
            off, reach = max(off, abs(v)), max(reach, abs(row[e, B]))
        bound, base = bound_at(matrix, a, of, row, status, k, w, y, mw, gains, shares)
        total, part, full = 0.0, 0.0, 0
        for i in range(n):
            shares[i] = 0.0
            if status[i] == 0 and where[i] >= 0 and w[i] != 0.0:
                width = abs(ends[i, 3] if w[i] > 0.0 else ends[i, 1])
                shares[i] = min(1.0, abs(w[i]) / width) if width > 0.0 else 1.0
                total += shares[i]
                full += shares[i] >= 1.0
        part = total - full
        if bound > best:
            best, best_base, best_t = bound, base, t
            for e in range(rows):
                best_y[e] = y[e]
            for i in range(n):
                best_w[i], best_gains[i], best_shares[i] = w[i], gains[i], shares[i]
        feasible = off <= 1e-8 * reach
        settled = not budget or abs(total - k) <= 1e-3 * k or (t == 0.0 and total <= k)
        if best >= cutoff or (feasible and settled) or left_over[0] < 0.0:
            break
        if not feasible and outer > 0:
            far, _ = bound_at(matrix, a, of, row, status, k, w, left, ray, gains, shares)
            if far > 1e-6 * off * off:
                # Nothing is feasible: along the residuals the bound has no end.
                more = scale / off
                for _ in range(60):
                    for e in range(rows):
                        y[e] = best_y[e] + more * left[e] / off
                    bound, base = bound_at(matrix, a, of, row, status, k, w, y, mw, gains, shares)
                    more *= 4.0
                    if bound >= cutoff:
                        return bound, base, y, t, w, gains, best_shares
                for e in range(rows):
                    y[e] = best_y[e]
        # A larger penalty where the last round did little: then it converges superlinearly.
        if not feasible and off > 0.1 * last and tau[0] < 1e3 * row[0, TAU]:
            for e in range(rows):
                tau[e] *= 6.0
        last = off
        if not budget:
            continue
        if total > k:
            t_low = t
        else:
            t_high = t
        if t == 0.0:
            for i in range(n):
                if status[i] == 0 and total > k:
                    t += np.sqrt(max(of[i, D], 1e-12 * scale)) * abs(w[i]) / max(k, 1)
            continue
        new = t * part / (k - full) if k > full else 1.5 * t
        new = min(max(new, 0.3 * t), 3.0 * t)
        if t_high < np.inf and not t_low < new < t_high:
            new = 0.5 * (t_low + t_high)
        elif new <= t_low:
            new = 1.3 * t
        t = new
        if feasible and t_high - t_low <= 1e-6 * t_high < np.inf:
            break
    return best, best_base, best_y, best_t, best_w, best_gains, best_shares
