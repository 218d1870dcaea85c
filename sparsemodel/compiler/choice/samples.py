"""How large a sample of rows is that files are first solved on."""

from __future__ import annotations

from sparsemodel.interfaces import SparseRegression

_PER_COORDINATE, _SHARE = 50, 20
"""Rows of a sample for each coordinate, at least, and rows that one of it stands for, at most."""
_SAMPLE_BYTES, _WORTH = 2**26, 4
"""Of a sample at most (64 MB), and rows that one of it has to stand for, at least."""


def sample_size(form: SparseRegression) -> int:
    """Return how many rows of files a first point is found on; 0 where all rows are at hand.

    Losses must be sums over observations, and a row must stand for several.
    """
    if not (form.traits.by_observation and all(term.design.streamed for term in form.terms)):
        return 0
    n, p = sum(term.target.shape[0] for term in form.terms), form.sparsity.size
    size = min(max(_PER_COORDINATE * p, n // _SHARE), _SAMPLE_BYTES // (8 * p))
    return 0 if _WORTH * size > n or size < 2 * p else size
