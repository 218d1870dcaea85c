"""Units of a support: which are in it, and which would lower the objective most."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import (
    Cardinality,
    FloatArray,
    IntArray,
    Objective,
    Point,
    coordinate_scores,
)


def support_units(cardinality: Cardinality, support: IntArray) -> IntArray:
    """Return the sorted counted units that have a coordinate in ``support``."""
    inside = np.zeros(cardinality.size)
    inside[support] = 1.0
    return np.flatnonzero(cardinality.unit_scores(inside))


def descent_gradient(objective: Objective, at: Point, *, for_ranking: bool = False) -> FloatArray:
    """Return the gradient with zeros where a coordinate at its bound cannot move against it.

    Where constraints beside bounds hold the point, their multipliers are added (``at.normal``).
    Without constraints this is the gradient itself (not a copy). ``for_ranking`` allows errors
    that do not change which entries are large (:meth:`Objective.ranking_gradient`).
    """
    g = objective.ranking_gradient(at) if for_ranking else objective.gradient(at)
    if at.normal is not None:
        g = g + at.normal
    box = objective.form.box
    if box is None:
        return g
    blocked = ((g > 0.0) & (at.x <= box.lower)) | ((g < 0.0) & (at.x >= box.upper))
    return np.where(blocked, 0.0, g)


def gradient_scores(
    objective: Objective,
    at: Point,
    diagonal: FloatArray | None = None,
    *,
    for_ranking: bool = False,
) -> FloatArray:
    r"""Return :math:`\sum_{i \in u} g_i^2 / (2 h_i)` for every unit ``u``.

    It is the decrease that a Newton step in one coordinate promises (exact for a quadratic in
    orthogonal coordinates), and half the squared correlation of orthogonal matching pursuit with
    normalised columns. ``diagonal`` holds ``h``, shape ``(p,)``; ones when None. Coordinates
    that a bound blocks, and those with ``h = 0``, score 0.
    """
    squares = coordinate_scores(descent_gradient(objective, at, for_ranking=for_ranking))
    if diagonal is not None:
        scored = np.zeros_like(squares)
        np.divide(squares, diagonal, out=scored, where=diagonal > 0.0)
        squares = scored
    return 0.5 * objective.cardinality.unit_scores(squares)


def insertion_scores(
    objective: Objective,
    at: Point,
    diagonal: FloatArray | None = None,
    *,
    for_ranking: bool = False,
) -> FloatArray:
    """Return :func:`gradient_scores` with 0 for the units in the support of ``at``."""
    scores = gradient_scores(objective, at, diagonal, for_ranking=for_ranking)
    scores[support_units(objective.cardinality, at.support)] = 0.0
    return scores
