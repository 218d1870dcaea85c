r"""Tangents at better points: Newton steps on the perspective relaxation of a part.

With curvatures :math:`d` taken out, :math:`Q = M - \mathrm{diag}(d)`, the relaxation is

.. math:: \min_y \tfrac12 y^T Q y - g^T y + \min_{0 \le z \le 1,\, \sum z \le k}
          \tfrac12 \sum_j d_j y_j^2 / z_j .

At its minimum, with the multiplier :math:`t^2 / 2` of the budget, units with
:math:`\sqrt{d} |y| \ge t` are full, those below are linear and have slopes of the size
:math:`\sqrt{d}\, t`, and the slopes of the others are smaller. Given who is what, ``y`` and ``t``
solve linear equations. What a step proves is the tangent where it ends, so nothing here need be
exact.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from sparsemodel.certificates.short_proofs.part import Part, Tangent
from sparsemodel.interfaces import FloatArray, IntArray

_SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625)
"""Of a step; the one that ends lowest is taken."""

_CLEAR = 0.1
"""Share of what is missing that a bound may still gain: then the part is divided."""


def relaxed(part: Part, cutoff: float, steps: int) -> Tangent:
    """Return the best tangent of at most so many steps from the point of a part.

    The part's point becomes the one where that tangent is taken.
    """
    curvature = part.curvature
    if curvature is None:
        raise ValueError("a relaxation needs curvature")
    now = _Relaxation(part, curvature)
    best, part.point = now.tangent, now.point
    for step in range(steps):
        if best.bound >= cutoff:
            break
        here = now.value
        if here < cutoff and here - best.bound <= _CLEAR * (cutoff - best.bound):
            break
        now.step(first=step == 0)
        if now.tangent.bound > best.bound:
            best, part.point = now.tangent, now.point
    return best


@final
class _Relaxation:
    """A point of the relaxation, and what is known there."""

    def __init__(self, part: Part, curvature: FloatArray) -> None:
        self._part, self._curvature, self._root = part, curvature, np.sqrt(curvature)
        self._t = 0.0
        self._move(part.point)

    def _move(self, point: FloatArray) -> None:
        part, self.point = self._part, point
        on = np.flatnonzero(point)
        values = point[on]
        self._product = part.product(on, values, self._curvature)
        self.tangent = part.tangent(on, values, self._curvature, self._product)
        self._inner = part.constant
        self._inner += float(values @ (0.5 * self._product[on] - part.linear[on]))
        paid, self._budget = _perspective(np.abs(values) * self._root[on], part.k)
        self.value = self._inner + paid

    def step(self, *, first: bool) -> None:
        """Go to the minimum by Newton's method as far as the value falls, or else by a gradient."""
        gains, order, k = self.tangent.gains, self.tangent.order, self._part.k
        if first:
            self._t = math.sqrt(float(gains[order[k - 1]] + gains[order[k]]))
        elif not self._t > 0.0:
            self._t = self._budget
        found = self._newton()
        if found is None or not self._along(*found):
            self._proximal()

    def _newton(self) -> tuple[IntArray, FloatArray, float] | None:
        """Return units that change, by how much, and the next ``t``; None without a step."""
        part, root, t = self._part, self._root, self._t
        size, slopes = np.abs(self.point) * root, self.tangent.slopes
        full = size >= t
        linear = np.flatnonzero(~full & ((size > 0.0) | (np.abs(slopes) > root * t)))
        if not linear.size:
            return None
        some = np.concatenate([np.flatnonzero(full), linear])
        count, at = some.size - linear.size, self.point[linear]
        signs = np.where(at != 0.0, np.sign(at), -np.sign(slopes[linear]))
        system = np.zeros((some.size + 1, some.size + 1))
        system[:-1, :-1] = part.matrix[some[:, None], some]
        places = np.arange(count, some.size)
        system[places, places] -= self._curvature[linear]
        system[places, -1] = system[-1, places] = signs * root[linear]
        system[-1, -1] = float(count - part.k)
        try:
            found = np.linalg.solve(system, np.append(part.linear[some], 0.0))
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.isfinite(found)):
            return None
        return some, found[:-1] - self.point[some], max(float(found[-1]), 0.0)

    def _along(self, some: IntArray, change: FloatArray, level: float) -> bool:
        """Go the share of a step that ends lowest; return whether that is lower than here."""
        part, root, at = self._part, self._root[some], self.point[some]
        moved = part.product(some, change, self._curvature)[some]
        slope = float(change @ (self._product[some] - part.linear[some]))
        curve = float(change @ moved)
        best, least = 0.0, self.value
        for share in _SHARES:
            value = self._inner + share * slope + 0.5 * share * share * curve
            value += _perspective(np.abs(at + share * change) * root, part.k)[0]
            if value < least:
                best, least = share, value
            elif best > 0.0:
                break
        if not best > 0.0:
            return False
        point = self.point.copy()
        point[some] += best * change
        self._t += best * (level - self._t)
        self._move(point)
        return True

    def _proximal(self) -> None:
        """Make a step along the gradient, with what units pay at this ``t``."""
        part, root, t = self._part, self._root, self._t
        steep = math.sqrt(float(np.square(part.matrix).sum()))
        at = self.point - (self._product - part.linear) / steep
        size = np.abs(at)
        lower = np.maximum(size - t * root / steep, 0.0)
        width = t / root
        full = np.maximum(size / (1.0 + self._curvature / steep), width)
        self._move(np.where(lower <= width, lower, full) * np.sign(at))
        self._t = self._budget if self._budget > 0.0 else 0.8 * t


def _perspective(sizes: FloatArray, k: int) -> tuple[float, float]:
    """Return the least of half the squares over ``z`` in the budget, and its ``t``."""
    if sizes.size <= k:
        return 0.5 * float(sizes @ sizes), 0.0
    sizes = np.sort(sizes)[::-1]
    rest = np.cumsum(sizes[::-1])[::-1]
    levels = rest[:k] / np.arange(k, 0, -1)
    full = int(np.argmax(sizes[:k] <= levels * (1.0 + 1e-14)))
    t = float(levels[full])
    return 0.5 * (float(sizes[:full] @ sizes[:full]) + t * float(rest[full])), t
