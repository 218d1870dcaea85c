r"""Products with a design for certificates: in float64, with a bound on their rounding errors.

A solver multiplies in whatever precision the data have. A certificate reads the same entries and
multiplies in float64, where a sum of ``n`` products taken in any order is off by at most
:math:`\gamma_n |A|^T |r| \le \gamma_n \|A_j\| \|r\|` (Higham, section 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from sparsemodel.certificates.arithmetic.file_statistics import norm_bounds, rows_with_statistics
from sparsemodel.certificates.arithmetic.readings import kept, read_once
from sparsemodel.certificates.arithmetic.rounding import TINY, gamma, norm_up
from sparsemodel.compiler.reductions.shift_columns import shiftable
from sparsemodel.designs import (
    ChunkedDesign,
    DenseDesign,
    OnesDesign,
    OperatorDesign,
    SparseDesign,
    StackedDesign,
    TransformedDesign,
)
from sparsemodel.designs.dense import DenseColumns
from sparsemodel.designs.operator import compare_with_adjoint
from sparsemodel.designs.remote.distributed import DistributedDesign
from sparsemodel.designs.remote.foreign import ForeignDesign
from sparsemodel.interfaces import (
    Access,
    BoolArray,
    Design,
    FloatArray,
    IntArray,
    SparseRegression,
)
from sparsemodel.interfaces.design import RestrictedDesign, RestrictedRows, rows_of_a_block

_COMPARED: WeakSet[Design] = WeakSet()
"""Matrix-free designs whose adjoint was found to be one."""

_STEPS = 6
"""Of the power iteration behind a norm that only rounding errors are measured with."""

_UNLIKELY = 1e-6
"""A random direction in ``p`` dimensions has a component below ``1e-6 / sqrt(p)`` along a given
one with a probability of about 1e-6."""

_NORMS: WeakKeyDictionary[Design, float] = WeakKeyDictionary()


def column_norms(design: Design) -> FloatArray:
    """Return upper bounds on the Euclidean norms of the columns.

    Of a matrix-free design only a bound on the spectral norm is affordable; it stands in for every
    column, see :func:`matrix_free`.
    """
    (norms,) = read_once(design, "norms", None, lambda: (_column_norms(design),))
    return norms


def _column_norms(design: Design) -> FloatArray:
    n, p = design.shape
    if isinstance(design, StackedDesign):
        out = np.zeros(p)
        for index, block in design.blocks:
            out[index] += column_norms(block)  # the triangle inequality, where blocks overlap
        return out * (1.0 + gamma(len(design.blocks) + 1))
    if isinstance(design, TransformedDesign) and design.only_scaled:  # its rows are dense
        factors = 1.0 if design.scale is None else np.abs(design.scale)
        sizes = factors * column_norms(design.inner) * (1.0 + gamma(3))
        return np.asarray(sizes + 1e-150 * np.sqrt(n))
    if isinstance(design, SparseDesign):
        squares = np.asarray(_squared(design).sum(axis=0), dtype=np.float64).ravel()
    elif isinstance(design, (DenseDesign, DenseColumns, OnesDesign)) or _is_remote(design):
        squares = design.column_square_norms()
    elif Access.ROWS in design.access:
        squares = np.zeros(p)
        for _, entries in design.row_blocks(_rows(design)):
            squares += np.einsum("ij,ij->j", entries, entries)
    else:
        return np.full(p, _coarseness(design) * _norm(design) + TINY)
    return norm_bounds(squares, n)


def adjoint_product(design: Design, r: FloatArray) -> FloatArray:
    """Return ``A.T @ r`` in float64."""
    (product,) = read_once(design, "product", r, lambda: (design.rmatvec_in_double(r),))
    return product


def adjoint_error(norms: FloatArray, n: int, r: FloatArray) -> FloatArray:
    """Return a bound on the errors of :func:`adjoint_product`, given :func:`column_norms`."""
    return spread(norms, gamma(n + 16) * norm_up(r, axis=0))


def spread(norms: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return ``||A_j|| * size``, a bound on ``A_j . e`` for vectors ``e`` of these norms."""
    out = norms * sizes if np.ndim(sizes) == 0 else np.outer(norms, sizes)
    return np.asarray(out * (1.0 + gamma(4)) + TINY)


