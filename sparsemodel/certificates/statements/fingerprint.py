"""A fingerprint of the data: equal numbers give equal hashes, however they are stored.

Dense or sparse, float32 or float64, C or Fortran order, CSR or CSC: what is hashed is the sequence
of float64 entries row by row. Blocks of :data:`ROWS` rows are written either as they are (no zero
among them) or as counts, columns and values of the entries that are not zero; which of the two
depends on the entries alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from sparsemodel.designs import DenseDesign, OnesDesign, SparseDesign, StackedDesign
from sparsemodel.interfaces import Access, Design, FloatArray, IntArray

ROWS = 256
_PROBES = 4
PROBE_TOLERANCE = 1e-8


def array_hash(array: FloatArray | None) -> str:
    """Return the SHA-256 of the shape and the float64 entries of an array (row-major)."""
    digest = hashlib.sha256()
    if array is None:
        return "none"
    values = np.ascontiguousarray(array, dtype="<f8") + 0.0  # -0.0 is 0.0
    digest.update(repr(values.shape).encode())
    digest.update(values.tobytes())
    return digest.hexdigest()


def design_fingerprint(design: Design) -> str:
    """Return ``"sha256:..."`` of the entries, or probes of a matrix whose entries are not known.

    The fingerprint of a matrix-free design is four numbers :math:`r^T A x` for fixed pseudo-random
    ``r`` and ``x``, compared up to ``PROBE_TOLERANCE``. O(n p) or O(nonzeros); one pass.
    """
    if isinstance(design, StackedDesign):
        return combined(design, block_fingerprints(design))
    if isinstance(design, OnesDesign):
        return f"ones:{design.shape[0]}"
    if isinstance(design, SparseDesign) or Access.ROWS in design.access:
        digest = hashlib.sha256(repr(tuple(int(s) for s in design.shape)).encode())
        for counts, columns, values in _blocks(design):
            rows = counts.size
            if values.size == rows * design.shape[1]:
                digest.update(b"dense")
            else:
                digest.update(b"sparse")
                digest.update(counts.astype("<i8").tobytes())
                digest.update(columns.astype("<i8").tobytes())
            digest.update(values.astype("<f8").tobytes())
        return "sha256:" + digest.hexdigest()
    return _probe(design)


def block_fingerprints(design: Design) -> list[tuple[IntArray, str]]:
    """Return the columns and the fingerprint of every matrix that a design is put together of."""
    if not isinstance(design, StackedDesign):
        return [(np.arange(design.shape[1]), design_fingerprint(design))]
    return [(index, design_fingerprint(block)) for index, block in design.blocks]


def combined(design: Design, blocks: list[tuple[IntArray, str]]) -> str:
    """Return the fingerprint of a design from those of its blocks."""
    if not isinstance(design, StackedDesign):
        return blocks[0][1]
    parts = [f"{array_hash(index.astype(np.float64))}={found}" for index, found in blocks]
    if any("probe:" in part for part in parts):
        return _probe(design)
    text = f"stack {design.shape} " + " ".join(sorted(parts))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def same_design(stored: str, found: str) -> bool:
    """Return whether two fingerprints stand for the same matrix."""
    if not (stored.startswith("probe:") and found.startswith("probe:")):
        return stored == found
    try:
        one = np.array([float(v) for v in stored[6:].split(",")])
        two = np.array([float(v) for v in found[6:].split(",")])
    except ValueError:
        return False
    if one.shape != two.shape:
        return False
    scale = max(float(np.abs(two).max(initial=0.0)), 1e-300)
    return bool(np.all(np.abs(one - two) <= PROBE_TOLERANCE * scale))


def _blocks(design: Design) -> Iterator[tuple[Any, Any, FloatArray]]:
    """Yield counts per row, columns and values of the entries that are not zero."""
    if isinstance(design, SparseDesign):
        rows = design.array.tocsr().astype(np.float64, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        for start in range(0, rows.shape[0], ROWS):
            part = rows[start : start + ROWS]
            yield np.diff(part.indptr), part.indices, part.data
        return
    for _, entries in _row_blocks(design):
        if np.all(entries):
            size = np.full(entries.shape[0], entries.shape[1])
            yield size, np.empty(0), np.ascontiguousarray(entries).ravel()
        else:
            mask = entries != 0.0
            yield mask.sum(axis=1), np.nonzero(mask)[1], entries[mask]


def _row_blocks(design: Design) -> Iterator[tuple[slice, FloatArray]]:
    if isinstance(design, DenseDesign):
        array = design.array
        for start in range(0, array.shape[0], ROWS):
            rows = slice(start, start + ROWS)
            yield rows, np.ascontiguousarray(array[rows], dtype=np.float64)
    else:
        yield from design.row_blocks(ROWS)


def _probe(design: Design) -> str:
    rng = np.random.default_rng(20_180_906)
    n, p = design.shape
    found = []
    for _ in range(_PROBES):
        x, r = rng.standard_normal(p), rng.standard_normal(n)
        found.append(float(r @ design.matvec(x)))
    return "probe:" + ",".join(repr(v) for v in found)


__all__ = [
    "PROBE_TOLERANCE",
    "array_hash",
    "block_fingerprints",
    "combined",
    "design_fingerprint",
    "same_design",
]
