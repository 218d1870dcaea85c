"""Counted units that their bounds keep away from zero: they are in every support."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsemodel.compiler.layout import Layout
from sparsemodel.interfaces import Box, Cardinality, InfeasibleError


def without_forced(
    sparsity: Cardinality, box: Box | None, layout: Layout
) -> tuple[Cardinality, int]:
    """Return the cardinality with forced units made free, and how many there are.

    Zero is within the bounds of every unit that is still counted; ``k`` counts those alone.

    Raises
    ------
    InfeasibleError
        When more units are forced than may be nonzero.
    """
    if box is None:
        return sparsity, 0
    away = (box.lower > 0.0) | (box.upper < 0.0)
    away = (away if away.ndim == 1 else away.any(axis=1)) & sparsity.counted
    if not away.any():
        return sparsity, 0
    units = np.flatnonzero(sparsity.unit_scores(away.astype(np.float64)))
    if units.size > sparsity.k:
        name = layout.names()[int(np.argmax(away))]
        raise InfeasibleError(
            f"The bounds keep {units.size} entries away from zero ({name} is the first), and at "
            f"most {sparsity.k} may be nonzero."
        )
    free = sparsity.coordinates(units)
    k = sparsity.k - int(units.size)
    groups = sparsity.groups
    if groups is not None:
        mask = np.ones(sparsity.size, dtype=bool)
        mask[free] = False
        codes = np.unique(groups[mask], return_inverse=True)[1]
        groups = np.full(sparsity.size, -1, dtype=np.intp)
        groups[mask] = codes
    return replace(sparsity, k=k, free=free, groups=groups), int(units.size)


__all__ = ["without_forced"]
