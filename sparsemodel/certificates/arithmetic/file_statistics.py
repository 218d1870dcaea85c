"""Fingerprints and column norms of files, computed while their rows are read for predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.readings import known, read_once, remembered
from sparsemodel.certificates.arithmetic.rounding import gamma
from sparsemodel.certificates.statements.fingerprint import ROWS, Digest
from sparsemodel.designs import ChunkedDesign, StackedDesign
from sparsemodel.interfaces import Design, FloatArray, IntArray


def norm_bounds(squares: FloatArray, rows: int) -> FloatArray:
    """Return upper bounds on the norms of columns from computed sums of their squares."""
    # Squares of entries below 1e-154 underflow; the last term is more than they can hide.
    return np.asarray(np.sqrt(squares) * (1.0 + gamma(rows + 16)) + 1e-150 * np.sqrt(rows))


def rows_with_statistics(design: Design, size: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield about ``size`` rows at a time, from the first to the last.

    After the last, the fingerprints and the column norms of files among them are remembered.
    """
    statistics = [_Statistics(index, block) for index, block in _files(design)]
    for rows, entries in design.row_blocks(max(ROWS, size // ROWS * ROWS)):
        for one in statistics:
            one.add(entries)
        yield rows, entries
    for one in statistics:
        one.keep()


def _files(design: Design) -> list[tuple[IntArray, ChunkedDesign]]:
    """Return the files whose fingerprint or norms are not known, with their columns."""
    blocks: tuple[tuple[IntArray, Design], ...] = ((np.arange(design.shape[1]), design),)
    if isinstance(design, StackedDesign):
        blocks = () if design.overlapping else design.blocks
    return [
        (index, block)
        for index, block in blocks
        if isinstance(block, ChunkedDesign)
        and not (known(block, "fingerprint") and known(block, "norms"))
    ]


@final
class _Statistics:
    """The fingerprint and the column norms of a file whose rows come in order."""

    def __init__(self, index: IntArray, design: ChunkedDesign) -> None:
        self._index, self._design, self._stamp = index, design, design.stamp
        self._digest, self._squares = Digest(design.shape), np.zeros(design.shape[1])

    def add(self, entries: FloatArray) -> None:
        """Add the next rows."""
        whole = self._index.size == entries.shape[1]
        own = entries if whole else entries[:, self._index]
        self._digest.add(own)
        self._squares += np.einsum("ij,ij->j", own, own)

    def keep(self) -> None:
        """Remember the fingerprint and the norms, unless the file changed while it was read."""
        if self._design.stamp != self._stamp:
            return
        norms = norm_bounds(self._squares, self._design.shape[0])
        remembered(self._design, "fingerprint", self._digest.text)
        read_once(self._design, "norms", None, lambda: (norms,))
