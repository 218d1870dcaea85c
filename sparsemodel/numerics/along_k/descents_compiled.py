"""Descents by exchanges from many supports, one after the other; compiled.

A support is filled by the coordinates that gain most, then the best exchange is made until none
gains. With ``Q``, ``r``, ``s`` as in :mod:`pricing`, all three are kept for one support at a time:
they stay in the cache, and a search takes a tenth to a thirtieth of the time it takes in NumPy.
"""

from __future__ import annotations

import numpy as np

from sparsemodel import loading

_njit = loading.numba().njit(cache=True, error_model="numpy", nogil=True)


@_njit
def enter(row, members, m, slot, j, Q, B, w, r, s, v, q):  # type: ignore[no-untyped-def]
    """Put ``j``, whose row is ``row``, at a slot beside the others of the first ``m``."""
    p = r.size
    for x in range(p):
        v[x] = row[x]
    for i in range(m):
        if i != slot:
            t = row[members[i]]
            for x in range(p):
                v[x] -= t * Q[i, x]
    pivot = v[j]
    step = r[j] / pivot
    for i in range(m):
        if i != slot:
            q[i] = Q[i, j]
            t = q[i] / pivot
            for x in range(p):
                Q[i, x] -= t * v[x]
            w[i] -= q[i] * step
    q[slot] = -1.0
    for i in range(m):
        for other in range(m):
            B[i, other] += q[i] * q[other] / pivot
    w[slot] = step
    for x in range(p):
        share = v[x] / pivot
        Q[slot, x] = share
        r[x] -= step * v[x]
        s[x] -= share * v[x]
    s[j] = np.inf
    members[slot] = j


@_njit
def leave(members, m, slot, Q, B, w, r, s):  # type: ignore[no-untyped-def]
    """Take out the member at a slot of the first ``m``."""
    p = r.size
    own = B[slot, slot]
    lost = w[slot] / own
    s[members[slot]] = 0.0
    for x in range(p):
        t = Q[slot, x]
        r[x] += lost * t
        s[x] += t * t / own
    for i in range(m):
        if i != slot:
            t = B[i, slot] / own
            for x in range(p):
                Q[i, x] -= t * Q[slot, x]
            w[i] -= t * w[slot]
            for other in range(m):
                if other != slot:
                    B[i, other] -= t * B[slot, other]
    for i in range(m):
        B[i, slot] = 0.0
        B[slot, i] = 0.0


@_njit
def most_gaining(r, s, guard):  # type: ignore[no-untyped-def]
    """Return the coordinate that gains most if it is added, -1 where none gains anything."""
    best, j = 0.0, -1
    for x in range(r.size):
        if s[x] > guard and r[x] * r[x] > best * s[x]:
            best, j = r[x] * r[x] / s[x], x
    return j


@_njit
def best_exchange(Q, B, w, r, s, explained, guard, limits):  # type: ignore[no-untyped-def]
    """Return slot and coordinate of the best exchange, -1 where none gains enough.

    The first loop over a row only counts what may be better than the best so far, without a
    division; where something may, the row is looked at again.
    """
    slot, into, best = -1, -1, limits[0] * explained
    for i in range(w.size):
        inverse, moved, cost = 1.0 / B[i, i], w[i] / B[i, i], w[i] * w[i] / B[i, i]
        needed, hits = cost + max(best, limits[1] * cost), 0
        for x in range(r.size):
            t = Q[i, x]
            z = r[x] + t * moved
            hits += 1 if z * z > needed * (s[x] + t * t * inverse) else 0
        if hits > 0:
            for x in range(r.size):
                t = Q[i, x]
                left = s[x] + t * t * inverse
                z = r[x] + t * moved
                if guard < left < np.inf and z * z > needed * left:
                    needed = z * z / left
                    best, slot, into = needed - cost, i, x
    return slot, into


@_njit
def descended(store, slots, c, d, guard, limits, supports, values, place):  # type: ignore[no-untyped-def]
    """Search from ``supports[place[0]]`` on; where a row is missing stop, its number in ``place``.

    What is known of the support then is in ``supports``, and the search goes on from it.
    """
    count, k = supports.shape
    p = c.size
    Q, B, w, q = np.empty((k, p)), np.empty((k, k)), np.empty(k), np.empty(k)
    r, s, v, members = np.empty(p), np.empty(p), np.empty(p), np.empty(k, dtype=np.intp)
    for n in range(place[0], count):
        place[0] = n
        B[:] = 0.0
        for x in range(p):
            r[x], s[x] = c[x], d[x] if d[x] > 0.0 else np.inf
        m = n - n  # a number like others: for the constant 0 one part would be compiled twice
        for i in range(k):
            j = supports[n, i]
            if j >= 0 and guard < s[j] < np.inf:
                enter(store[slots[j]], members, m + 1, m, j, Q, B, w, r, s, v, q)
                m += 1
        for _ in range(10 + 5 * k):
            slot, into = m, -1
            if m < k:
                into = most_gaining(r, s, guard)
            else:
                explained = 0.0
                for i in range(k):
                    explained += w[i] * c[members[i]]
                slot, into = best_exchange(Q, B, w, r, s, explained, guard, limits)
            if into < 0:
                break
            if slots[into] < 0:
                for i in range(k):
                    supports[n, i] = members[i] if i < m else -1
                place[1] = into
                return
            if m < k:
                m += 1
            else:
                leave(members, k, slot, Q, B, w, r, s)
            enter(store[slots[into]], members, m, slot, into, Q, B, w, r, s, v, q)
        values[n] = 0.0
        if m == k:
            for i in range(k):
                values[n] += w[i] * c[members[i]]
                supports[n, i] = members[i]
    place[0] = count
