"""The columns of the last support, kept, with their Gram matrix where it is constant."""

from __future__ import annotations

from functools import partial
from typing import final

import numpy as np

from sparsemodel.designs import DenseDesign, StackedDesign, TransformedDesign
from sparsemodel.designs.remote.columns import ReadColumns
from sparsemodel.designs.remote.foreign import is_fetched
from sparsemodel.interfaces import (
    Access,
    BoolArray,
    Design,
    FloatArray,
    IntArray,
    Term,
)

_SMALL = 2**16
"""Entries up to which columns that are put together from others are written out (0.5 MB): there
the parts cost calls, not numbers."""


@final
class SupportColumns:
    """Each term's design on the last support that was asked for.

    Algorithms change a few coordinates at a time: what two successive supports share is copied,
    the rest is read from the data. Holds ``n |support|`` numbers, and ``|support|^2`` once a
    Gram matrix was asked for.
    """

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self._terms = terms
        self._support: IntArray | None = None
        self._key: bytes | None = None  # bytes compare sooner than short arrays
        self._designs: tuple[Design, ...] = ()
        self._gram: tuple[IntArray, FloatArray] | None = None
        device = any(Access.DEVICE in term.design.access for term in terms)
        self._brought = [ReadColumns(partial(_rows, t.design)) for t in terms] if device else []

    @property
    def at_hand(self) -> bool:
        """Return whether the columns that are kept can be read one by one."""
        return all(Access.COLUMNS in design.access for design in self._designs)

    def holds(self, support: IntArray) -> bool:
        """Return whether ``support`` is the one whose columns are kept."""
        return self._key == support.tobytes()

    def designs(self, support: IntArray) -> tuple[Design, ...]:
        """Return the designs restricted to ``support`` (sorted)."""
        last = self._support
        if self.holds(support):
            return self._designs
        if self._brought and is_fetched(self._terms[0].design.shape[0], support.size):
            # None is sent twice while it is kept.
            pairs = zip(self._brought, self._terms, strict=True)
            found: tuple[Design, ...] = tuple(
                columns.restrict(support, support[:0], term.design, "kept")
                for columns, term in pairs
            )
        elif last is None:
            found = tuple(term.design.restrict(support) for term in self._terms)
        else:
            found = tuple(
                term.design.restrict_again(support, last, before)
                for term, before in zip(self._terms, self._designs, strict=True)
            )
        # Not those of a file, which others may ask for: it knows which of its columns are in use.
        self._designs = tuple(
            design if term.design.streamed else written_out(design)
            for term, design in zip(self._terms, found, strict=True)
        )
        self._support = support.copy()
        self._key = support.tobytes()
        return self._designs

    def gram(self, support: IntArray, weights: tuple[FloatArray, ...]) -> FloatArray:
        """Return ``sum_t A_tS.T @ diag(h_t) @ A_tS`` for weights that never change.

        Only the rows of coordinates that the last call did not have are computed, where they
        are the smaller part.
        """
        designs = self.designs(support)
        known, position = self._overlap(support)
        fresh = np.flatnonzero(~known)
        if self._gram is None or 2 * fresh.size >= support.size:
            gram = np.zeros((support.size, support.size))
            for design, h in zip(designs, weights, strict=True):
                scalar = _uniform(h)
                gram += design.gram(h) if scalar is None else scalar * design.gram()
        else:
            gram = np.empty((support.size, support.size))
            gram[np.ix_(known, known)] = self._gram[1][np.ix_(position, position)]
            if fresh.size:
                rows = _gram_rows(designs, weights, fresh)
                gram[fresh], gram[:, fresh] = rows, rows.T
        self._gram = (support.copy(), gram)
        return gram.copy()

    def _overlap(self, support: IntArray) -> tuple[BoolArray, IntArray]:
        """Return which of ``support`` the last Gram matrix has, and where."""
        if self._gram is None or not self._gram[0].size:
            return np.zeros(support.size, dtype=bool), np.empty(0, dtype=np.intp)
        before = self._gram[0]
        position = np.minimum(np.searchsorted(before, support), before.size - 1)
        known = before[position] == support
        return known, position[known]


def _rows(design: Design, columns: IntArray) -> FloatArray:
    return np.ascontiguousarray(design.restrict(columns).to_array().T)


def _gram_rows(
    designs: tuple[Design, ...], weights: tuple[FloatArray, ...], rows: IntArray
) -> FloatArray:
    out = np.zeros((rows.size, designs[0].shape[1]))
    for design, h in zip(designs, weights, strict=True):
        scalar = _uniform(h)
        out += design.gram_rows(rows, h) if scalar is None else scalar * design.gram_rows(rows)
    return out


def written_out(design: Design) -> Design:
    """Return the same columns as one array, where they are few and put together from others."""
    n, p = design.shape
    composed = isinstance(design, StackedDesign | TransformedDesign)
    if not composed or n * p > _SMALL or Access.COLUMNS not in design.access:
        return design
    return DenseDesign(np.asfortranarray(design.to_array()))


def _uniform(h: FloatArray) -> float | None:
    return float(h[0]) if h.size and bool(np.all(h == h[0])) else None
