r"""Descents by exchanges in a quadratic; compiled.

The quadratic is ``x' G x / 2 - c' x`` in columns of which ``q`` make up a unit, whitened so that
the block of each unit in ``G`` is the identity; ``m`` outputs share ``G``. Values are in units of
twice what a support lowers it by. For a support ``S`` of ``n`` units, ``N = n q`` columns,

.. math:: B = G_{SS}^{-1}, \quad Q = B\, G_{S:}, \quad w = B\, c_S, \quad
          r = c - G_{:S}\, w, \quad s_x = (G - G_{:S}\, Q)_{xx} ,

with ``s`` in blocks of a unit. Adding unit ``x`` gains :math:`r_x' s_x^{-1} r_x`, dropping unit
``i`` costs :math:`w_i' B_{ii}^{-1} w_i`, and both together gain, with
:math:`T = B_{ii}^{-1} Q_{ix}`,

.. math:: (r_x + T' w_i)'\, (s_x + Q_{ix}' T)^{-1} (r_x + T' w_i) - w_i' B_{ii}^{-1} w_i .

All of it follows a support by updates of rank one, :math:`O(N P)` each. Within bounds (single
columns, one output) members beyond an end of theirs are held there, out of ``S``: they shift ``c``.

There is one compiled function, in which every operation stands once: a level of calls would be
optimised again for each caller, and what it compiles in now is seconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsemodel import loading
from sparsemodel.numerics.search import GUARD, ROUNDING

_njit = loading.numba().njit(
    cache=True, error_model="numpy", nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"}
)

_REFRESHED = 30
"""Exchanges after which a support is factored again, so that rounding does not add up."""
_INSIDE = 1e-12
"""How far a whitened coordinate may be beyond an end of its bounds."""


class Factor(NamedTuple):
    """What is kept of one support; sizes are those of the largest."""

    units: np.ndarray  # (n,)
    B: np.ndarray  # (N, N)
    Q: np.ndarray  # (N, P)
    w: np.ndarray  # (N, m)
    r: np.ndarray  # (m, P)
    s: np.ndarray  # (q, P): s[t, x] is the entry of column x with the t-th column of its unit
    v: np.ndarray  # (P,): the row of the column that enters or leaves
    u: np.ndarray  # (N,): its entries at the members
    z: np.ndarray  # (m,): its gradients
    gains: np.ndarray  # (P,)
    T: np.ndarray  # (q, P)
    blocks: np.ndarray  # (4, q, max(q, m))
    kept: np.ndarray  # (n,): a support to come back to
    is_member: np.ndarray  # (U,)
    is_closed: np.ndarray  # (U,): what gained less than was promised
    columns: np.ndarray  # (n,): members held at an end of their bounds
    ends: np.ndarray  # (n,)


def new_factor(most: int, m: int, P: int, q: int) -> Factor:
    """Return memory for supports of at most ``most`` units."""
    N, U = most * q, P // q
    return Factor(
        units=np.zeros(most, np.int64),
        B=np.zeros((N, N)),
        Q=np.empty((N, P)),
        w=np.zeros((N, m)),
        r=np.empty((m, P)),
        s=np.empty((q, P)),
        v=np.empty(P),
        u=np.empty(N),
        z=np.empty(m),
        gains=np.empty(P),
        T=np.empty((q, P)),
        blocks=np.empty((4, q, max(q, m))),
        kept=np.zeros(most, np.int64),
        is_member=np.zeros(U, np.bool_),
        is_closed=np.zeros(U, np.bool_),
        columns=np.zeros(most, np.int64),
        ends=np.zeros(most),
    )


@_njit
def _block_gain(M, R, q, m):  # type: ignore[no-untyped-def]
    """Return ``tr(R' M^-1 R)`` by a Cholesky factor in place; 0 if the block depends on others."""
    total = 0.0
    for a in range(q):
        for b in range(a):
            t = M[a, b]
            for o in range(b):
                t -= M[a, o] * M[b, o]
            M[a, b] = t / M[b, b]
        t = M[a, a]
        for o in range(a):
            t -= M[a, o] * M[a, o]
        if t <= GUARD:
            return 0.0
        M[a, a] = np.sqrt(t)
        for y in range(m):
            t = R[a, y]
            for o in range(a):
                t -= M[a, o] * R[o, y]
            R[a, y] = t / M[a, a]
            total += R[a, y] * R[a, y]
    return total


@_njit
def descents(store, slots, diagonal, c, sizes, starts, values, place, low, high, f):  # type: ignore[no-untyped-def]
    """Descend from each of ``starts``, rows of units with -1 in empty places, from ``place[0]`` on.

    A start with more units than ``sizes`` says is thinned by what costs least, one with fewer is
    filled by what gains most; then the best exchange is made until none gains. ``starts`` become
    the ends, ``values`` what these explain.

    Parameters
    ----------
    store, slots
        Row ``j`` of G is ``store[slots[j]]``. Where that is -1 the call stops with the unit in
        ``place[1]``, and ``f`` as it is; the next call, with that at -1, goes on from there.
    diagonal
        1, or 0 for columns of which nothing is left.
    low, high
        Bounds on single columns, which contain zero; empty without.
    f
        Memory from :func:`new_factor`.
    """
    units, B, Q, w, r, s = f.units, f.B, f.Q, f.w, f.r, f.s
    v, u, z, gains, T, kept = f.v, f.u, f.z, f.gains, f.T, f.kept
    M, R, L, Y = f.blocks[0], f.blocks[1], f.blocks[2], f.blocks[3]
    is_member, is_closed, held, ends = f.is_member, f.is_closed, f.columns, f.ends
    q, m, P = s.shape[0], r.shape[0], r.shape[1]
    U, width, is_boxed = P // q, starts.shape[1], low.size > 0
    for a in range(place[0], starts.shape[0]):
        place[0] = a
        k, cursor, n, count, steps, pivots, before = sizes[a], 0, 0, 0, 0, 0, 0
        value, entering, shifting, shift = -1.0, -1, -1, 0.0
        is_settled, is_tried, is_stalled, extra = False, False, False, -1
        if place[2] >= 0:  # go on where a row was missing
            n, count, cursor, is_settled = place[2], place[3], width, True
            place[2] = -1
        else:
            for x in range(U):
                is_closed[x] = False
        while True:
            # 1. Begin at the units of the start, once more after many pivots.
            if cursor == 0:
                for x in range(P):
                    for y in range(m):
                        r[y, x] = c[y, x]
                    for o in range(q):
                        s[o, x] = diagonal[x] if x % q == o else 0.0
                for x in range(U):
                    is_member[x] = False
                n, count, pivots, is_settled = 0, 0, 0, False
            # 2. Choose what is done next: a unit leaves, a held column is shifted, a unit enters.
            slot, into = -1, -1
            if shifting >= 0:
                pass
            elif entering >= 0:
                into, entering = entering, -1
            elif cursor < width:
                into = starts[a, cursor]
                cursor += 1
                if into < 0 or is_member[into] or n == units.size:
                    continue
                is_independent = True
                for o in range(q):
                    is_independent = is_independent and s[o, into * q + o] > GUARD
                if not is_independent:
                    continue
            elif n + count > k:
                least = np.inf
                for i in range(n):
                    for o in range(q):
                        for b in range(q):
                            M[o, b] = B[i * q + o, i * q + b]
                        for y in range(m):
                            R[o, y] = w[i * q + o, y]
                    cost = _block_gain(M, R, q, m)
                    if cost < least or (units[i] == extra and cost <= least * (1.0 + ROUNDING)):
                        slot, least = i, cost
                is_stalled = is_stalled or units[slot] == extra
                extra = -1
            else:
                # 3. Within bounds: hold what is beyond an end, free what is pulled inside.
                if is_boxed and not is_settled:
                    is_settled, most = True, _INSIDE
                    pivots += 1
                    is_degenerate = pivots > 20 + 10 * width  # as good as settled
                    for i in range(0 if is_degenerate else n):
                        over = max(low[units[i]] - w[i, 0], w[i, 0] - high[units[i]])
                        if over > most:
                            slot, most = i, over
                    if slot >= 0:
                        j = units[slot]
                        shift = low[j] if w[slot, 0] < low[j] else high[j]
                        is_settled = False
                        if shift != 0.0:
                            shifting, held[count], ends[count] = j, j, shift
                            count += 1
                    else:
                        for i in range(0 if is_degenerate else count):
                            j = held[i]
                            pull = r[0, j] if ends[i] == high[j] else -r[0, j]
                            if pull < -_INSIDE:
                                shifting, shift, entering = j, -ends[i], j
                                held[i], ends[i] = held[count - 1], ends[count - 1]
                                count -= 1
                                is_settled = False
                                break
                if slot < 0 and shifting < 0:
                    # 4. What the support explains now; a change that explains less is taken back.
                    total = 0.0
                    for i in range(n * q):
                        for y in range(m):
                            total += w[i, y] * c[y, units[i // q] * q + i % q]
                    for i in range(count):
                        total += ends[i] * (c[0, held[i]] + r[0, held[i]])
                    if is_boxed and is_tried and not total > value * (1.0 + ROUNDING):
                        for i in range(width):
                            starts[a, i] = kept[i] if i < before else -1
                        is_tried, cursor = False, 0
                        continue
                    if is_tried:
                        for x in range(U):
                            is_closed[x] = False
                    is_tried, value = False, total
                    before = n + count
                    for i in range(before):
                        kept[i] = units[i] if i < n else held[i - n]
                    if steps >= 20 + 10 * k:
                        break
                    if pivots > 2 * _REFRESHED + 2 * k and not is_boxed:
                        for i in range(width):
                            starts[a, i] = kept[i] if i < before else -1
                        cursor = 0
                        continue
                    # 5. The unit that gains most, where there is room.
                    best = ROUNDING * value
                    for unit in range(U if before < k and q > 1 else 0):
                        if is_member[unit]:
                            continue
                        for o in range(q):
                            for b in range(q):
                                M[o, b] = s[b, unit * q + o]
                            for y in range(m):
                                R[o, y] = r[y, unit * q + o]
                        gain = _block_gain(M, R, q, m)
                        if gain > best:
                            best, into = gain, unit
                    # 6. The best exchange. Slot -1 is an empty place, where there is room; from n
                    # on they are columns that are held. One column too many enters as long as
                    # another than it then costs least and leaves, which is an exchange for P
                    # prices in place of n P.
                    is_room = before < k or not (is_stalled or is_boxed or n == units.size)
                    for i in range(-1 if is_room and q == 1 else 0, before if into < 0 else 0):
                        if entering >= 0 and slot < 0:
                            break
                        cost, scale = 0.0, 0.0
                        if q > 1:  # L L' = B_ii, T = L^-1 Q_i, Y = L^-1 w_i
                            is_definite = True
                            for o in range(q):
                                for b in range(o + 1):
                                    t = B[i * q + o, i * q + b]
                                    for d in range(b):
                                        t -= L[o, d] * L[b, d]
                                    if o == b:
                                        is_definite = is_definite and t > 0.0
                                        L[o, o] = np.sqrt(max(t, 1e-300))
                                    else:
                                        L[o, b] = t / L[b, b]
                                for y in range(m):
                                    t = w[i * q + o, y]
                                    for b in range(o):
                                        t -= L[o, b] * Y[b, y]
                                    Y[o, y] = t / L[o, o]
                                    cost += Y[o, y] * Y[o, y]
                                for x in range(P):
                                    T[o, x] = Q[i * q + o, x]
                                for b in range(o):
                                    for x in range(P):
                                        T[o, x] -= L[o, b] * T[b, x]
                                for x in range(P):
                                    T[o, x] /= L[o, o]
                            for unit in range(U if is_definite else 0):
                                if is_member[unit]:
                                    continue
                                for o in range(q):
                                    for b in range(q):
                                        t = s[b, unit * q + o]
                                        for d in range(q):
                                            t += T[d, unit * q + o] * T[d, unit * q + b]
                                        M[o, b] = t
                                    for y in range(m):
                                        t = r[y, unit * q + o]
                                        for d in range(q):
                                            t += T[d, unit * q + o] * Y[d, y]
                                        R[o, y] = t
                                gain = _block_gain(M, R, q, m) - cost
                                if gain > best:
                                    best, slot, entering = gain, i, unit
                            continue
                        if i < 0:
                            for y in range(m):
                                z[y] = 0.0
                            for x in range(P):
                                v[x] = 0.0
                        elif i < n:
                            scale = 1.0 / B[i, i]
                            for y in range(m):
                                z[y] = w[i, y] * scale
                                cost += w[i, y] * z[y]
                            for x in range(P):
                                v[x] = Q[i, x]
                        else:
                            j = held[i - n]
                            z[0] = ends[i - n]
                            cost = z[0] * (2.0 * r[0, j] + z[0] * s[0, j])
                            for x in range(P):
                                v[x] = store[slots[j], x]
                            for o in range(n):
                                t = store[slots[j], units[o]]
                                for x in range(P):
                                    v[x] -= t * Q[o, x]
                        if is_boxed:
                            for x in range(P):
                                rest = s[0, x] + v[x] * v[x] * scale
                                if rest > GUARD and not is_member[x] and not is_closed[x]:
                                    t = r[0, x] + v[x] * z[0]
                                    step = min(max(t / rest, low[x]), high[x])
                                    gain = step * (2.0 * t - step * rest) - cost
                                    if gain > best:
                                        best, slot, entering = gain, i, x
                            continue
                        hits = 0
                        if m == 1:  # in one pass
                            pull = z[0]
                            for x in range(P):
                                t = r[0, x] + v[x] * pull
                                gains[x] = t * t
                                rest = s[0, x] + v[x] * v[x] * scale
                                hits += 1 if gains[x] > (cost + best) * rest else 0
                        else:
                            for x in range(P):
                                gains[x] = 0.0
                            for y in range(m):
                                for x in range(P):
                                    t = r[y, x] + v[x] * z[y]
                                    gains[x] += t * t
                            for x in range(P):
                                rest = s[0, x] + v[x] * v[x] * scale
                                hits += 1 if gains[x] > (cost + best) * rest else 0
                        for x in range(P if hits > 0 else 0):
                            rest = s[0, x] + v[x] * v[x] * scale
                            is_open = rest > GUARD and not is_member[x]
                            if is_open and gains[x] > (cost + best) * rest:
                                best, slot, entering = gains[x] / rest - cost, i, x
                    if entering >= 0 and slot < 0:
                        into, entering = entering, -1
                    if into < 0 and entering < 0:
                        break
                    extra = into if before == k else -1
                    unit = into if into >= 0 else entering
                    for o in range(q):
                        if slots[unit * q + o] < 0:
                            place[1] = unit
                    if place[1] >= 0:
                        place[2], place[3] = n, count
                        return
                    steps += 1
                    is_tried, is_settled = True, False
                    is_closed[unit] = is_boxed
                    if slot >= n:
                        i = slot - n
                        shifting, shift, slot = held[i], -ends[i], -1
                        held[i], ends[i] = held[count - 1], ends[count - 1]
                        count -= 1
            # 7. A held column moves by ``shift``, the free ones minimised over.
            if shifting >= 0 and slot < 0:
                for x in range(P):
                    v[x] = store[slots[shifting], x]
                for i in range(n):
                    t = store[slots[shifting], units[i]]
                    for x in range(P):
                        v[x] -= t * Q[i, x]
                for i in range(n):
                    w[i, 0] -= shift * Q[i, shifting]
                for x in range(P):
                    r[0, x] -= shift * v[x]
                is_member[shifting] = count > 0 and held[count - 1] == shifting
                shifting = -1
                if into < 0:
                    continue
            # 8. The unit at ``slot`` leaves, or unit ``into`` enters: a pivot for each column.
            N, sign = n * q, -1.0 if slot >= 0 else 1.0
            for o in range(q):
                if slot >= 0:
                    i = slot * q + o
                    pivot, j = B[i, i], -1
                    for x in range(P):
                        v[x] = Q[i, x]
                    for b in range(N):
                        u[b] = B[b, i]
                    for y in range(m):
                        z[y] = w[i, y]
                else:
                    j = into * q + o
                    units[n] = into
                    for x in range(P):
                        v[x] = store[slots[j], x]
                    for i in range(N):
                        t = store[slots[j], units[i // q] * q + i % q]
                        if t != 0.0:
                            for x in range(P):
                                v[x] -= t * Q[i, x]
                    pivot = max(v[j], 1e-14)
                    for i in range(N):
                        u[i] = Q[i, j]
                    for y in range(m):
                        z[y] = r[y, j]
                for i in range(N):
                    t = u[i] / pivot
                    if t != 0.0:
                        for x in range(P):
                            Q[i, x] -= t * v[x]
                        for y in range(m):
                            w[i, y] -= t * z[y]
                        t *= sign
                        for b in range(N):
                            B[i, b] += t * u[b]
                for y in range(m):
                    t = sign * z[y] / pivot
                    for x in range(P):
                        r[y, x] -= t * v[x]
                if q == 1:
                    t = sign / pivot
                    for x in range(P):
                        s[0, x] -= t * v[x] * v[x]
                else:
                    for x in range(P):
                        t = sign * v[x] / pivot
                        for b in range(q):
                            s[b, x] -= t * v[x - x % q + b]
                if slot < 0:
                    for i in range(N):
                        B[i, N] = -u[i] / pivot
                        B[N, i] = B[i, N]
                    B[N, N] = 1.0 / pivot
                    for y in range(m):
                        w[N, y] = z[y] / pivot
                    for x in range(P):
                        Q[N, x] = v[x] / pivot
                    N += 1
            if slot < 0:
                is_member[into] = True
                n += 1
                continue
            # 9. The last unit takes the place of the one that left.
            pivots += 1
            is_member[units[slot]] = False
            n -= 1
            for o in range(q if slot < n else 0):
                i, j = slot * q + o, n * q + o
                for x in range(P):
                    Q[i, x] = Q[j, x]
                for y in range(m):
                    w[i, y] = w[j, y]
                for b in range(N):
                    B[i, b] = B[j, b]
                for b in range(N):
                    B[b, i] = B[b, j]
            units[slot] = units[n]
        for i in range(width):
            starts[a, i] = kept[i] if i < before else -1
        values[a] = value
    place[0] = starts.shape[0]
