"""Gram matrices of designs made of others, formed where the entries are."""

from __future__ import annotations

import numpy as np

from sparsemodel.designs.remote.foreign import ForeignDesign, adjoint
from sparsemodel.interfaces import Design, FloatArray, IntArray
from sparsemodel.interfaces.numeric import viewed

Blocks = tuple[tuple[IntArray, Design], ...]
"""Designs with the coordinates that they act on."""


def gram_of_blocks(blocks: Blocks, size: int, h: FloatArray | None) -> FloatArray:
    """Return ``A.T @ diag(h) @ A`` for blocks on ``size`` coordinates in all."""
    out = np.zeros((size, size))
    for number, (index, design) in enumerate(blocks):
        place = viewed(index)
        if isinstance(place, slice):
            out[place, place] += design.gram(h)
        else:
            out[np.ix_(index, index)] += design.gram(h)
        for other, second in blocks[:number]:
            # Of each pair only the narrower one is made dense (the column of ones, often).
            narrow, wide = sorted(((index, design), (other, second)), key=lambda b: b[0].size)
            cross = adjoint(wide[1])(_weighted(narrow[1].to_array(), h))
            out[np.ix_(wide[0], narrow[0])] += cross
            out[np.ix_(narrow[0], wide[0])] += cross.T
    return out


def rows_of_blocks(blocks: Blocks, size: int, rows: IntArray, h: FloatArray | None) -> FloatArray:
    """Return rows of :func:`gram_of_blocks`."""
    out = np.zeros((rows.size, size))
    for number, (index, design) in enumerate(blocks):
        place = np.flatnonzero(np.isin(rows, index))
        own = np.searchsorted(index, rows[place])
        for at, (other, second) in enumerate(blocks if place.size else ()):
            if at == number:
                part = design.gram_rows(own, h)
            elif other.size < place.size:  # the narrower one is made dense
                part = adjoint(design)(_weighted(second.to_array(), h))[own]
            else:
                part = adjoint(second)(_weighted(design.restrict(own).to_array(), h)).T
            out[np.ix_(place, other)] += part
    return out


def _weighted(array: FloatArray, h: FloatArray | None) -> FloatArray:
    return array if h is None else h[:, None] * array


def rows_of_scaled(
    design: ForeignDesign,
    rows: IntArray | None,
    h: FloatArray | None,
    means: FloatArray | None,
    scale: FloatArray | None,
    select: IntArray | None = None,
) -> FloatArray:
    """Return rows of ``A.T @ diag(h) @ A``, None for all, of chosen, centred, scaled columns."""
    if select is None:
        out = design.gram_rows(rows, h, means)
    else:
        shift = np.zeros(design.shape[1])
        shift[select] = 0.0 if means is None else means
        out = design.gram_rows(select if rows is None else select[rows], h, shift)[:, select]
    if scale is not None:
        out *= (scale if rows is None else scale[rows])[:, None]
        out *= scale
    return out


def centred(block: FloatArray, means: FloatArray, *, exact: bool) -> FloatArray:
    """Return rows without the means; zero for constant columns that products left rounding of.

    ``exact`` entries are data, of which means may be exact.
    """
    out = block - means
    if not exact:
        noise = 4.0 * np.finfo(np.float64).eps * len(out) * np.abs(means)
        out[:, np.all(np.abs(out) <= noise, axis=0)] = 0.0
    return out


def without_means(
    gram: FloatArray, design: Design, means: FloatArray, h: FloatArray | None
) -> None:
    """Make ``A.T @ diag(h) @ A`` in place that of ``A - means``, for a design of mostly zeros.

    What cancels is a fraction of the order of the density.
    """
    weights = np.ones(design.shape[0]) if h is None else h
    sums = design.rmatvec_in_double(weights)
    shift = np.outer(means, sums - 0.5 * weights.sum() * means)
    gram -= shift
    gram -= shift.T
