"""What is read off tables of numbers, one for each support."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray


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
