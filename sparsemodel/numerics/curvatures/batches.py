"""Random batches of observations, for stochastic methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import (
    Design,
    FloatArray,
    IntArray,
    Objective,
    SparseRegression,
    Term,
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some observations of one term."""

    index: int
    """Which term."""
    rows: IntArray
    """Sorted."""
    design: Design
    target: FloatArray
    weights: FloatArray
    offset: FloatArray | None

    def margins(self, z: FloatArray) -> FloatArray:
        """Return ``A x + o`` from ``A x`` on these observations."""
        return z if self.offset is None else z + self.offset


def epoch(
    objective: Objective, count: int, rng: np.random.Generator
) -> Iterator[tuple[Batch, ...]]:
    """Yield ``count`` random batches that together are all observations, once each.

    The objective counts each of them as the gradients of its observations.

    Each batch has about ``1 / count`` of the rows of every term, so that ``count`` times its sum
    is an unbiased estimate of the sum over all. Batches without rows are not yielded. Rows are
    read when a batch is reached: the memory is that of one batch.
    """
    form = cast("SparseRegression", objective.form)
    parts = [np.array_split(rng.permutation(term.target.shape[0]), count) for term in form.terms]
    for number in range(count):
        batch = tuple(
            _batch(index, term, np.sort(parts[index][number]))
            for index, term in enumerate(form.terms)
            if parts[index][number].size
        )
        if batch:
            _count(objective, batch)
            yield batch


def drawn_block(objective: Objective, count: int, rng: np.random.Generator) -> tuple[Batch, ...]:
    """Return one of ``count`` fixed blocks of consecutive observations, drawn uniformly.

    The objective counts it as the gradients of its observations.

    ``count`` times its sum is an unbiased estimate of the sum over all observations, and with as
    many blocks as observations a block is a single one. With several terms a block has its part
    of each of them.
    """
    form = cast("SparseRegression", objective.form)
    number = int(rng.integers(count))
    batch = []
    for index, term in enumerate(form.terms):
        size, longer = divmod(term.target.shape[0], count)
        first = number * size + min(number, longer)
        rows = np.arange(first, first + size + (number < longer))
        if rows.size:
            batch.append(_batch(index, term, rows))
    _count(objective, batch)
    return tuple(batch)


def _count(objective: Objective, batch: Iterable[Batch]) -> None:
    form = cast("SparseRegression", objective.form)
    rows = sum(part.rows.size for part in batch)
    objective.work.row_gradients += rows
    objective.work.passes += rows / max(1, sum(term.target.shape[0] for term in form.terms))


def batch_count(form: SparseRegression) -> int:
    """Return a number of batches, 5 to 50, whose ``O(p)`` work together is below one pass.

    A step over a batch reads its rows and a few vectors of length ``p``, selection included; the
    latter are as much as ``4 p`` entries of the data. Batches keep 16 rows or more: the noise of
    smaller ones moves the support at random.
    """
    entries = sum(term.design.entries for term in form.terms)
    rows = sum(int(term.target.shape[0]) for term in form.terms)
    count = int(np.clip(entries // (4 * max(form.sparsity.size, 1)), 5, 50))
    return max(1, min(count, rows // 16))


def _batch(index: int, term: Term, rows: IntArray) -> Batch:
    return Batch(
        index,
        rows,
        term.design.restrict_rows(rows),
        term.target[rows],
        term.weights[rows],
        None if term.offset is None else term.offset[rows],
    )
