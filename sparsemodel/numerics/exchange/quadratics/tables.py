"""What is read off tables of numbers, one for each support."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray

_NEARLY, _SLACK, _TINY = 1e-6, 1e-9, 1e-300
"""Share of a column below which no bound is put on its gains, what a bound is raised by for
rounding, and what keeps a division from zero."""


def largest(gains: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return where each of several tables is largest, and how large."""
    flat = gains.reshape(len(gains), -1)
    place = np.argmax(flat, axis=1)
    slots, columns = np.divmod(place, gains.shape[2])
    return slots, columns, flat[np.arange(len(flat)), place]


def squares(w: FloatArray) -> FloatArray:
    """Return sums of squares over the last axis."""
    alone = w.shape[-1] == 1
    return np.square(w[..., 0]) if alone else np.asarray(np.einsum("...m,...m->...", w, w))


def heights(r: FloatArray) -> FloatArray:
    """Return sums of squares over the columns of a matrix variable, ``(R, p)``."""
    return np.square(r[:, 0]) if r.shape[1] == 1 else np.asarray(np.einsum("rmj,rmj->rj", r, r))


def ceilings_of(costs: FloatArray, r: FloatArray, s: FloatArray, d: FloatArray) -> FloatArray:
    r"""Return bounds on what each coordinate gains in place of any member, ``(R, p)``.

    With ``x`` the root of a removal's cost and :math:`y = |Q_{ij}| / \sqrt{B_{ii}}`, which is
    at most the root of what the support explains of ``j``, the gain is at most
    :math:`(|r_j| + x y)^2 / (s_j + y^2) - x^2`; that falls in ``x`` and rises in ``y`` up to
    :math:`x s_j / |r_j|`. Of members, of which infinitely much is left, no more than zero.

    Parameters
    ----------
    costs
        Of removing each member, ``(R, k)``.
    r, s, d
        Negative gradients ``(R, m, p)``, what the supports leave of the curvatures ``(R, p)``, and
        these ``(p,)``.
    """
    x = np.sqrt(costs.min(axis=1))[:, None]
    size = np.sqrt(heights(r))
    y = d - s
    np.sqrt(np.maximum(y, 0.0, out=y), out=y)
    steepest = np.maximum(x, _TINY) * s
    steepest /= np.maximum(size, _TINY)
    np.minimum(y, steepest, out=y)
    size += x * y
    np.square(size, out=size)
    np.square(y, out=y)
    y += s
    size /= np.maximum(y, _TINY, out=y)
    size -= (1.0 - _SLACK) * np.square(x)
    if s.size and s.min() <= _NEARLY:  # rounding decides there
        size[s <= _NEARLY] = np.inf
    return np.asarray(size)
