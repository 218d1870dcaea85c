"""Prices of exchanges of coordinates with bounds, some of which hold members of the support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import BoolArray, Box, FloatArray, IntArray, Objective, Point
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges


@final
@dataclass(frozen=True, slots=True)
class BoundedPrices:
    """What removals cost, and what exchanges and insertions gain, in units of twice the objective.

    Exact for a quadratic as long as no other coordinate reaches a bound or leaves one.
    """

    members: IntArray
    removals: FloatArray
    exchanges: FloatArray
    """``(k, p)``, in the order of the members."""
    insertions: FloatArray


def pulls(objective: Objective, point: Point, gradient: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the gradient also where bounds block it, and the counted ones that they hold."""
    full, counted = objective.gradient(point), objective.cardinality.counted
    full = full if point.normal is None else full + point.normal
    ends = cast("Box", objective.form.box).chosen
    below, above = point.x <= ends.lower, point.x >= ends.upper
    held = counted & ((below & (full > 0.0)) | (above & (full < 0.0)))
    return np.where(counted, full, gradient), held


def bounded_prices(search: Exchanges, x: FloatArray, box: Box, fixed: IntArray) -> BoundedPrices:
    r"""Return the prices where the members of ``search`` move freely and ``fixed`` ones do not.

    Without a fixed member ``a`` at ``b`` the others take over what they can of its column: with
    ``r`` and ``s`` of :class:`Exchanges`, and ``t`` what they leave of its row of the Hessian, that
    costs :math:`2 b r_a + b^2 s_a`, and ``r`` becomes :math:`r + b t`. Steps of what enters end at
    its bounds.
    """
    scale = search.rows.scale
    useful = scale > 0.0
    lower, upper, b = np.zeros_like(scale), np.zeros_like(scale), np.zeros_like(scale)
    ends = box.chosen
    np.divide(ends.lower, scale, out=lower, where=useful)
    np.divide(ends.upper, scale, out=upper, where=useful)
    np.divide(x, scale, out=b, where=useful)
    own = np.diag(search.inverse[0])
    w, q, r, s = search.w[0, :, 0], search.q[0], search.r[0, 0], search.s[0]
    slopes, lefts, costs = [r + q * (w / own)[:, None]], [s + np.square(q) / own[:, None]], []
    if fixed.size:
        row, b = search.rows.rows(fixed), b[fixed]
        row = row - row[:, search.members[0]] @ q
        slopes.append(r + b[:, None] * row)
        lefts.append(np.broadcast_to(s, row.shape))
        costs.append((2.0 * r[fixed] + b * s[fixed]) * b)
    slope, left = np.vstack([*slopes, r]), np.vstack([*lefts, s])
    able = np.isfinite(left) & (left > search.guard)
    left = np.where(able, left, 1.0)
    step = np.clip(np.where(able, slope, 0.0) / left, lower, upper)
    gains = (2.0 * slope - left * step) * step
    removals = np.concatenate([search.removals()[0], *costs])
    gains[:-1] -= removals[:, None]
    gains[~able] = -np.inf
    members = np.concatenate([search.members[0], fixed])
    return BoundedPrices(members, removals, gains[:-1], gains[-1])