def zero_columns(design: Design, index: IntArray) -> BoolArray:
    """Return which of some columns are exactly zero; none that only has products."""
    if matrix_free(design):
        return np.zeros(index.size, dtype=bool)
    (some,) = read_once(
        design, "nonzero", index.astype(np.float64), lambda: (_any_nonzero(design, index),)
    )
    return np.asarray(some == 0.0)


def _any_nonzero(design: Design, index: IntArray) -> FloatArray:
    part, out = design.restrict(index), np.zeros(index.size)
    for _, entries in part.row_blocks(_rows(design)):
        out[np.any(entries != 0.0, axis=0)] = 1.0
    return out


def predictions(design: Design, x: FloatArray, support: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return ``A x`` in float64 from the columns in ``support``, with a bound on its errors."""
    u, error = read_once(design, "predictions", x, lambda: _predictions(design, x, support))
    return u, error


def _predictions(design: Design, x: FloatArray, support: IntArray) -> tuple[FloatArray, FloatArray]:
    n, values = design.shape[0], x[support]
    if not support.size and not matrix_free(design):
        return np.zeros((n, *x.shape[1:])), np.zeros((n, *x.shape[1:]))
    if isinstance(design, StackedDesign) and not any(
        Access.COLUMNS not in block.access and np.isin(index, support).any()
        for index, block in design.blocks
    ):  # nothing of a file, nor of what is elsewhere, as with an intercept alone
        design, x, support = design.restrict(support), values, np.arange(support.size)
    if design.streamed:
        return _streamed(design, x, support)
    if matrix_free(design):
        u = np.asarray(design.matvec(x), dtype=np.float64)
        # No entries to read: the assumption about matrix-free products, per observation.
        rows = np.full(n, _coarseness(design) * _norm(design))
        return u, spread(rows, gamma(2 * max(design.shape) + 16) * norm_up(values, axis=0))
    if (Access.COLUMNS | Access.DISTRIBUTED) & design.access:
        narrow = design.restrict(support)
        if Access.COLUMNS in narrow.access:  # read once, for the product and for its error
            design, x, support = narrow, values, np.arange(support.size)
    if _beside_ones(design):
        u, error = np.zeros((n, *x.shape[1:])), np.zeros((n, *x.shape[1:]))
        for part, entries in design.row_blocks(_rows(design)):
            u[part], error[part] = predicted(entries, x, support)
        return u, error
    read = np.asarray(design.matvec(x), dtype=np.float64)
    count = max(int(support.size), _stored_in_parts(design))
    return read, _product_error(_magnitudes(design, np.abs(values), support), count)


def _streamed(design: Design, x: FloatArray, support: IntArray) -> tuple[FloatArray, FloatArray]:
    u, error = np.zeros((2, design.shape[0], *x.shape[1:]))
    for rows, entries in rows_with_statistics(design, _rows(design)):
        u[rows], error[rows] = predicted(entries, x, support)
    return u, error


def _stored_in_parts(design: Design) -> int:
    """Return the stored entries of the longest row where some are parts of one; 0 elsewhere."""
    if isinstance(design, StackedDesign):
        return sum(_stored_in_parts(block) for _, block in design.blocks)
    if not isinstance(design, SparseDesign):
        return 0
    array: Any = design.array
    if array.has_canonical_format:
        return 0
    whole = array.copy()
    whole.sum_duplicates()
    return 0 if whole.nnz == array.nnz else int(np.diff(array.tocsr().indptr).max(initial=0))


def _product_error(sizes: FloatArray, count: int) -> FloatArray:
    r"""Return a bound on the errors of :math:`\sum_j a_{ij} x_j`, given computed sums of sizes.

    The same whatever holds the entries, so that a file fits the data however they are held. A sum
    of ``count`` products in any order is off by at most :math:`\gamma_m \sum_j |a_{ij}| |x_j|`
    (Higham, section 3.1), and that sum by as much of itself; products may underflow.
    """
    return np.asarray(sizes * gamma(2 * count + 16) + (count + 1) * TINY)


def _magnitudes(design: Design, sizes: FloatArray, support: IntArray) -> FloatArray:
    r"""Return :math:`\sum_j |a_{ij}| s_j` over the columns of ``support``, as computed."""
    if isinstance(design, StackedDesign):
        out = np.zeros((design.shape[0], *sizes.shape[1:]))
        for index, block in design.blocks:
            _, places, columns = np.intersect1d(support, index, return_indices=True)
            if columns.size:
                order = np.argsort(columns)
                out += _magnitudes(block, sizes[places[order]], columns[order])
        return out
    if isinstance(design, DistributedDesign):
        return design.magnitudes(support, sizes)
    every = support.size == design.shape[1]
    if not every and Access.COLUMNS in design.access:
        design, every = design.restrict(support), True
    if every and isinstance(design, SparseDesign):
        array: Any = design.array
        return np.asarray(abs(array).astype(np.float64) @ sizes)
    out = np.zeros((design.shape[0], *sizes.shape[1:]))
    for rows, entries in design.row_blocks(_rows(design)):
        out[rows] = np.abs(entries if every else entries[:, support]) @ sizes
    return out


def predicted_rows(
    design: Design, x: FloatArray, support: IntArray, *, whole: bool
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Yield rows, their predictions and bounds on the errors; in one reading of stored data.

    ``whole`` asks for all rows together, as losses do that couple observations.
    """
    n = design.shape[0]
    if not support.size and not matrix_free(design):  # nothing to be read
        nothing = np.zeros((n, *x.shape[1:]))
        yield slice(0, n), nothing, nothing
    elif whole or not design.streamed or kept(design, 2 * n * math.prod(x.shape[1:])):
        yield slice(0, n), *predictions(design, x, support)
    else:
        for rows, entries in rows_with_statistics(design, _rows(design)):
            yield rows, *predicted(entries, x, support)


def predicted(
    entries: FloatArray, x: FloatArray, support: IntArray
) -> tuple[FloatArray, FloatArray]:
    r"""Return the predictions of some rows with a bound on their errors.

    Beside a column of ones columns far from zero are shifted by their means, without rounding:
    :math:`\sum_j a_{ij} x_j + b = \sum_j (a_{ij} - t_j) x_j + (b + t^\top x)`, the last exactly
    but for one rounding.
    """
    part, values = entries[:, support], x[support]
    ones = np.flatnonzero(np.all(part == 1.0, axis=0)) if values.ndim == 1 else support[:0]
    if ones.size and (far := _far(part)).any():
        # A mean is within the range, however rows are cut: errors hardly depend on what holds them.
        middle = np.clip(part.mean(axis=0), part.min(axis=0), part.max(axis=0))
        t, place = np.where(far, middle, 0.0), int(ones[0])
        whole = sum((Fraction(a) * Fraction(b) for a, b in zip(t, values, strict=True)), Fraction())
        part, values = part - t, values.copy()
        values[place] = float(whole + Fraction(values[place]))
    return part @ values, _product_error(np.abs(part) @ np.abs(values), support.size)


def _far(entries: FloatArray) -> BoolArray:
    """Return which columns differ by less than a hundredth of their entries."""
    low, high = entries.min(axis=0), entries.max(axis=0)
    size = np.minimum(np.abs(low), np.abs(high))
    return np.asarray((high > low) & (high - low <= 0.01 * size))


def _beside_ones(design: Design) -> list[Design]:
    """Return the columns beside one of ones if all of them can be shifted, in blocks."""
    if not isinstance(design, StackedDesign):
        return []
    others = [block for _, block in design.blocks if not isinstance(block, OnesDesign)]
    is_beside = len(others) < len(design.blocks) and all(map(shiftable, others))
    return others if is_beside else []


def has_far_columns(design: Design) -> bool:
    """Return whether columns beside one of ones are far from zero: products keep few digits."""
    return any(bool(_far(np.asarray(one.to_array())).any()) for one in _beside_ones(design))


def matrix_free(design: Design) -> bool:
    """Return whether entries cannot be read, so that products must be taken on trust."""
    if isinstance(design, StackedDesign):
        return any(matrix_free(block) for _, block in design.blocks)
    return not isinstance(design, SparseDesign) and Access.ROWS not in design.access


def products_alone(design: Design) -> Design:
    """Return a design that is only known by its products; columns of ones are what they are."""
    if isinstance(design, StackedDesign):
        blocks = tuple((index, products_alone(block)) for index, block in design.blocks)
        return StackedDesign(*design.shape, blocks)
    if isinstance(design, OnesDesign) or matrix_free(design):
        return design
    ways = {"shape": design.shape, "matvec": design.matvec, "rmatvec": design.rmatvec}
    return OperatorDesign(SimpleNamespace(**ways))


def with_products_alone(form: SparseRegression, probed: list[bool]) -> SparseRegression:
    """Return a problem with products alone of the matrices of which the writer had no more.

    Then they are given the same accuracy, whatever is known of a matrix here.
    """
    if len(probed) != len(form.terms):
        return form  # of another problem
    alone = [replace(term, design=products_alone(term.design)) for term in form.terms]
    terms = [a if on else b for on, a, b in zip(probed, alone, form.terms, strict=True)]
    return replace(form, terms=tuple(terms))


def check_adjoint(design: Design) -> None:
    """Compare a matrix-free design with its adjoint, once (an operator does so by itself)."""
    if isinstance(design, StackedDesign):
        for _, block in design.blocks:
            check_adjoint(block)
    elif matrix_free(design) and not isinstance(design, OperatorDesign) and design not in _COMPARED:
        compare_with_adjoint(design)
        _COMPARED.add(design)


def _norm(design: Design) -> float:
    r"""Return a bound on the spectral norm from a few products, found once for each design.

    Steps of the power iteration from a random direction :math:`v` with the component :math:`a`
    along the leading singular vector: the norms of :math:`(A^T A)^i v` grow by factors that never
    fall, so that the last is at least :math:`\|A\|^2 |a|^{1/m}` after ``m`` steps. It is divided
    by that for an ``a`` as small as one direction in a million has.
    """
    if isinstance(design, (RestrictedDesign, RestrictedRows)):
        return _norm(design.inner)
    if design not in _NORMS:
        v = np.random.default_rng(0).standard_normal(design.shape[1])
        size, growth = float(np.linalg.norm(v)), 0.0
        for _ in range(_STEPS):
            if size == 0.0:
                break
            v = design.rmatvec(design.matvec(v / size))
            growth = size = float(np.linalg.norm(v))
        component = _UNLIKELY / np.sqrt(max(design.shape[1], 1))
        _NORMS[design] = float(np.sqrt(growth) * component ** (-0.5 / _STEPS))
    return _NORMS[design]


def _coarseness(design: Design) -> float:
    """Return how much coarser than float64 the products of a matrix-free design are."""
    if isinstance(design, StackedDesign):
        return max((_coarseness(block) for _, block in design.blocks), default=1.0)
    return 2.0**29 if isinstance(design, OperatorDesign) and design.single else 1.0


def _squared(design: SparseDesign) -> Any:
    array: Any = design.array
    if not array.has_canonical_format:  # repeated entries add up before they are squared
        array = array.copy()
        array.sum_duplicates()
    array = array.astype(np.float64, copy=True)
    array.data = np.square(array.data)
    return array


def _is_remote(design: Design) -> bool:
    """Return whether squares of the entries are added up, in float64, where the entries are."""
    if isinstance(design, TransformedDesign):
        return design.only_scaled and _is_remote(design.inner)
    return isinstance(design, (ChunkedDesign, DistributedDesign, ForeignDesign))


def _rows(design: Design) -> int:
    return rows_of_a_block(design.shape[1])
