"""A fingerprint of the data: equal numbers give equal hashes, however they are stored.

Dense or sparse, float32 or float64, C or Fortran order, CSR or CSC: what is hashed is the sequence
of float64 entries row by row. Blocks of :data:`ROWS` rows are written either as they are (no zero
among them) or as counts, columns and values of the entries that are not zero; which of the two
depends on the entries alone.

Entries that another library holds stay where they are: products of fixed random vectors stand for
them, as for a matrix that only has products. Whoever has the entries can form the same products.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.readings import remembered
from sparsemodel.designs import (
    DenseDesign,
    ForeignDesign,
    OnesDesign,
    SparseDesign,
    StackedDesign,
)
from sparsemodel.interfaces import Access, Design, FloatArray, IntArray

ROWS = 256
_AT_ONCE = 2**20
"""Entries that are looked at at once."""
_PROBES = 4
PROBE_TOLERANCE = 1e-8


def array_hash(array: FloatArray | None) -> str:
    """Return the SHA-256 of the shape and the float64 entries of an array (row-major)."""
    digest = hashlib.sha256()
    if array is None:
        return "none"
    values = np.atleast_1d(array)
    digest.update(repr(values.shape).encode())
    for start in range(0, values.shape[0], _AT_ONCE):
        part = np.ascontiguousarray(values[start : start + _AT_ONCE], dtype="<f8")
        digest.update((part + 0.0).tobytes())  # -0.0 is 0.0
    return digest.hexdigest()


def design_fingerprint(design: Design, *, probed: bool | None = None) -> str:
    """Return ``"sha256:..."`` of the entries, or probes of a matrix that has to do with products.

    Probes are four numbers :math:`r^T A x` for fixed pseudo-random ``r`` and ``x``, compared up to
    ``PROBE_TOLERANCE``. O(n p) or O(nonzeros); one pass.

    Parameters
    ----------
    design
        The matrix.
    probed
        Whether to take probes; None for where entries cannot be read, or are another library's.
    """
    if isinstance(design, StackedDesign):
        return combined(design, block_fingerprints(design, probed=probed))
    if isinstance(design, OnesDesign):
        return f"ones:{design.shape[0]}"
    if by_products(design) if probed is None else probed:
        return _probe(design)
    digest = Digest(design.shape)
    if isinstance(design, SparseDesign):
        array = design.array.tocsr().astype(np.float64, copy=True)
        array.sum_duplicates()
        array.eliminate_zeros()
        for start in range(0, array.shape[0], ROWS):
            digest.add_sparse(array[start : start + ROWS])
        return digest.text()
    if isinstance(design, DenseDesign):
        digest.add(design.array)
        return digest.text()
    if Access.ROWS in design.access:
        for _, entries in design.row_blocks(ROWS * max(1, _AT_ONCE // (ROWS * design.shape[1]))):
            digest.add(entries)
        return digest.text()
    return _probe(design)


@final
class Digest:
    """The fingerprint of a matrix whose rows come in order."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._width = shape[1]
        self._sha = hashlib.sha256(repr(tuple(int(s) for s in shape)).encode())

    def add(self, entries: Any) -> None:
        """Take in the next rows, a multiple of :data:`ROWS` unless they are the last."""
        for start in range(0, entries.shape[0], ROWS):
            for piece in _dense_pieces(entries[start : start + ROWS]):
                self._sha.update(piece)

    def add_sparse(self, part: Any) -> None:
        """Take in the next :data:`ROWS` rows of a SciPy array in rows, without zeros."""
        counts = np.diff(part.indptr)
        for piece in _head(counts, self._width):
            self._sha.update(piece)
        if not _full(counts, self._width):
            self._sha.update(part.indices.astype("<i8"))
        self._sha.update(part.data.astype("<f8"))

    def text(self) -> str:
        """Return the fingerprint of what was taken in."""
        return "sha256:" + self._sha.hexdigest()


def by_products(design: Design) -> bool:
    """Return whether products stand for the entries of a design, or of one of its blocks."""
    if isinstance(design, StackedDesign):
        return any(by_products(block) for _, block in design.blocks)
    if isinstance(design, ForeignDesign):
        return design.in_double  # products in single precision differ from one device to another
    return Access.ROWS not in design.access and not isinstance(design, SparseDesign)


def block_fingerprints(design: Design, *, probed: bool | None = None) -> list[tuple[IntArray, str]]:
    """Return the columns and the fingerprint of every matrix that a design is put together of.

    Either all are probed or all are hashed that can be; columns of ones need neither.
    """
    whole = ((np.arange(design.shape[1]), design),)
    parts = design.blocks if isinstance(design, StackedDesign) else whole
    probed = by_products(design) if probed is None else probed
    kind = "probes" if probed else "fingerprint"
    return [
        (index, remembered(block, kind, partial(design_fingerprint, block, probed=probed)))
        for index, block in parts
    ]


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


def _dense_pieces(entries: Any) -> Iterator[Any]:
    """Yield what is hashed of a block of rows."""
    height, p = entries.shape
    step = max(1, _AT_ONCE // max(p, 1))
    parts = [slice(start, start + step) for start in range(0, height, step)]
    counts = np.concatenate([np.count_nonzero(entries[part], axis=1) for part in parts])
    yield from _head(counts, p)
    full = _full(counts, p)
    if not full:
        for part in parts:
            mask = entries[part] != 0.0
            if p > ROWS:  # row by row, which is faster where rows are long
                columns = np.concatenate([np.flatnonzero(row) for row in mask])
            else:
                columns = np.nonzero(mask)[1]
            yield np.ascontiguousarray(columns, dtype="<i8")
    for part in parts:
        some = entries[part]
        yield np.ascontiguousarray(some if full else some[some != 0.0], dtype="<f8")


def _full(counts: IntArray, p: int) -> bool:
    """Return whether there is no zero among the entries of a block of rows."""
    return int(counts.sum()) == counts.size * p


def _head(counts: IntArray, p: int) -> Iterator[Any]:
    if _full(counts, p):
        yield b"dense"
    else:
        yield b"sparse"
        yield counts.astype("<i8")


def _probe(design: Design) -> str:
    rng = np.random.default_rng(20_180_906)
    n, p = design.shape
    found = []
    for _ in range(_PROBES):
        x, r = rng.standard_normal(p), rng.standard_normal(n)
        found.append(float(r @ design.matvec_in_double(x)))
    return "probe:" + ",".join(repr(v) for v in found)
