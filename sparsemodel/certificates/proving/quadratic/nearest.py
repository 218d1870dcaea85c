r"""The nearest diagonal and border of the relaxation's matrix, coordinate by coordinate, compiled.

For a coordinate with the diagonal entry ``x`` and the border entry ``w`` these minimise

.. math:: (p - w)^2 + \tfrac12 (X - x)^2 + \lambda z, \qquad X \ge p^2 / z, \quad
          l z \le p \le u z, \quad 0 \le z \le 1,

where ``z`` is 1 for what is in, and the multiplier of the budget is such that all ``z`` add up to
``k``. Each of the conditions may decide, and all are tried. With arrays the calls alone took longer
than eigenvalues do.
"""

from __future__ import annotations

import numpy as np

from sparsemodel import loading

numba = loading.numba()

_NEWTON = 12
"""Steps of Newton's method from above on a convex cubic: quadratic convergence takes fewer."""

_FIRST = 1e-6
"""The first multiplier of a budget that is tried, where ``Q`` has a unit diagonal."""

_EXACT = 1e-3
"""What the shares may be off, relative to the budget: the next iteration goes on."""


@numba.njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
def _whole(x, w, low, high):  # type: ignore[no-untyped-def]
    """Return ``p`` for ``z = 1``; where ``p^2`` is above ``x``, ``p^3 + (1 - x) p = w``."""
    p = w
    if w * w > x:
        size = min(abs(w), abs(w) ** (1.0 / 3.0) + np.sqrt(max(x, 0.0)))
        p = size if w > 0.0 else -size
        for _ in range(_NEWTON):
            g = 3.0 * p * p + 1.0 - x
            p -= (p * p * p + (1.0 - x) * p - w) / (g if abs(g) > 1e-12 else 1e-12)
    return min(max(p, low), high)


@numba.njit(cache=True, error_model="numpy")
def nearest(x, w, price, near, far):  # type: ignore[no-untyped-def]
    """Return ``p`` and ``z`` of an undecided coordinate whose values are between two ends, or zero.

    ``w`` and the ends are not negative.
    """
    best, best_p, best_z = w * w + 0.5 * min(x, 0.0) ** 2, 0.0, 0.0
    root = np.sqrt(price)
    for kind in range(4):
        p, z = 0.0, 0.0
        if kind == 0 and root > 0.0:
            # Both inside: with q^2 the multiplier of X >= p^2/z, q (q^2 + x + lambda) = w root.
            s, right = x + price, w * root
            q = right ** (1.0 / 3.0) + np.sqrt(max(-s, 0.0))
            for _ in range(_NEWTON):
                g = 3.0 * q * q + s
                q = max(q - (q * (q * q + s) - right) / (g if g > 1e-300 else 1e-300), 0.0)
            p = w - root * q
            z = p * q / root
        elif kind == 1:
            p, z = _whole(x, w, near, max(near, far)), 1.0
        elif kind >= 2:  # on a line p = a z
            a = near if kind == 2 else far
            if 0.0 < a < np.inf:
                bent = (2.0 * w + a * x - price / a) / (2.0 + a * a)
                p = bent if a * bent > x else w - 0.5 * price / a
                p = min(max(p, 0.0), a)
                z = p / a
        most = min(p / near, 1.0) if near > 0.0 else 1.0
        z = min(max(z, p / far), most)
        if p > 0.0 and z > 0.0 and p <= far * (1.0 + 1e-12):
            value = (p - w) ** 2 + 0.5 * max(p * p / z - x, 0.0) ** 2 + price * z
            if value < best:
                best, best_p, best_z = value, p, z
    return best_p, best_z


@numba.njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
def _shares(x, w, price, low, high, status, out_x, out_w):  # type: ignore[no-untyped-def]
    """Write what is nearest at a multiplier of the budget; return what all ``z`` add up to."""
    total = 0.0
    for i in range(w.size):
        if status[i] != 0:
            continue
        side = -1.0 if w[i] < 0.0 and low[i] < 0.0 else 1.0
        far = high[i] if side > 0.0 else -low[i]
        p, z = nearest(x[i], max(side * w[i], 0.0), price, max(low[i], 0.0), far)
        out_w[i] = side * p
        out_x[i] = max(x[i], p * p / z) if z > 0.0 else max(x[i], 0.0)
        total += z
    return total


@numba.njit(cache=True, error_model="numpy")
def entries(x, w, price, low, high, status, k, out_x, out_w):  # type: ignore[no-untyped-def]
    """Write the nearest diagonal and border, and return the multiplier of the budget.

    ``status`` is -1 for coordinates that are out, which are zero, 0 undecided, 1 in.
    """
    undecided = 0
    for i in range(w.size):
        out_x[i] = out_w[i] = 0.0
        undecided += status[i] == 0
        if status[i] == 1:
            out_w[i] = _whole(x[i], w[i], low[i], high[i])
            out_x[i] = max(x[i], out_w[i] * out_w[i])
    if not undecided:
        return 0.0
    total = _shares(x, w, price, low, high, status, out_x, out_w)
    below, above = 0.0, np.inf
    for _ in range(24):
        if abs(total - k) <= _EXACT * k or (price <= _FIRST and total <= k):
            break
        if total > k:
            below = price
        else:
            above = price
        guess = max(price, _FIRST) * min(max((total / max(k, 1e-9)) ** 2, 0.05), 20.0)
        if not below < guess < above:
            guess = 0.5 * (below + above) if above < np.inf else 2.0 * max(below, _FIRST)
        price = guess
        total = _shares(x, w, price, low, high, status, out_x, out_w)
    return price
