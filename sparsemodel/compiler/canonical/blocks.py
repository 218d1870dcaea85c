"""Designs of sums of blocks: ``A @ u + B @ v[rows] + c``."""

from __future__ import annotations

import numpy as np

from sparsemodel.compiler.canonical.declaration import Block
from sparsemodel.compiler.canonical.layout import Layout
from sparsemodel.designs import OnesDesign, SparseDesign, StackedDesign, TransformedDesign
from sparsemodel.interfaces import DataError, Design, IntArray


def stacked(blocks: tuple[Block, ...], layout: Layout, n: int) -> Design:
    """Return the design of a sum of blocks, on all coordinates, with ``n`` rows."""
    placed: list[tuple[IntArray, Design]] = []
    for block in blocks:
        index = layout.rows(block.variable, block.rows)
        placed.append((index, _block_design(block.design, index, n, block.factor)))
    first = placed[0]
    if len(placed) == 1 and first[0].size == layout.size:
        return first[1]
    return StackedDesign(n, layout.size, tuple(placed))


def _block_design(design: Design | None, index: IntArray, n: int, factor: float) -> Design:
    if design is None:
        if index.size == n:
            design = OnesDesign(1) if n == 1 else SparseDesign.identity(n)
        elif index.size == 1:
            design = OnesDesign(n)
        else:
            raise DataError(
                f"A prediction adds {index.size} entries of a variable to {n} observations; "
                "multiply them by a matrix with one row per observation."
            )
    if factor == 1.0:
        return design
    return TransformedDesign(design, scale=np.full(index.size, factor))
